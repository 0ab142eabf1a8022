// JSON that has exactly one form, so that hashing its bytes hashes its meaning.

import { bytesText, same, textBytes } from "./bytes.js";
import { insist } from "./refusal.js";

const MOST_BYTES = 1 << 20;
const DEEPEST = 8;
const DECIMAL = /^(0|-?[1-9][0-9]{0,399})$/;

/** Real numbers are published as whole multiples of 1 / UNIT. */
export const UNIT = 1n << 128n;

/** The canonical bytes of a value. */
export const encode = (value) => textBytes(written(value, 0));

/** The value whose canonical bytes these are; any other bytes are refused. */
export function decode(bytes) {
  insist(bytes.length <= MOST_BYTES, "malformed", "published values have at most 2^20 bytes");
  const value = parsed(bytesText(bytes));
  insist(same(encode(value), bytes), "malformed", "these bytes are not in canonical form");
  return value;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    insist(false, "malformed", "these bytes are not JSON");
  }
}

function written(value, depth) {
  insist(depth <= DEEPEST, "malformed", "published values are nested too deep");
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") return writtenNumber(value);
  if (typeof value === "string") return writtenText(value);
  if (Array.isArray(value)) return `[${value.map((inner) => written(inner, depth + 1)).join(",")}]`;
  const keys = Object.keys(value).sort(byCodePoint);
  return `{${keys.map((key) => `${writtenText(key)}:${written(value[key], depth + 1)}`).join(",")}}`;
}

function writtenNumber(value) {
  insist(Number.isSafeInteger(value), "malformed", "a number is not whole, or above 2^53 - 1");
  return String(value);
}

function writtenText(value) {
  insist(value.isWellFormed(), "malformed", "text with unpaired surrogates has no UTF-8 form");
  return JSON.stringify(value);
}

/** JavaScript orders text by UTF-16 units; the canonical order is that of code points. */
function byCodePoint(one, other) {
  const [left, right] = [Array.from(one), Array.from(other)];
  const at = left.findIndex((character, index) => character !== right[index]);
  if (at < 0) return left.length - right.length;
  return at >= right.length ? 1 : left[at].codePointAt(0) - right[at].codePointAt(0);
}

/** A whole number from canonical decimal text. */
export function big(text) {
  insist(typeof text === "string" && DECIMAL.test(text), "malformed", "a large number is not canonical decimal text");
  return BigInt(text);
}

/** The double next to published real-number text. */
export function unscaled(text) {
  const value = Number(big(text)) / 2 ** 128;
  insist(Number.isFinite(value), "malformed", "a real number is larger than floating point can hold");
  return value;
}

// JSON with exactly one byte form for every value, so that a hash of the bytes is a hash of the
// value.

import { bytesText, same, textBytes } from "./bytes.js";
import { insist } from "./refusal.js";

const MAX_BYTES = 1 << 20;
const MAX_DEPTH = 8;
const DECIMAL = /^(0|-?[1-9][0-9]{0,399})$/;

/** Real numbers are published as integer multiples of 1 / UNIT. */
export const UNIT = 1n << 128n;

/** The canonical bytes of a value. */
export const encode = (value) => textBytes(serialize(value, 0));

/** The value with these canonical bytes; throws a `Refusal` for any other bytes. */
export function decode(bytes) {
  insist(bytes.length <= MAX_BYTES, "malformed", "published values have at most 2^20 bytes");
  const value = parseJson(bytesText(bytes));
  // Encoding again refuses duplicate keys, spaces and numbers in another notation: two byte strings
  // with the same meaning would have two hashes.
  // check: page-canonical - two values under one name
  insist(same(encode(value), bytes), "malformed", "these bytes are not in canonical form");
  return value;
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    insist(false, "malformed", "these bytes are not JSON");
  }
}

function serialize(value, depth) {
  insist(depth <= MAX_DEPTH, "malformed", "published values are nested too deeply");
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") return serializeNumber(value);
  if (typeof value === "string") return serializeText(value);
  if (Array.isArray(value)) {
    return `[${value.map((inner) => serialize(inner, depth + 1)).join(",")}]`;
  }
  const keys = Object.keys(value).sort(byCodePoint);
  const pairs = keys.map((key) => `${serializeText(key)}:${serialize(value[key], depth + 1)}`);
  return `{${pairs.join(",")}}`;
}

function serializeNumber(value) {
  // Above 2^53 - 1 a double skips integers, so that two texts would parse to the same number.
  insist(Number.isSafeInteger(value), "malformed", "a number is not an integer up to 2^53 - 1");
  return String(value);
}

function serializeText(value) {
  insist(value.isWellFormed(), "malformed", "text with unpaired surrogates has no UTF-8 form");
  return JSON.stringify(value);
}

/** Compares text by code points, the canonical order; JavaScript compares UTF-16 units. */
function byCodePoint(one, other) {
  const left = Array.from(one);
  const right = Array.from(other);
  const at = left.findIndex((character, index) => character !== right[index]);
  if (at < 0) return left.length - right.length;
  return at >= right.length ? 1 : left[at].codePointAt(0) - right[at].codePointAt(0);
}

/** An integer from canonical decimal text. */
export function parseInteger(text) {
  const isDecimal = typeof text === "string" && DECIMAL.test(text);
  insist(isDecimal, "malformed", "a large number is not canonical decimal text");
  return BigInt(text);
}

/** The double that a published real number is; numbers between two doubles are refused. */
export function unscaled(text) {
  const units = parseInteger(text);
  const nearest = Number(units);
  insist(Number.isFinite(nearest), "malformed", "a real number is too large for floating point");
  // Two texts for one double would be two hashes of the same parameters.
  insist(BigInt(nearest) === units, "malformed", "a real number is not one that a double can be");
  return nearest / 2 ** 128;
}

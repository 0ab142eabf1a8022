// Byte arrays and their text and number forms. Numbers are big endian unless a name says otherwise.

import { insist } from "./refusal.js";

const utf8 = new TextEncoder();

/** The UTF-8 bytes of a text. */
export const textBytes = (text) => utf8.encode(text);

/** The text behind UTF-8 bytes; throws a `Refusal` for anything else. */
export function bytesText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    insist(false, "malformed", "these bytes are not UTF-8");
  }
}

/** Lower-case hexadecimal text. */
export const hex = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes behind lower-case hexadecimal text. */
export function unhex(text) {
  const isHex = typeof text === "string" && /^([0-9a-f]{2})*$/.test(text);
  insist(isHex, "malformed", "expected lower-case hexadecimal text");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** The concatenation of several byte arrays. */
export function join(...arrays) {
  const whole = new Uint8Array(arrays.reduce((size, array) => size + array.length, 0));
  let offset = 0;
  for (const array of arrays) {
    whole.set(array, offset);
    offset += array.length;
  }
  return whole;
}

/** Whether two arrays hold the same bytes. Not constant time: use it for public values only. */
export const same = (one, other) =>
  one.length === other.length && one.every((byte, at) => byte === other[at]);

/** An unsigned integer in four bytes. */
export function u32(value) {
  const out = new Uint8Array(4);
  new DataView(out.buffer).setUint32(0, value);
  return out;
}

/** The number that these bytes encode, most significant byte first. */
export const bigEndian = (bytes) => (bytes.length ? BigInt("0x" + hex(bytes)) : 0n);

/** The number that these bytes encode, least significant byte first. */
export const littleEndian = (bytes) => bigEndian(bytes.slice().reverse());

// Bytes, and their forms as text and numbers. Numbers are big endian unless a name says otherwise.

import { insist } from "./refusal.js";

const utf8 = new TextEncoder();

/** The UTF-8 bytes of a text. */
export const textBytes = (text) => utf8.encode(text);

/** The text behind UTF-8 bytes; anything else is refused. */
export function bytesText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    insist(false, "malformed", "these bytes are not UTF-8");
  }
}

/** Lower-case hexadecimal text. */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes behind lower-case hexadecimal text. */
export function unhex(text) {
  insist(typeof text === "string" && /^([0-9a-f]{2})*$/.test(text), "malformed", "not lower-case hexadecimal text");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** All parts in one array. */
export function join(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Whether two arrays hold the same bytes. Only for values that are public. */
export const same = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);

/** A whole number in four bytes. */
export function u32(value) {
  const out = new Uint8Array(4);
  new DataView(out.buffer).setUint32(0, value);
  return out;
}

/** The number that bytes stand for, the most significant first. */
export const bigEndian = (bytes) => (bytes.length ? BigInt("0x" + hex(bytes)) : 0n);

/** The number that bytes stand for, the least significant first. */
export const littleEndian = (bytes) => bigEndian(bytes.slice().reverse());

// Vectors over F_q as arrays of BigInt from 0 to q - 1: expanded from a key, and packed into bytes.

import { bigEndian, littleEndian, same } from "./bytes.js";
import { keyStream } from "./encryption.js";
import { insist } from "./refusal.js";

const SPARE_WORDS = 8;
const LARGEST_GROUP = 1n << 53n;
// The little-endian words of a view, by their size in bytes.
const WORDS = {
  2: (view, at) => BigInt(view.getUint16(at, true)),
  4: (view, at) => BigInt(view.getUint32(at, true)),
  8: (view, at) => view.getBigUint64(at, true),
};
// Miller-Rabin with these bases is exact for every number below 2^64.
const WITNESSES = [2n, 3n, 5n, 7n, 11n, 13n, 17n, 19n, 23n, 29n, 31n, 37n];

/** `count` elements: the accepted little-endian words of the key stream, in order, modulo q. */
export async function expand(key, q, count) {
  const size = wordSize(q);
  // Words from the last incomplete run of q values are skipped: they would favour small residues.
  const limit = ((1n << BigInt(8 * size)) / q) * q;
  for (let words = count + SPARE_WORDS; ; words *= 2) {
    const stream = await keyStream(key, words * size);
    const found = acceptedWords(stream, size, limit).slice(0, count);
    if (found.length === count) return found.map((word) => word % q);
  }
}

function wordSize(q) {
  if (q < 1n << 16n) return 2;
  return q < 1n << 32n ? 4 : 8;
}

function acceptedWords(stream, size, limit) {
  const view = new DataView(stream.buffer, stream.byteOffset);
  const found = [];
  for (let at = 0; at < stream.length; at += size) {
    const word = WORDS[size](view, at);
    if (word < limit) found.push(word);
  }
  return found;
}

/** a - b modulo q, element by element. */
export const subtract = (a, b, q) => a.map((value, at) => residue(value - b[at], q));

/** A whole number of either sign modulo q. */
export const residue = (value, q) => ((value % q) + q) % q;

/** How many elements are packed together as one number in base q, and how many bits it takes. */
function groupOf(q) {
  let elements = 1;
  let limit = q;
  for (; limit * q <= LARGEST_GROUP; limit *= q) elements += 1;
  return { elements, bits: BigInt(bitLength(limit - 1n)) };
}

const bitLength = (value) => (value === 0n ? 0 : value.toString(2).length);

/** Bytes that `count` elements take; an incomplete last group takes only the bits that it needs. */
export function packedSize(q, count) {
  const { elements, bits } = groupOf(q);
  const last = bitLength(q ** BigInt(count % elements) - 1n);
  return Math.ceil((Math.floor(count / elements) * Number(bits) + last) / 8);
}

/** The bytes of a vector: group t at bits [t b, (t+1) b), least significant first, zero padded. */
export function pack(vector, q) {
  const { elements, bits } = groupOf(q);
  const groups = Array.from({ length: Math.ceil(vector.length / elements) }, (_, at) => {
    const group = vector.slice(at * elements, (at + 1) * elements);
    return group.reduceRight((sum, value) => sum * q + value, 0n);
  });
  const whole = groups.reduceRight((sum, value) => (sum << bits) | value, 0n);
  return littleEndianBytes(whole, packedSize(q, vector.length));
}

/** The vector of `count` elements behind packed bytes; any but the one packed form is refused. */
export function unpack(bytes, q, count) {
  insist(bytes.length === packedSize(q, count), "malformed", "a packed vector has another length");
  const { elements, bits } = groupOf(q);
  const whole = littleEndian(bytes);
  const vector = Array.from({ length: count }, (_, at) => {
    const group = (whole >> (bits * BigInt(Math.floor(at / elements)))) & ((1n << bits) - 1n);
    return (group / q ** BigInt(at % elements)) % q;
  });
  const isCanonical = same(pack(vector, q), bytes);
  insist(isCanonical, "malformed", "an element is too large, or padding bits are set");
  return vector;
}

function littleEndianBytes(value, size) {
  const text = value.toString(16).padStart(2 * size, "0");
  return Uint8Array.from({ length: size }, (_, at) => {
    const offset = 2 * (size - 1 - at);
    return parseInt(text.slice(offset, offset + 2), 16);
  });
}

/** `count` independent, exactly uniform elements. */
export function uniformElements(q, count, random) {
  const limit = ((1n << 64n) / q) * q;
  const found = [];
  while (found.length < count) {
    const word = uniformBits(64, random);
    if (word < limit) found.push(word % q);
  }
  return found;
}

/** A uniform number of this many bits. */
export const uniformBits = (bits, random) => bigEndian(random(bits / 8));

/** The smallest prime above a number below 2^63. */
export function smallestPrimeAbove(bound) {
  let candidate = bound + 1n;
  while (!isPrime(candidate)) candidate += 1n;
  return candidate;
}

function isPrime(n) {
  if (n < 2n) return false;
  const small = WITNESSES.find((witness) => n % witness === 0n);
  if (small !== undefined) return n === small;
  return WITNESSES.every((witness) => passesMillerRabin(n, witness));
}

/** One round of the Miller-Rabin test. */
function passesMillerRabin(n, base) {
  let odd = n - 1n;
  let twos = 0;
  for (; odd % 2n === 0n; odd /= 2n) twos += 1;
  let value = power(base, odd, n);
  if (value === 1n || value === n - 1n) return true;
  for (let round = 1; round < twos; round += 1) {
    value = (value * value) % n;
    if (value === n - 1n) return true;
  }
  return false;
}

function power(base, exponent, n) {
  let result = 1n;
  let factor = base % n;
  for (let left = exponent; left; left >>= 1n) {
    if (left & 1n) result = (result * factor) % n;
    factor = (factor * factor) % n;
  }
  return result;
}

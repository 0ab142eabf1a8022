// Exact sampling from a finite distribution: 128 uniform bits are compared with integers, without
// any rounding. The Laplace table is computed here from epsilon and h; its hash must be the
// published one.

import { hex, textBytes } from "./bytes.js";
import { taggedHash } from "./digests.js";
import { uniformBits } from "./field.js";

const BITS = 128n;
const ONE = 1n << BITS;
const FIXED = 256n; // fractional bits of probabilities while a table is made
const WORKING = 384n; // fractional bits of e^(-epsilon/2) and of the recurrence
const TABLE_BITS = 136; // the table ends where e^(-epsilon z / 2) falls below 2^-136

/** 1 with probability heads / 2^128, else 0. */
export const coinTable = (heads) => ({ values: [1, 0], cumulative: [heads, ONE] });

/** A random outcome: the first whose cumulative probability exceeds 128 uniform bits. */
export const draw = (table, random) => lookup(table, uniformBits(128, random));

/** The outcome for these bits, by binary search. */
export function lookup(table, bits) {
  let low = 0;
  let high = table.cumulative.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bits < table.cumulative[middle]) high = middle;
    else low = middle + 1;
  }
  return table.values[low];
}

/** The hash of a table, as in published parameters. */
export async function tableDigest(table) {
  const rows = table.values.map((value, at) => `${value} ${table.cumulative[at]}\n`);
  return hex(await taggedHash("table", textBytes(rows.join(""))));
}

/** The table of one user's noise in one entry, with its total variation distance from the ideal. */
export function laplaceTable(epsilonUnits, epsilon, h) {
  const length = Math.ceil((TABLE_BITS * Math.log(2)) / (epsilon / 2));
  const ideal = upperHalf(epsilonUnits, h, length);
  const step = 1n << (FIXED - BITS);
  const half = step >> 1n;
  // Rounded to 128 bits; the middle takes the rest, so that all probabilities add up to exactly 1.
  const sides = ideal.slice(1).map((weight) => (weight + half) / step);
  const middle = ONE - 2n * sum(sides);
  const moved = [middle, ...sides].map((weight, at) => magnitude(weight * step - ideal[at]));
  const cut = (1n << FIXED) - ideal[0] - 2n * sum(ideal.slice(1));
  const distance = Number(moved[0] + 2n * sum(moved.slice(1)) + cut) / 2 ** (Number(FIXED) + 1);
  return { ...symmetric(sides, middle), distance };
}

function symmetric(sides, middle) {
  const weights = [...sides.slice().reverse(), middle, ...sides];
  let running = 0n;
  const cumulative = weights.map((weight) => (running += weight));
  return { values: weights.map((_, at) => at - sides.length), cumulative };
}

/**
 * P(X - X' = z) times 2^256 for z = 0..length, where X and X' are negative binomial with shape 1/h
 * and ratio a = e^(-epsilon/2). Computed downward from twice the length by
 *   ((z-1) h + 1) g[z-1] = (a + 1/a) z h g[z] - ((z+1) h - 1) g[z+1].
 */
function upperHalf(epsilonUnits, h, length) {
  const a = exponentialOfMinus((epsilonUnits << (WORKING - BITS)) / 2n);
  const both = a + (1n << (2n * WORKING)) / a;
  const users = BigInt(h);
  const distribution = [0n, 1n << WORKING];
  for (let z = BigInt(2 * length); z > 0n; z -= 1n) {
    const [after, now] = distribution.slice(-2);
    const next = ((both * z * users * now) >> WORKING) - ((z + 1n) * users - 1n) * after;
    distribution.push(next / ((z - 1n) * users + 1n));
  }
  distribution.reverse();
  const whole = distribution[0] + 2n * sum(distribution.slice(1));
  return distribution.slice(0, length + 1).map((weight) => (weight << FIXED) / whole);
}

/** e^-x for x >= 0, both with WORKING fractional bits: the series at x / 2^k, squared k times. */
function exponentialOfMinus(x) {
  const extra = 64n;
  const one = 1n << (WORKING + extra);
  const halvings = BigInt(Math.max(0, (x >> WORKING).toString(2).length + 8));
  const small = (x << extra) >> halvings;
  let total = 0n;
  let term = one;
  for (let n = 1n; term !== 0n; n += 1n) {
    total += term;
    term = -((term * small) >> (WORKING + extra)) / n;
  }
  for (let left = halvings; left > 0n; left -= 1n) {
    total = (total * total) >> (WORKING + extra);
  }
  return total >> extra;
}

const sum = (values) => values.reduce((total, value) => total + value, 0n);
const magnitude = (value) => (value < 0n ? -value : value);

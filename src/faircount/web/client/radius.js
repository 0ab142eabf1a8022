// The distribution of the noise radius as a table of whole numbers, with a bound of its distance
// from the ideal distribution, exactly as the Python package computes them:
//
//   P(rho) ~ exp(-epsilon rho) prod |Ball_q(rho)|
//
// The powers of exp(-epsilon) have 512 + 3 D fractional bits for D dimensions: the radius lies near
// D / epsilon, where shorter powers would vanish and rule large noise out.

import { ballSizes } from "./balls.js";
import { makeBreaks } from "./breaks.js";
import { insist } from "./refusal.js";

const EPSILON_BITS = 128n;
const TABLE_BITS = 128n;
const FIXED = 256n; // fractional bits of probabilities while the distance is added up
const NEGLIGIBLE_BITS = 140n; // rows end where a falling weight is below 2^-140 of their sum
const MAX_TABLE_BITS = 2 ** 27; // of all powers; about half a minute on a slow phone

/**
 * {cumulative, distanceUnits}: P(radius <= r) times 2^128 for every r, and an upper bound of the
 * total variation distance from the ideal distribution, times 2^256. Epsilon is in units of 2^-128.
 */
export async function radiusTable(balls, scaled) {
  const takeBreak = makeBreaks(); // a long table must not keep the page from reacting
  const dimension = balls.reduce((sum, ball) => sum + ball.dimension, 0);
  const bits = BigInt(512 + 3 * dimension);
  const factor = exponentialFloor(scaled, bits);
  const sizes = productSizes(balls);
  // The ideal weight lies between powers that are rounded down and powers that are rounded up.
  const weights = [];
  const upper = [];
  let power = 1n << bits;
  let powerAbove = power;
  let total = 0n;
  for (;;) {
    const size = sizes.next().value;
    const weight = power * size;
    weights.push(weight);
    // The powers differ in their last digits alone, so this is one long product and not two.
    upper.push(weight + (powerAbove - power) * size);
    total += weight;
    if (isNegligible(weights, total)) break;
    const isShort = weights.length * Number(bits) <= MAX_TABLE_BITS;
    insist(isShort, "malformed", "the table of the noise is too long");
    power = (power * factor) >> bits;
    powerAbove = shiftUp(powerAbove * (factor + 1n), bits);
    await takeBreak();
  }
  let running = 0n;
  const cumulative = [];
  for (const weight of weights) {
    running += weight;
    cumulative.push((running << TABLE_BITS) / total);
    await takeBreak();
  }
  powerAbove = shiftUp(powerAbove * (factor + 1n), bits);
  const powers = { power: powerAbove, factor: factor + 1n, bits };
  const tail = await tailBound(balls, sizes, weights.length, powers, takeBreak);
  const distance = await distanceUnits(cumulative, weights, upper, tail, takeBreak);
  return { cumulative, distanceUnits: distance };
}

function isNegligible(weights, total) {
  if (weights.length < 2) return false;
  const last = weights.at(-1);
  return last < weights.at(-2) && last << NEGLIGIBLE_BITS < total;
}

/** Products of the sizes of all balls at the radii 0, 1, 2, ... */
function* productSizes(balls) {
  const counts = new Map();
  for (const ball of balls) {
    const name = JSON.stringify(ball);
    const { count = 0n } = counts.get(name) ?? {};
    counts.set(name, { ball, count: count + 1n });
  }
  const columns = [...counts.values()].map(({ ball, count }) => [ballSizes(ball), count]);
  for (;;) {
    yield columns.reduce((size, [sizes, count]) => size * sizes.next().value ** count, 1n);
  }
}

/**
 * An upper bound of the sum of all weights from radius `start` on. A ball of dimension d grows from
 * r to r + 1 by a factor of at most (r + 1) / (r + 1 - d) if r >= d (Stanley), which falls with r.
 * Once the weights surely fall by a ratio below 1, the geometric series bounds what follows.
 */
async function tailBound(balls, sizes, start, { power: first, factor, bits }, takeBreak) {
  const one = 1n << bits;
  const dimensions = balls.map((ball) => ball.dimension);
  const largest = Math.max(...dimensions);
  let power = first;
  let total = 0n;
  for (let radius = start; ; radius += 1) {
    const weight = power * sizes.next().value;
    if (radius >= largest) {
      const grown = factor * BigInt(radius + 1) ** BigInt(balls.length);
      const kept = dimensions.reduce((left, d) => left * BigInt(radius + 1 - d), 1n) << bits;
      // The ratio tends to exp(-epsilon); half the gap between that and 1 is close enough.
      if (2n * (kept - grown) * one > kept * (one - factor)) {
        return total + divideUp(weight * kept, kept - grown);
      }
    }
    total += weight;
    power = shiftUp(power * factor, bits);
    await takeBreak();
  }
}

/**
 * The ideal probability of a row lies between weight / (sum of upper + tail) and
 * upper / (sum of weights); the distance is half the sum of all differences, rounded up.
 */
async function distanceUnits(cumulative, weights, upper, tail, takeBreak) {
  const leastSum = sum(weights);
  const largestSum = sum(upper) + tail;
  let moved = divideUp(tail << FIXED, leastSum);
  let before = 0n;
  for (const [at, entry] of cumulative.entries()) {
    const drawn = (entry - before) << (FIXED - TABLE_BITS);
    before = entry;
    const below = magnitude(drawn - (weights[at] << FIXED) / largestSum);
    const above = magnitude(divideUp(upper[at] << FIXED, leastSum) - drawn);
    moved += below > above ? below : above;
    await takeBreak();
  }
  return (moved + 1n) / 2n;
}

/** floor(2^bits exp(-scaled / 2^128)), exactly: more digits if two results are possible. */
export function exponentialFloor(scaled, bits) {
  for (let guard = 64n; ; guard *= 2n) {
    const [low, high] = exponentialBounds(scaled, bits + guard);
    if (low >> guard === high >> guard) return low >> guard;
  }
}

/** Integers around 2^bits exp(-scaled / 2^128): a series at a small argument, squared back. */
function exponentialBounds(scaled, bits) {
  const length = BigInt(scaled.toString(2).length);
  const halvings = length - EPSILON_BITS + 9n > 0n ? length - EPSILON_BITS + 9n : 0n;
  const work = bits + 2n * halvings + 64n;
  const one = 1n << work;
  const argument = (scaled << work) >> (EPSILON_BITS + halvings);
  // exp(x) for x > 0: all terms are positive, and every rounding makes the sum smaller.
  let total = one;
  let term = one;
  let count = 0n;
  while (term) {
    count += 1n;
    term = ((term * argument) >> work) / count;
    total += term;
  }
  // The argument is too small by less than 1, every term by less than 3, and the terms that are
  // left out add up to less than 1.
  let low = (one << work) / (total + 3n * count + 4n);
  let high = divideUp(one << work, total);
  for (let left = halvings; left > 0n; left -= 1n) {
    low = (low * low) >> work;
    high = shiftUp(high * high, work);
  }
  return [low >> (work - bits), shiftUp(high, work - bits)];
}

const sum = (values) => values.reduce((total, value) => total + value, 0n);
const magnitude = (value) => (value < 0n ? -value : value);
const divideUp = (value, divisor) => (value + divisor - 1n) / divisor;
const shiftUp = (value, bits) => -(-value >> bits);

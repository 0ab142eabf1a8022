// The laws of single cells, and of sums of cells, under the joint noise of both servers: for
// intervals. Given the radius, the noise of a block is uniform in its ball; the law of a cell is
// the mixture over the radius. Doubles, exact up to rounding; nothing drawn depends on them.
//
// A law is symmetric: {half}, where half[z] is the probability of the value z, and of -z, of one
// server.

import { ballSizes } from "./balls.js";

const NEGLIGIBLE = 1e-20; // radii with a smaller probability are left out
const FIRST_FACTORIALS = 1024;
const LARGE = 1e200; // sums are divided by it before they leave the range of doubles

/** The law of the noise of one server in a sum of `terms` cells of the ball at `place`. */
export function cellLaw({ balls, table }, place, terms = 1) {
  const radii = radiusLaw(table);
  const ball = balls[place];
  if (ball.kind === "cube") return normalize(cubeHalf(ball, radii));
  if (ball.kind === "limited") return normalize(limitedHalf(ball, radii));
  const fewer = Math.min(terms, ball.cells - terms); // the other cells have the negative sum
  return normalize(zeroSumHalf(ball, radii, fewer));
}

/** Probabilities of the radii, up to the last one that matters. */
function radiusLaw({ cumulative }) {
  const law = cumulative.map((entry, at) => Number(entry - (cumulative[at - 1] ?? 0n)) / 2 ** 128);
  return law.slice(0, law.findLastIndex((weight) => weight > NEGLIGIBLE) + 1);
}

function normalize(half) {
  const whole = 2 * sum(half) - half[0];
  return { half: half.map((weight) => weight / whole) };
}

/** The variance of the noise of both servers. */
export const varianceOf = ({ half }) =>
  4 * half.reduce((total, weight, value) => total + weight * value ** 2, 0);

/**
 * The largest number z with P(noise of both servers > z) at most `tail`, so that -z .. z are the
 * narrowest points with at most `tail` beyond each.
 */
export function quantileOf({ half }, tail) {
  const reach = half.length - 1;
  const above = new Float64Array(2 * reach + 2); // P(z > v) at v + reach, for one server
  for (let value = reach; value > -reach; value -= 1) {
    above[value + reach - 1] = above[value + reach] + half[Math.abs(value)];
  }
  above[2 * reach + 1] = 0;
  const beyond = (limit) => {
    let total = 0;
    for (let value = -reach; value <= reach; value += 1) {
      const at = limit - value + reach;
      if (at < 0) total += half[Math.abs(value)];
      else if (at <= 2 * reach) total += half[Math.abs(value)] * above[at];
    }
    return total;
  };
  let low = -1; // more than `tail` lies beyond -1, on the side of 0 that is the larger one
  let high = 2 * reach;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (beyond(middle) <= tail) high = middle;
    else low = middle;
  }
  return high;
}

/** A mixture of uniform laws on [-step r, step r]. */
function cubeHalf({ step }, radii) {
  const half = new Float64Array(step * (radii.length - 1) + 1);
  let height = 0;
  for (let radius = radii.length - 1; radius >= 0; radius -= 1) {
    height += radii[radius] / (2 * step * radius + 1);
    // |z| in (step (r - 1), step r] is reached from radius r on.
    half.fill(height, Math.max(0, step * (radius - 1) + 1), step * radius + 1);
  }
  return half;
}

/** By the signs of the other cells; counts are divided by r^i for i cells of one sign. */
function limitedHalf(ball, radii) {
  const { cells, limit } = ball;
  const others = cells - 1;
  const half = new Float64Array(radii.length);
  const sizes = ballSizes(ball);
  half[0] += radii[0];
  sizes.next();
  for (let radius = 1; radius < radii.length; radius += 1) {
    const logSize = logOf(sizes.next().value);
    const budget = limit * radius;
    const shares = boundedShares(others, radius, budget);
    for (let up = 0; up <= others; up += 1) {
      const ways = Array.from({ length: others - up + 1 }, (_, down) =>
        logChoose(others - up, down) + down * Math.log(radius) + Math.log(shares[down][budget]),
      );
      const log = logChoose(others, up) + up * Math.log(radius) + logSum(ways) - logSize;
      const factor = radii[radius] * Math.exp(log);
      // A cell of value x leaves budget - x to the positive ones.
      for (let x = 0; x <= radius; x += 1) half[x] += factor * shares[up][budget - x];
    }
  }
  return half;
}

/** P(sum <= b) of i uniform values in [1, top], for i <= parts and b <= most. */
function boundedShares(parts, top, most) {
  const shares = [new Float64Array(most + 1).fill(1)];
  for (let part = 1; part <= parts; part += 1) {
    const before = shares[part - 1];
    const sums = new Float64Array(most + 2);
    for (let b = 0; b <= most; b += 1) sums[b + 1] = sums[b] + before[b];
    // Row b is the mean of the row before over b - top .. b - 1.
    shares.push(before.map((_, b) => (sums[b] - sums[Math.max(b - top, 0)]) / top));
  }
  return shares;
}

/**
 * A point with positive part t has the probability g(t), the sum of P(rho) / |Ball(rho)| over all
 * rho >= t. If the chosen cells have the positive part a and the negative part a - v, the others
 * have t - a and t - a + v.
 */
function zeroSumHalf(ball, radii, terms) {
  const largest = radii.length - 1;
  const heights = logHeights(ball, radii);
  // All sums are taken of numbers that are tilted by e^(-tilt t): the height falls as fast as the
  // numbers of points grow, so that neither leaves the range of doubles where they matter.
  const mode = radii.indexOf(Math.max(...radii));
  const tilt = mode < largest ? heights[mode] - heights[mode + 1] : 0;
  const tilted = heights.map((log, t) => log + tilt * t);
  const top = Math.max(...tilted);
  const g = tilted.map((log) => Math.exp(log - top));
  const half = new Float64Array(largest + 1);
  for (let value = 0; value <= largest; value += 1) {
    const own = diagonalParts(terms, value, largest, tilt);
    const rest = diagonalParts(ball.cells - terms, -value, largest, tilt);
    let total = 0;
    own.parts.forEach((weight, a) => {
      if (weight === 0) return;
      const most = Math.min(rest.parts.length - 1, largest - own.from - a);
      for (let b = 0; b <= most; b += 1) total += weight * rest.parts[b] * g[own.from + a + b];
    });
    half[value] = total * Math.exp(own.scale + rest.scale + top);
  }
  return half;
}

/** log g(t) for t = 0 .. largest. */
function logHeights(ball, radii) {
  const sizes = ballSizes(ball);
  const logs = radii.map((weight) => Math.log(weight) - logOf(sizes.next().value));
  for (let at = logs.length - 2; at >= 0; at -= 1) logs[at] = logSum([logs[at], logs[at + 1]]);
  return logs;
}

/**
 * The numbers of vectors of so many cells with positive part a and negative part a - value, for
 * a = from .. largest, tilted and divided by e^scale.
 */
function diagonalParts(cells, value, largest, tilt) {
  const from = Math.max(value, 0);
  const last = Math.min(largest, largest + value);
  const logs = [];
  for (let a = from; a <= last; a += 1) logs.push(logParts(cells, a, a - value) - tilt * a);
  const scale = Math.max(...logs);
  return { from, scale, parts: logs.map((log) => Math.exp(log - scale)) };
}

/**
 * The logarithm of the number of vectors with these positive and negative parts: with i positive
 * cells there are C(M, i) C(a - 1, i - 1) C(M - i + b - 1, b). Every such number follows from the
 * one before by a ratio.
 */
function logParts(cells, a, b) {
  if (a === 0) return logChoose(cells + b - 1, b);
  if (cells === 1) return b === 0 ? 0 : -Infinity;
  let log = Math.log(cells) + logChoose(cells - 2 + b, b); // that with one positive cell is 1
  let number = 1;
  let total = 1;
  for (let i = 1; i < Math.min(cells, a); i += 1) {
    const left = cells - i;
    // The last one has no cell that could be negative.
    const fewer = left > 1 ? (left - 1) / (left - 1 + b) : Number(b === 0);
    number *= (left / (i + 1)) * ((a - i) / i) * fewer;
    total += number;
    if (total > LARGE) {
      number /= LARGE;
      total /= LARGE;
      log += Math.log(LARGE);
    }
  }
  return log + Math.log(total);
}

const factorials = [0];

/** log n!, from a table of sums that is made longer when it is needed. */
function logFactorial(n) {
  if (n >= factorials.length) extendFactorials(Math.max(FIRST_FACTORIALS, 2 * n));
  return factorials[n];
}

function extendFactorials(last) {
  let lost = 0; // what rounding has cut off so far (Kahan)
  for (let n = factorials.length; n <= last; n += 1) {
    const step = Math.log(n) - lost;
    const total = factorials[n - 1] + step;
    lost = total - factorials[n - 1] - step;
    factorials.push(total);
  }
}

const logChoose = (n, k) => logFactorial(n) - logFactorial(k) - logFactorial(n - k);

function logSum(logs) {
  const top = Math.max(...logs);
  if (top === -Infinity) return top;
  return top + Math.log(logs.reduce((total, log) => total + Math.exp(log - top), 0));
}

/** The logarithm of a BigInt of any size. */
function logOf(whole) {
  const shift = Math.max(0, whole.toString(16).length * 4 - 1000);
  return Math.log(Number(whole >> BigInt(shift))) + shift * Math.LN2;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

// The distributions of single cells, and of sums of cells, under the joint noise of both servers:
// for intervals. Given the radius, the noise of a block is uniform in its ball; the distribution of a
// cell is the mixture over the radius. Doubles, exact up to rounding; nothing drawn depends on them.
//
// A distribution is symmetric: {half, known}, where half[z] is the probability of the value z, and
// of -z, of one server, and `known` are its quantiles so far.

import { ballSizes } from "./balls.js";
import { logChoose, logOf, logSum } from "./logarithms.js";
import { zeroSumHalf } from "./zero_sum_distribution.js";

const NEGLIGIBLE = 1e-20; // the radii end where their probabilities are smaller
const UNIMPORTANT = 1e-15; // a radius with a smaller probability is not worth the time

/** The distribution of the noise of one server in a sum of `terms` cells of the ball at `place`. */
export function cellDistribution({ balls, table }, place, terms = 1) {
  const radii = radiusDistribution(table);
  const ball = balls[place];
  if (ball.kind === "cube") return normalize(cubeHalf(ball, radii));
  if (ball.kind === "limited") return normalize(limitedHalf(ball, radii));
  const fewer = Math.min(terms, ball.cells - terms); // the other cells have the negative sum
  return normalize(zeroSumHalf(ball, radii, fewer));
}

/** Probabilities of the radii, up to the last one that matters. */
function radiusDistribution({ cumulative }) {
  const units = cumulative.map((entry, at) => entry - (cumulative[at - 1] ?? 0n));
  const weights = units.map((unit) => Number(unit) / 2 ** 128);
  return weights.slice(0, weights.findLastIndex((weight) => weight > NEGLIGIBLE) + 1);
}

function normalize(half) {
  const kept = half.subarray(0, half.findLastIndex((weight) => weight > 0) + 1);
  const whole = 2 * sum(kept) - kept[0];
  return { half: kept.map((weight) => weight / whole), known: new Map() };
}

/** The variance of the noise of both servers. */
export const varianceOf = ({ half }) =>
  4 * half.reduce((total, weight, value) => total + weight * value ** 2, 0);

/**
 * The smallest number z with P(noise of both servers > z) at most `tail`: -z .. z are the narrowest
 * points with at most `tail` beyond each. A distribution remembers what was asked.
 */
export function quantileOf(distribution, tail) {
  const { half, known } = distribution;
  if (!known.has(tail)) known.set(tail, findQuantile(half, tail));
  return known.get(tail);
}

function findQuantile(half, tail) {
  const reach = half.length - 1;
  const above = new Float64Array(2 * reach + 1); // P(z > v) at v + reach, for one server
  for (let value = reach; value > -reach; value -= 1) {
    above[value + reach - 1] = above[value + reach] + half[Math.abs(value)];
  }
  const beyond = (limit) => {
    let total = 0;
    // With less than limit - reach from one server, both together cannot pass the limit.
    for (let value = limit - reach; value <= reach; value += 1) {
      total += half[Math.abs(value)] * above[limit - value + reach];
    }
    return total;
  };
  let low = -1; // by symmetry at least half of the probability lies beyond -1
  let high = 2 * reach;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (beyond(middle) <= tail) high = middle;
    else low = middle;
  }
  return high;
}

/** A mixture of uniform distributions on [-step r, step r]. */
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
    const size = sizes.next().value;
    if (radii[radius] < UNIMPORTANT) continue;
    const logSize = logOf(size);
    const budget = limit * radius;
    const shares = boundedShares(others, radius, budget);
    for (let up = 0; up <= others; up += 1) {
      const ways = Array.from({ length: others - up + 1 }, (_, down) =>
        logChoose(others - up, down) + down * Math.log(radius) + Math.log(shares[down][budget]),
      );
      const log = logChoose(others, up) + up * Math.log(radius) + logSum(ways) - logSize;
      const factor = radii[radius] * Math.exp(log);
      if (factor < UNIMPORTANT) continue;
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
    // Entry b is the mean of the row before over b - top .. b - 1.
    const row = new Float64Array(most + 1);
    for (let b = 0; b <= most; b += 1) row[b] = (sums[b] - sums[Math.max(b - top, 0)]) / top;
    shares.push(row);
  }
  return shares;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

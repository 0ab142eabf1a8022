// The distribution of a sum of M of the N cells of a zero-sum ball, without adding up all points:
// that would take R^3 steps for radii up to R, which are in the thousands where epsilon is small.
//
// Every point whose positive part is at most rho has the weight h(rho) = P(rho) / |Ball(rho)|. The
// points with the sum v are coefficients of a power series:
//
//   P(v) = sum over rho of h(rho) [x^rho] K_M(v) K_(N-M)(v) / (1 - x)
//   K_M(v) = x^(v/2) C(M-1+v, v) sum over k < M of C(M-1, k) (M)_k / (v+1)_k (x / (1-x))^k
//
// K_M(v) counts the vectors of M cells with the sum v, each with the weight x^(|z|/2), where |z| is
// the sum of absolute values. A coefficient of a series is a mean over a circle in the complex
// plane. The circle runs through the saddle point, so that nothing cancels, and few of its points
// matter.

import { ballSizes } from "./balls.js";
import { logChoose, logFactorial, logOf } from "./logarithms.js";

const ROUNDING = 1e-14; // what is smaller, compared with the largest number, is left out
const QUIET_NODES = 8; // so many points in a row without weight end the circle

/** P(0), P(1), ... up to a factor. `radii` are the probabilities of the radii. */
export function zeroSumHalf(ball, radii, terms) {
  if (radii.length === 1) return Float64Array.of(1); // no noise at all
  const logs = logWeights(ball, radii);
  const tilt = slopeAtMode(radii, logs);
  const circle = circleOf(logs, tilt, turnOf(ball.dimension) / tilt);
  const half = new Float64Array(radii.length);
  let first = null;
  for (let value = 0; value < half.length; value += 1) {
    const own = countingSum(terms, value, circle.reach);
    const rest = countingSum(ball.cells - terms, value, circle.reach);
    const log = own.log + rest.log - tilt * value;
    first ??= log;
    half[value] = Math.exp(log - first) * meanOverCircle(circle, own.terms, rest.terms, value);
    if (half[value] < 10 * ROUNDING * half[0]) {
      half[value] = 0;
      break;
    }
  }
  return half;
}

/** log h(rho) for all radii. */
function logWeights(ball, radii) {
  const sizes = ballSizes(ball);
  return radii.map((weight) => Math.log(weight) - logOf(sizes.next().value));
}

/** How fast h falls where the radius is likely: a tilt by which all radii have similar weights. */
function slopeAtMode(radii, logs) {
  const largest = radii.reduce((most, weight) => Math.max(most, weight), 0);
  const mode = Math.min(radii.indexOf(largest), radii.length - 2);
  return logs[mode] - logs[mode + 1];
}

/**
 * Where the terms t^d e^-t of the series have vanished, which are largest at t = d. Coefficients
 * that are one turn of the circle apart are not told from each other.
 */
function turnOf(dimension) {
  let turn = 2;
  while (dimension * (Math.log(turn) - turn + 1) > Math.log(ROUNDING)) turn += 0.5;
  return turn * dimension;
}

/**
 * The points x of the upper half of a circle that matter: [{angle, re, im, weightRe, weightIm}],
 * where re and im are those of x / (1 - x), divided by its largest absolute value, `reach`.
 */
function circleOf(logs, tilt, turn) {
  const size = Math.ceil(Math.max(turn, logs.length)) + 1;
  const tilted = logs.map((log, rho) => log + tilt * rho);
  const top = tilted.reduce((most, log) => Math.max(most, log), -Infinity);
  const weights = tilted.map((log) => Math.exp(log - top));
  const radius = Math.exp(-tilt);
  const reach = radius / (1 - radius);
  const nodes = [];
  let quiet = 0;
  for (let at = 0; 2 * at <= size && quiet < QUIET_NODES; at += 1) {
    const angle = (2 * Math.PI * at) / size;
    const both = at === 0 || 2 * at === size ? 1 : 2; // the lower half has the conjugate values
    const node = makeNode(weights, radius, angle, both);
    nodes.push({ ...node, re: node.re / reach, im: node.im / reach });
    quiet = node.size > ROUNDING * nodes[0].size ? 0 : quiet + 1;
  }
  return { nodes, reach };
}

function makeNode(weights, radius, angle, both) {
  let sumRe = 0;
  let sumIm = 0;
  weights.forEach((weight, rho) => {
    sumRe += weight * Math.cos(angle * rho);
    sumIm -= weight * Math.sin(angle * rho);
  });
  const [re, im] = [radius * Math.cos(angle), radius * Math.sin(angle)];
  const length = (1 - re) ** 2 + im ** 2; // |1 - x|^2
  return {
    angle,
    size: Math.hypot(sumRe, sumIm),
    re: (re * (1 - re) - im * im) / length,
    im: im / length,
    weightRe: (both * (sumRe * (1 - re) - sumIm * im)) / length,
    weightIm: (both * (sumIm * (1 - re) + sumRe * im)) / length,
  };
}

/**
 * The sum in K_M(v) as coefficients of powers of x / (1 - x) / reach, divided by e^log; the
 * binomial coefficient in front of it is part of the logarithm.
 */
function countingSum(cells, value, reach) {
  const logs = Array.from({ length: cells }, (_, k) => {
    const rising = logFactorial(cells + k - 1) - logFactorial(cells - 1);
    const falling = logFactorial(value) - logFactorial(value + k);
    return logChoose(cells - 1, k) + rising + falling + k * Math.log(reach);
  });
  const top = Math.max(...logs);
  const terms = Float64Array.from(logs, (log) => Math.exp(log - top));
  return { log: top + logChoose(cells - 1 + value, value), terms };
}

/** The real part of all weights times both sums times the power of x. */
function meanOverCircle({ nodes }, own, rest, value) {
  let total = 0;
  for (const { angle, re, im, weightRe, weightIm } of nodes) {
    const [firstRe, firstIm] = evaluate(own, re, im);
    const [secondRe, secondIm] = evaluate(rest, re, im);
    const productRe = firstRe * secondRe - firstIm * secondIm;
    const productIm = firstRe * secondIm + firstIm * secondRe;
    const [turnRe, turnIm] = [Math.cos(angle * value), Math.sin(angle * value)];
    const wholeRe = weightRe * turnRe - weightIm * turnIm;
    const wholeIm = weightRe * turnIm + weightIm * turnRe;
    total += wholeRe * productRe - wholeIm * productIm;
  }
  return total;
}

/** A polynomial at a complex point, by Horner's rule. */
function evaluate(terms, re, im) {
  let sumRe = 0;
  let sumIm = 0;
  for (let k = terms.length - 1; k >= 0; k -= 1) {
    const next = sumRe * re - sumIm * im + terms[k];
    sumIm = sumRe * im + sumIm * re;
    sumRe = next;
  }
  return [sumRe, sumIm];
}

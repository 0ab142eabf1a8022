// A published result as shares of the accepted reports, with 95% intervals. The intervals come from
// the exact distribution of the noise, or of the sampling, and cover that alone: they describe the
// people who were counted, not people who were never asked.

import { MECHANISMS } from "./mechanisms.js";
import { binomial } from "./privacy.js";

const TAIL = 0.025;

/** [{item, estimate, low, high}] as fractions of the accepted reports. */
export function estimates(params, published) {
  const size = published.included;
  const { p, noise } = MECHANISMS[params.mechanism].counted(params.drawn, size);
  const estimate = noise ? estimateNoisy(noise, size) : estimateSampled(p, size);
  return params.items.map((item, at) => ({ item, ...estimate(Number(published.counts[at])) }));
}

/** For counts with added noise: subtract its mean, and its quantiles for the interval. */
function estimateNoisy([first, law], size) {
  const mean = law.reduce((sum, probability, at) => sum + probability * (first + at), 0);
  const least = first + quantile(law, TAIL);
  const most = first + quantile(law, 1 - TAIL);
  return (count) => ({
    estimate: (count - mean) / size,
    low: clampedShare(count - most, size),
    high: clampedShare(count - least, size),
  });
}

/** The first position at which the cumulative distribution reaches a probability. */
function quantile(law, probability) {
  let total = 0;
  const at = law.findIndex((weight) => (total += weight) >= probability);
  return at < 0 ? law.length - 1 : at;
}

/**
 * For sampled counts: the numbers of holders for which the count is not in a tail
 * (Clopper-Pearson).
 */
function estimateSampled(p, size) {
  const low = (count) => firstPassing(size, (holders) => 1 - below(count - 1, holders, p) > TAIL);
  const high = (count) => firstPassing(size, (holders) => below(count, holders, p) <= TAIL) - 1;
  return (count) => ({
    estimate: count / p / size,
    low: clampedShare(low(count), size),
    high: clampedShare(high(count), size),
  });
}

/** P(Bin(n, p) <= count). */
function below(count, n, p) {
  const [first, law] = binomial(n, p);
  return law.slice(0, Math.max(0, count - first + 1)).reduce((sum, weight) => sum + weight, 0);
}

/** The first of 0..most + 1 that passes a test which every larger number passes too. */
function firstPassing(most, passes) {
  let low = 0;
  let high = most + 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const clampedShare = (count, size) => Math.min(1, Math.max(0, count / size));

// A published result as estimates with 95% intervals. The intervals come from the exact
// distribution of the noise, or of the sampling, and cover that alone: they describe the people who
// were counted, not people who were never asked. Joint noise has its estimates in
// sheet_estimates.js. For the other mechanisms it is known how many were counted: counts with
// independent noise are fitted to it, and then the noise of an item is its own minus the mean of
// all.

import { alikeEstimates, baseEstimates } from "./leveled_estimates.js";
import { MECHANISMS } from "./mechanisms.js";
import { binomial } from "./privacy.js";
import { sheetEstimates } from "./sheet_estimates.js";

const TAIL = 0.025;

// Counts are fitted up to this many steps of 1 / items per standard deviation of the noise.
const FINEST_FIT = 50000;

/** The rows of every question, as sheet_estimates.js describes them. */
export function estimates(params, published) {
  const { drawn, questionnaire } = params;
  const counts = published.counts.map(Number);
  if (params.answers !== null) return [estimateShares(params, counts, published.included)];
  if (drawn.levels) return baseEstimates(questionnaire, drawn, counts, published.included);
  return sheetEstimates(questionnaire, drawn.noises, counts, published.included);
}

/** What a survey with levels says besides, as leveled_estimates.js describes it; else null. */
export function estimatesIfAlike({ drawn, questionnaire }, published) {
  if (!drawn.levels) return null;
  return alikeEstimates(questionnaire, drawn, published.counts.map(Number), published.included);
}

function estimateShares(params, counts, size) {
  const { p, noise, isPaired } = MECHANISMS[params.mechanism].counted(params.drawn, size);
  let estimate = estimateSampled(p, size);
  if (noise && !isPaired && fitsTotal(noise(1), counts.length)) {
    estimate = estimateFitted(noise, counts, size);
  } else if (noise) {
    estimate = estimateNoisy(noise(1), size);
  }
  const kind = { measure: "share", ofAnswered: false };
  return counts.map((count, answer) => ({ answer, ...kind, ...estimate(count) }));
}

function meanOf([first, distribution]) {
  return distribution.reduce((sum, probability, at) => sum + probability * (first + at), 0);
}

function fitsTotal([first, distribution], items) {
  const mean = meanOf([first, distribution]);
  const squares = distribution.map((weight, at) => weight * (first + at - mean) ** 2);
  const variance = squares.reduce((sum, square) => sum + square, 0);
  return items * Math.sqrt(variance) <= FINEST_FIT;
}

/**
 * For all counts with independent noise: they are moved by equal amounts until they add up to the
 * number of people. In steps of 1 / items the noise of one is then (items - 1) times its own minus
 * that of all others; whole numbers of holders within its quantiles make the interval.
 */
function estimateFitted(noise, counts, size) {
  const items = counts.length;
  const excess = counts.reduce((sum, count) => sum + count, 0) - size;
  const own = noise(1);
  const others = noise(items - 1);
  const reach = (items - 1) * own[1].length + others[1].length;
  const below = fittedBelow(own, others, items);
  // The narrowest steps with at most TAIL beyond each.
  const least = firstPassing(2 * reach, (step) => below(step - reach) > TAIL) - reach;
  const most = firstPassing(2 * reach, (step) => 1 - below(step - reach) <= TAIL) - reach;
  return (count) => {
    const low = Math.ceil((items * count - excess - most) / items);
    const high = Math.floor((items * count - excess - least) / items);
    return {
      estimate: (count - excess / items) / size,
      // With very little noise there may be no whole number between them.
      low: clampedShare(Math.min(low, high), size),
      high: clampedShare(Math.max(low, high), size),
    };
  };
}

/** P((items - 1) e - others <= step), for the noise e of an item and the sum of all others'. */
function fittedBelow([first, distribution], [firstOther, otherDistribution], items) {
  let total = 0;
  const below = [0, ...otherDistribution.map((weight) => (total += weight))];
  return (step) =>
    distribution.reduce((sum, weight, at) => {
      // The others must add up to at least this much; in the array it is a position.
      const position = (items - 1) * (first + at) - step - firstOther;
      return sum + weight * (1 - below[Math.min(Math.max(position, 0), otherDistribution.length)]);
    }, 0);
}

/** For counts with added noise: subtract its mean, and its quantiles for the interval. */
function estimateNoisy([first, distribution], size) {
  const mean = meanOf([first, distribution]);
  const least = first + quantile(distribution, TAIL);
  const most = first + quantile(distribution, 1 - TAIL);
  return (count) => ({
    estimate: (count - mean) / size,
    low: clampedShare(count - most, size),
    high: clampedShare(count - least, size),
  });
}

/** The first position at which the cumulative distribution reaches a probability. */
function quantile(distribution, probability) {
  let total = 0;
  const at = distribution.findIndex((weight) => (total += weight) >= probability);
  return at < 0 ? distribution.length - 1 : at;
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
  const [first, distribution] = binomial(n, p);
  const weights = distribution.slice(0, Math.max(0, count - first + 1));
  return weights.reduce((sum, weight) => sum + weight, 0);
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

// A published result as shares of the people counted, with 95% intervals: from the law of what was added, or of how many
// were counted. They cover what the counted people said, not what others would have said.

import { MECHANISMS } from "./mechanisms.js";
import { binomial } from "./privacy.js";

const TAIL = 0.025;

/** [{item, estimate, low, high}] as fractions of the people counted. */
export function estimates(params, published) {
  const size = published.included;
  const { p, noise } = MECHANISMS[params.mechanism].counted(params.drawn, size);
  const of = noise ? noisy(noise, size) : sampled(p, size);
  return params.items.map((item, at) => ({ item, ...of(Number(published.counts[at])) }));
}

function noisy([first, law], size) {
  const mean = law.reduce((sum, each, at) => sum + each * (first + at), 0);
  const [least, most] = [first + quantile(law, TAIL), first + quantile(law, 1 - TAIL)];
  return (count) => ({
    estimate: (count - mean) / size,
    low: between(count - most, size),
    high: between(count - least, size),
  });
}

/** The first place at which the cumulative law reaches a probability. */
function quantile(law, probability) {
  let total = 0;
  const at = law.findIndex((each) => (total += each) >= probability);
  return at < 0 ? law.length - 1 : at;
}

/** Numbers of holders of whom a count like this one is not surprising. */
function sampled(p, size) {
  const low = (count) => firstWhole(size, (holders) => 1 - below(count - 1, holders, p) > TAIL);
  const high = (count) => firstWhole(size, (holders) => below(count, holders, p) <= TAIL) - 1;
  return (count) => ({
    estimate: count / p / size,
    low: between(low(count), size),
    high: between(high(count), size),
  });
}

/** P(Bin(n, p) <= count). */
function below(count, n, p) {
  const [first, law] = binomial(n, p);
  return law.slice(0, Math.max(0, count - first + 1)).reduce((sum, each) => sum + each, 0);
}

/** The first of 0..most + 1 that is enough, where enough stays enough. */
function firstWhole(most, enough) {
  let [low, high] = [0, most + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (enough(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const between = (count, size) => Math.min(1, Math.max(0, count / size));

// The exact privacy of a result, computed from the parameters. The page checks the promise against
// it.
//
// Neighbouring inputs differ in one participant's item: one count rises by one, another falls. A
// delta is the sum of max(0, P - e^epsilon Q) over all outcomes of the two distributions. Floating
// point leaves about twelve digits; comparisons allow for one part in 10^9.

// Outcomes less likely than e^-650 count as impossible: their probabilities, and ratios of them,
// would be too small for the full precision of a double.
const TAIL = 650;
const SLACK = 1e-9;
const LARGEST_EXPONENT = 700;

/** Whether a computed value is at most the promised one, up to rounding. */
export const isWithin = (value, promised) => value <= promised * (1 + SLACK);

/** [first point, probabilities] of Bin(n, p), as far as doubles represent them. */
export function binomial(n, p) {
  const mean = n * p;
  const variance = n * p * (1 - p);
  // Bernstein's inequality: beyond this distance from the mean the tail is below e^-TAIL.
  const half = TAIL / 3 + Math.sqrt((TAIL / 3) ** 2 + 2 * TAIL * variance) + 1;
  const low = Math.max(0, Math.floor(mean - half));
  const high = Math.min(n, Math.ceil(mean + half));
  const logs = new Float64Array(high - low + 1);
  const mode = Math.min(Math.max(Math.floor((n + 1) * p), low), high) - low;
  // Outward from the mode, so that rounding errors add up where the weights are small.
  const step = (x) => Math.log(((n - x) * (p / (1 - p))) / (x + 1));
  for (let at = mode; at < logs.length - 1; at += 1) logs[at + 1] = logs[at] + step(low + at);
  for (let at = mode; at > 0; at -= 1) logs[at - 1] = logs[at] - step(low + at - 1);
  const distribution = logs.map((log) => (log < -TAIL ? 0 : Math.exp(log)));
  const whole = distribution.reduce((total, weight) => total + weight, 0);
  return [low, distribution.map((weight) => weight / whole)];
}

/**
 * Delta of two independent counts. Each has a pair of distributions {p, q} on common points, with
 * p / q rising; the first count moves from q to p, the second from p to q.
 */
export function replaceOneDelta(up, down, epsilon) {
  // A larger epsilon has a smaller delta, and its factor would be no number that doubles have.
  const factor = Math.exp(Math.min(epsilon, LARGEST_EXPONENT));
  let at = 0;
  let belowP = 0;
  let belowQ = 0;
  let delta = 0;
  for (let x = 0; x < up.p.length; x += 1) {
    if (up.p[x] === 0) continue;
    // Outcomes y of the second count with P = up.p[x] down.q[y] >= e^epsilon Q, where
    // Q = up.q[x] down.p[y]. Both ratios are monotone, so that `at` never has to go back. Ratios and
    // not products are compared: products of small probabilities become 0, and 0 >= 0 would take
    // outcomes in that lower the sum, and claim a delta far too small.
    const limit = ratio(up.p[x], up.q[x]) / factor;
    while (at < down.p.length && ratio(down.p[at], down.q[at]) <= limit) {
      belowP += down.p[at];
      belowQ += down.q[at];
      at += 1;
    }
    delta += Math.max(0, up.p[x] * belowQ - factor * up.q[x] * belowP);
  }
  return Math.min(1, delta);
}

/** p / q; an impossible outcome is not favoured by either distribution, so it counts as 0. */
const ratio = (p, q) => (p === 0 ? 0 : p / q);

/** Delta of counts to which this many fair coins each are added. */
export function decoysDelta(coins, epsilon) {
  if (coins < 1) return 1;
  const [, distribution] = binomial(coins, 0.5);
  const pair = onCommonPoints([1, distribution], [0, distribution]);
  return replaceOneDelta(pair, pair, epsilon);
}

/**
 * Delta of sampled counts when every item has at least `crowd` other holders, for any number of
 * items.
 */
export function samplingDelta(crowd, p, epsilon) {
  if (crowd < 1 || p === 1) return p;
  const pair = samplingPair(crowd, p);
  return replaceOneDelta(pair, pair, epsilon);
}

/** The same for exactly two items, whose holders add up to `users`: the worst split of them. */
export function samplingDeltaTwoItems(users, crowd, p, epsilon) {
  const splits = Array.from({ length: users - 2 * crowd }, (_, at) => crowd + at);
  const deltas = splits.map((holders) => {
    const others = users - 1 - holders;
    return replaceOneDelta(samplingPair(holders, p), samplingPair(others, p), epsilon);
  });
  return Math.max(...deltas);
}

/**
 * Distributions of a sampled count with one more holder, and with the others alone, on the points
 * that doubles can tell from impossible ones.
 */
function samplingPair(others, p) {
  return onCommonPoints(binomial(others + 1, p), binomial(others, p));
}

/** Two distributions {p, q} on the smallest range of points that holds both. */
function onCommonPoints([lowP, distributionP], [lowQ, distributionQ]) {
  const low = Math.min(lowP, lowQ);
  const size = Math.max(lowP + distributionP.length, lowQ + distributionQ.length) - low;
  const [p, q] = [new Float64Array(size), new Float64Array(size)];
  p.set(distributionP, lowP - low);
  q.set(distributionQ, lowQ - low);
  return { p, q };
}

/** The pure epsilon if the adversary does not know this share of the noise made for `epsilon`. */
export function laplaceEpsilon(epsilon, share) {
  return share >= 1 ? epsilon : -2 * Math.log(laplaceRatios(epsilon, share, 1)[0]);
}

/** Delta at `epsilon` of the whole Laplace noise made for `made`. */
export function laplaceDelta(made, epsilon) {
  return epsilon >= made ? 0 : -Math.expm1(epsilon - made) / (1 + Math.exp(-made / 2)) ** 2;
}

/**
 * g[z+1] / g[z] for z = 0..reach-1, where g is the distribution of a share of the noise. The
 * recurrence runs downward, where it is stable, from a point so far out that its starting value
 * does not matter.
 */
function laplaceRatios(epsilon, share, reach) {
  const a = Math.exp(-epsilon / 2);
  const ratios = new Array(reach);
  let ratio = a;
  for (let z = reach + Math.ceil(20 / -Math.log(a)) + 20; z > 0; z -= 1) {
    ratio = (a * (z - 1 + share)) / ((1 + a * a) * z - a * (z + 1 - share) * ratio);
    if (z <= reach) ratios[z - 1] = ratio;
  }
  return ratios;
}

/** [first point, probabilities] of a share of the Laplace noise made for `epsilon`. */
export function laplaceDistribution(epsilon, share) {
  const [reach] = laplaceBounds(epsilon, share, 1e-12);
  let weight = 1;
  const side = laplaceRatios(epsilon, share, reach).map((ratio) => (weight *= ratio));
  const whole = 1 + 2 * side.reduce((total, point) => total + point, 0);
  return [-reach, [...side.slice().reverse(), 1, ...side].map((point) => point / whole)];
}

/**
 * A bound that the noise of all users in one entry exceeds with probability `tail`: Chernoff. Two
 * bounds where rounding decides which integer it is.
 */
export function laplaceBounds(epsilon, share, tail) {
  const a = Math.exp(-epsilon / 2);
  const top = 2 * Math.log(-Math.expm1(-epsilon / 2));
  const bounds = Array.from({ length: 399 }, (_, at) => {
    const t = (epsilon / 2) * 10 ** (-4 + (4 * at) / 399);
    const moment = share * (top - Math.log1p(-a * Math.exp(t)) - Math.log1p(-a * Math.exp(-t)));
    return (moment + Math.log(2 / tail)) / t;
  });
  const least = Math.min(...bounds);
  return [...new Set([least * (1 - SLACK), least * (1 + SLACK)].map(Math.ceil))];
}

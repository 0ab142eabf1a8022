// The exact privacy of a result, computed here from the parameters: what the page checks a promise against.
//
// Neighbours differ in one person's item: one count goes up by one, another one goes down. Every delta is
//   sum over outcomes of max(0, P - e^epsilon Q)
// of the two laws. Floating point leaves about twelve digits; comparisons allow for one part in 10^9.

const TAIL = 745; // natural logarithm: what is less likely than e^-745 is left out
const SLACK = 1e-9;

/** Whether a computed value keeps a promised one, up to rounding. */
export const keeps = (value, promised) => value <= promised * (1 + SLACK);

/** [first point, probabilities] of Bin(n, p), wherever a double can hold them. */
export function binomial(n, p) {
  const [mean, spread] = [n * p, n * p * (1 - p)];
  const half = TAIL / 3 + Math.sqrt((TAIL / 3) ** 2 + 2 * TAIL * spread) + 1;
  const [low, high] = [Math.max(0, Math.floor(mean - half)), Math.min(n, Math.ceil(mean + half))];
  const logs = new Float64Array(high - low + 1);
  const mode = Math.min(Math.max(Math.floor((n + 1) * p), low), high) - low;
  const step = (x) => Math.log(((n - x) * (p / (1 - p))) / (x + 1));
  for (let at = mode; at < logs.length - 1; at += 1) logs[at + 1] = logs[at] + step(low + at);
  for (let at = mode; at > 0; at -= 1) logs[at - 1] = logs[at] - step(low + at - 1);
  const law = logs.map(Math.exp);
  const whole = law.reduce((total, each) => total + each, 0);
  return [low, law.map((each) => each / whole)];
}

/**
 * Delta of two independent counts. Each has a pair of laws {p, q} on common points, with p / q rising; the first count
 * moves from q to p, the second from p to q.
 */
export function replaceOneDelta(up, down, epsilon) {
  const factor = Math.exp(epsilon);
  let [at, belowP, belowQ, delta] = [0, 0, 0, 0];
  for (let x = 0; x < up.p.length; x += 1) {
    if (up.p[x] === 0) continue;
    // outcomes y of the second count where P = up.p[x] down.q[y] is not below e^epsilon Q = e^epsilon up.q[x] down.p[y]
    while (at < down.p.length && up.p[x] * down.q[at] >= factor * up.q[x] * down.p[at]) {
      belowP += down.p[at];
      belowQ += down.q[at];
      at += 1;
    }
    delta += Math.max(0, up.p[x] * belowQ - factor * up.q[x] * belowP);
  }
  return Math.min(1, delta);
}

/** Delta of counts that are hidden by so many fair coins each. */
export function decoysDelta(coins, epsilon) {
  if (coins < 1) return 1;
  const [, law] = binomial(coins, 0.5);
  const pair = { p: spread([1, law], law.length + 1), q: spread([0, law], law.length + 1) };
  return replaceOneDelta(pair, pair, epsilon);
}

/** Delta of sampled counts when every item has at least `crowd` other holders, for any number of items. */
export function samplingDelta(crowd, p, epsilon) {
  if (crowd < 1 || p === 1) return p;
  const pair = samplingPair(crowd, p);
  return replaceOneDelta(pair, pair, epsilon);
}

/** The same for two items alone, whose holders add up to `users`: the worst way to split them. */
export function samplingDeltaTwoItems(users, crowd, p, epsilon) {
  const splits = Array.from({ length: users - 2 * crowd }, (_, at) => crowd + at);
  const deltas = splits.map((a) => replaceOneDelta(samplingPair(a, p), samplingPair(users - 1 - a, p), epsilon));
  return Math.max(...deltas);
}

/** Sampled counts of one more holder, and of the others alone. */
function samplingPair(others, p) {
  return { p: spread(binomial(others + 1, p), others + 2), q: spread(binomial(others, p), others + 2) };
}

function spread([low, law], size) {
  const out = new Float64Array(size);
  out.set(law, low);
  return out;
}

/** Pure epsilon left when a share of the Laplace noise meant for `epsilon` is unknown to the adversary. */
export function laplaceEpsilon(epsilon, share) {
  return share >= 1 ? epsilon : -2 * Math.log(laplaceRatios(epsilon, share, 1)[0]);
}

/** Delta at `epsilon` of the whole Laplace noise meant for `made`: two counts move, each a randomized response. */
export function laplaceDelta(made, epsilon) {
  return epsilon >= made ? 0 : -Math.expm1(epsilon - made) / (1 + Math.exp(-made / 2)) ** 2;
}

/** g[z+1] / g[z] for z = 0..reach-1, g the law of a share of the noise: downward from where the start is forgotten. */
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

/** [first point, probabilities] of a share of the Laplace noise meant for `epsilon`. */
export function laplaceLaw(epsilon, share) {
  const reach = laplaceBound(epsilon, share, 1e-12);
  const side = [];
  laplaceRatios(epsilon, share, reach).reduce((weight, ratio) => (side.push(weight * ratio), weight * ratio), 1);
  const whole = 1 + 2 * side.reduce((total, each) => total + each, 0);
  return [-reach, [...side.slice().reverse(), 1, ...side].map((each) => each / whole)];
}

/** A bound of the noise of all users in one entry, but for a probability of `tail`: Chernoff over a grid. */
export function laplaceBound(epsilon, share, tail) {
  const a = Math.exp(-epsilon / 2);
  const top = 2 * Math.log(-Math.expm1(-epsilon / 2));
  const bounds = Array.from({ length: 399 }, (_, at) => {
    const t = (epsilon / 2) * 10 ** (-4 + (4 * at) / 399);
    const moment = share * (top - Math.log1p(-a * Math.exp(t)) - Math.log1p(-a * Math.exp(-t)));
    return (moment + Math.log(2 / tail)) / t;
  });
  return Math.ceil(Math.min(...bounds));
}

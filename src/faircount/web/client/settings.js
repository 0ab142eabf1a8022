// The settings of a mechanism that are allowed. The Python client refuses the same ones:
// test_vectors/bad_params.json has a case for every rule, and a test compares the decisions of both
// clients on mutated parameters.

import { unscaled } from "./canonical_json.js";
import { decoysDelta, isWithin } from "./privacy.js";
import { insist } from "./refusal.js";
import { isCount } from "./shapes.js";

const MAX_SPARE_BITS = 62;
const MAX_COINS = 1e8;
const ROUNDING = 3e-9; // `isWithin` allows for a third of it on the other side

const isFraction = (value) => value > 0 && value < 1;

/** Every setting by its name: whether a published value is allowed. */
const ALLOWED = {
  dropouts: isCount,
  insiders: isCount,
  floor: isCount,
  spare_bits: (value) => isCount(value) && value <= MAX_SPARE_BITS,
  coins: (value) => value === null || (isCount(value) && value >= 1 && value <= MAX_COINS),
  epsilon: (value) => value === null || unscaled(value) >= 0,
  delta: (value) => value === null || isShare(unscaled(value)),
  p: (value) => isShare(unscaled(value)),
  groups: Array.isArray, // `groupNoises` reads them
  levels: Array.isArray, // `readLevels` reads them
};

const isShare = (value) => value > 0 && value <= 1;

/** Refuse settings of a kind or size that no survey has. */
export function checkSettings(settings) {
  for (const [name, value] of Object.entries(settings)) {
    insist(ALLOWED[name](value), "malformed", `${name} is not a value that it can have`);
  }
}

/** Refuse a survey of which nobody would be left, or nobody whose noise is secret. */
export function checkAttendance({ settings, n_max: users }, { countInsiders }) {
  const missing = settings.dropouts + (countInsiders ? settings.insiders : 0);
  insist(users > missing, "malformed", "nobody is left whose report can be relied on");
}

/** Refuse a floor that this many participants cannot provide for every item. */
export function checkFloor({ answers, settings, n_max: users }) {
  const isPossible = settings.floor === 0 || users > answers * settings.floor;
  insist(isPossible, "malformed", "there are too few participants for this floor");
}

/**
 * D, the number of fair coins per item: given in the settings, or the smallest number that gives
 * their epsilon and delta. `totalFor` says how many coins are published where this many must be
 * secret.
 */
export function coinsOf(params, totalFor) {
  const { coins, epsilon, delta } = params.settings;
  const isGivenOnce = (coins === null) !== (delta === null);
  insist(isGivenOnce, "malformed", "settings give either delta or the number of coins");
  const isPositive = epsilon === null ? delta === null : unscaled(epsilon) > 0;
  insist(isPositive, "malformed", "a number of coins follows from an epsilon above 0 and delta");
  if (coins !== null) return coins;
  const limit = unscaled(delta);
  insist(isFraction(limit), "malformed", "delta lies between 0 and 1");
  const total = params.derived.D;
  const isInRange = isCount(total) && total >= 1 && total <= MAX_COINS;
  insist(isInRange, "derived", "the number of coins is out of range");
  const needed = largestWithin((count) => totalFor(count) <= total);
  const follows = totalFor(needed) === total && isSmallest(needed, unscaled(epsilon), limit);
  insist(follows, "derived", "D does not follow from the other parameters");
  return total;
}

/** The largest number of coins that fulfils a condition which only small numbers fulfil. */
function largestWithin(isWithinTotal) {
  let low = 0;
  let high = MAX_COINS + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isWithinTotal(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** Whether this is the smallest number of fair coins with this epsilon and delta, up to rounding. */
function isSmallest(coins, epsilon, delta) {
  const isEnough = isWithin(decoysDelta(coins, epsilon), delta);
  return isEnough && !isWithin(decoysDelta(coins - 1, epsilon), delta * (1 - ROUNDING));
}

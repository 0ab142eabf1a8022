// Derived values of published parameters: computed here, and refused where the published ones are others.

import { smallestPrimeAbove } from "./field.js";
import { insist } from "./refusal.js";

/** Settings of every mechanism; all are whole numbers. */
export const COMMON = ["dropouts", "insiders", "spare_bits"];
/** Stands where there is no table, or no commitment. */
export const NO_DIGEST = "0".repeat(64);
/** An item's sum leaves its range with this probability at most. */
export const OVERFLOW = 2 ** -60;

const SMALLEST_EPSILON = 0.001; // a smaller one has a noise table that no browser should compute
const LARGEST_EPSILON = 50;
const MOST_COINS = 1e8;

/** Stop unless these derived values are the published ones. */
export function follow(params, values) {
  for (const [name, value] of Object.entries(values)) {
    insist(params.derived[name] === value, "derived", `${name} does not follow from the other parameters`);
  }
}

/** Stop unless q is the smallest prime that holds sums over one of these ranges, and `least` elements. */
export function modulusFollows(params, reaches, least = 2) {
  const spare = BigInt(params.settings.spare_bits);
  const sizes = reaches.map((reach) => [(BigInt(reach) + 1n) << spare, BigInt(least)]);
  const primes = sizes.map(([sums, elements]) => smallestPrimeAbove((sums > elements ? sums : elements) - 1n));
  insist(primes.some((prime) => String(prime) === params.derived.q), "derived", "q does not follow from the rest");
}

/** An epsilon whose noise table can be computed here. */
export function servable(epsilon) {
  insist(epsilon >= SMALLEST_EPSILON && epsilon <= LARGEST_EPSILON, "malformed", "epsilon is out of range");
  return epsilon;
}

/** D, the fair coins of an item: the number in the settings, or else the published one, judged by the promise alone. */
export function coinsOf(params) {
  const coins = params.settings.coins ?? params.derived.D;
  insist(Number.isSafeInteger(coins) && coins >= 1 && coins <= MOST_COINS, "malformed", "coins out of range");
  return coins;
}

/** The vector that is 1 at one item. */
export const oneHot = (items, answer) => Array.from({ length: items }, (_, at) => (at === answer ? 1n : 0n));

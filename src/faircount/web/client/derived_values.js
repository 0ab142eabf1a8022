// Derived values of published parameters. They are computed here, and a survey that publishes other
// values is refused: a wrong modulus or table would weaken the privacy that it promises.

import { smallestPrimeAbove } from "./field.js";
import { insist } from "./refusal.js";

/** Settings that every mechanism has; all are integers. */
export const COMMON = ["dropouts", "insiders", "spare_bits"];
/** Published where a mechanism has no table, or a server no commitment. */
export const NO_DIGEST = "0".repeat(64);
/** The largest probability with which the sum of one item may leave its range. */
export const OVERFLOW = 2 ** -60;

const SMALLEST_EPSILON = 0.001; // a smaller one has a noise table too long to compute in a browser
const LARGEST_EPSILON = 50;

/** Refuse parameters whose derived values are not these. */
export function checkDerived(params, values) {
  for (const [name, value] of Object.entries(values)) {
    const matches = params.derived[name] === value;
    // check: page-derived - a noise table with less noise than was promised
    insist(matches, "derived", `${name} does not follow from the other parameters`);
  }
}

/**
 * Refuse parameters unless q is the smallest prime that holds sums over one of these ranges and at
 * least `least` elements.
 */
export function checkModulus(params, ranges, least = 2) {
  const spare = BigInt(params.settings.spare_bits);
  const primes = ranges.map((range) => {
    const sums = (BigInt(range) + 1n) << spare;
    const elements = BigInt(least);
    return String(smallestPrimeAbove((sums > elements ? sums : elements) - 1n));
  });
  const follows = primes.includes(params.derived.q);
  // check: page-modulus - a modulus in which sums wrap around
  insist(follows, "derived", "q does not follow from the other parameters");
}

/** The same epsilon, if its noise table can be computed here. */
export function checkEpsilon(epsilon) {
  const isInRange = epsilon >= SMALLEST_EPSILON && epsilon <= LARGEST_EPSILON;
  insist(isInRange, "malformed", "epsilon is out of range");
  return epsilon;
}

/** The vector with 1 at the chosen answer and 0 elsewhere. */
export const oneHot = (answers, answer) =>
  Array.from({ length: answers }, (_, at) => (at === answer ? 1n : 0n));

// F_{q^k} for primes k and q below 2^32. An element is an array of k residues: the coefficients of
// a polynomial in Y, lowest first. Where k divides q - 1 the modulus is Y^k + b with the smallest b
// that makes it irreducible; elsewhere it is the first irreducible Y^k + a Y + b, ordered by (a,
// b), a >= 1. A few tiny q and k have none.

import { minus, plus, power, product, times } from "./small_field.js";

/**
 * {q, k, a, b} of the field, the same for every implementation; null if no modulus has that form.
 */
export function extensionField(q, k) {
  for (const ring of candidates(q, k)) {
    if (isField(ring)) return ring;
  }
  return null;
}

function* candidates(q, k) {
  const isBinomial = (q - 1) % k === 0;
  const [first, end] = isBinomial ? [0, 1] : [1, q];
  for (let a = first; a < end; a += 1) {
    for (let b = 1; b < q; b += 1) yield { q, k, a, b };
  }
}

/** The k + 1 coefficients of the modulus. */
export function modulus({ k, a, b }) {
  return k > 1 ? [b, a, ...new Array(k - 2).fill(0), 1] : [b, 1];
}

/** x y. */
export function multiply(ring, x, y) {
  const { q, k, a, b } = ring;
  const whole = product(x, y, q);
  const found = Array.from(whole.subarray(0, k));
  whole.subarray(k).forEach((high, at) => {
    found[at] = minus(found[at], times(high, b, q), q); // Y^k is -a Y - b
    found[at + 1] = minus(found[at + 1], times(high, a, q), q);
  });
  return found;
}

/**
 * Whether the modulus is irreducible. Y^k + b with k | q - 1 is, if -b is not a k-th power. For the
 * others: Y^(q^k) = Y says that no factor occurs twice and that all have degree 1 or k (k is
 * prime); Y^q != Y says that not all of them have degree 1.
 */
function isField(ring) {
  const { q, k, a, b } = ring;
  if (a === 0) return power(q - b, (q - 1) / k, q) !== 1;
  const y = Array.from({ length: k }, (_, at) => Number(at === 1));
  const first = raise(ring, y, q);
  if (equal(first, y)) return false;
  let found = first;
  for (let step = 1; step < k; step += 1) found = frobenius(ring, found, first);
  return equal(found, y);
}

/** x^q: x with Y^q (`first`) substituted for Y. */
function frobenius(ring, x, first) {
  return x.reduceRight((sum, coefficient) => {
    const [lowest, ...others] = multiply(ring, sum, first);
    return [plus(lowest, coefficient, ring.q), ...others];
  }, new Array(ring.k).fill(0));
}

function raise(ring, x, exponent) {
  return Array.from(exponent.toString(2).slice(1)).reduce((found, bit) => {
    const square = multiply(ring, found, found);
    return bit === "1" ? multiply(ring, square, x) : square;
  }, x);
}

const equal = (x, y) => x.every((value, at) => value === y[at]);

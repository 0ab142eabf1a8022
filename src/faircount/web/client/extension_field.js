// F_{q^k} for primes q below 2^32 and k: arrays of k residues, the coefficients of a polynomial in Y, the lowest first.
// They multiply modulo Y^k + b with the smallest b that makes it irreducible where k divides q - 1, and elsewhere modulo
// the first irreducible Y^k + a Y + b, ordered by (a, b), with a from 1. For a few tiny q and k there is none.

import { minus, plus, power, product, times } from "./small_field.js";

/** {q, k, a, b} of the field that everybody finds; null where there is none of that form. */
export function extensionField(q, k) {
  for (const ring of candidates(q, k)) if (isField(ring)) return ring;
  return null;
}

function* candidates(q, k) {
  const binomial = (q - 1) % k === 0;
  for (let a = binomial ? 0 : 1; a < (binomial ? 1 : q); a += 1) {
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
  const found = whole.slice(0, k);
  whole.slice(k).forEach((high, at) => {
    found[at] = minus(found[at], times(high, b, q), q); // Y^k is -a Y - b
    found[at + 1] = minus(found[at + 1], times(high, a, q), q);
  });
  return found;
}

/**
 * Whether the modulus is irreducible. For Y^k + b with k | q - 1: whether -b is no k-th power. For others: if
 * Y^(q^k) = Y, then the modulus has no factor twice, and all of them have degree 1 or k; if besides Y^q is not Y, then
 * not all have degree 1.
 */
function isField(ring) {
  const { q, k, a, b } = ring;
  if (a === 0) return power(q - b, (q - 1) / k, q) !== 1;
  const y = Array.from({ length: k }, (_, at) => Number(at === 1));
  const first = raised(ring, y, q);
  if (equal(first, y)) return false;
  let found = first;
  for (let step = 1; step < k; step += 1) found = frobenius(ring, found, first);
  return equal(found, y);
}

/** x^q, which is x with Y^q in the place of Y. */
function frobenius(ring, x, first) {
  return x.reduceRight((sum, coefficient) => {
    const [lowest, ...others] = multiply(ring, sum, first);
    return [plus(lowest, coefficient, ring.q), ...others];
  }, new Array(ring.k).fill(0));
}

function raised(ring, x, exponent) {
  return Array.from(exponent.toString(2).slice(1)).reduce((found, bit) => {
    const square = multiply(ring, found, found);
    return bit === "1" ? multiply(ring, square, x) : square;
  }, x);
}

const equal = (x, y) => x.every((value, at) => value === y[at]);

// Exact arithmetic in F_q for primes q below 2^32, with plain numbers from 0 to q - 1.
//
// A double holds every integer below 2^53. Sums and products therefore wait for a reduction modulo
// q until they could pass 2^52; the rest is room for the rounded quotient in `reduce`. The product
// of two residues can reach 2^64: beyond 2^26 one factor is split into halves of 16 bits, since
// half times residue stays below 2^48, and a residue times 2^16 plus such a product below 2^49.
// Polynomials are Float64Arrays of coefficients, lowest first.

export const LARGEST_FACTOR = 2 ** 32;
const HALF = 2 ** 16;
const EXACT = 2 ** 52;
const WITHOUT_HALVES = 2 ** 26; // products of two residues stay below 2^52

/** An integer between -2^53 and 2^53 modulo q. */
function reduce(value, q) {
  const rest = value - Math.floor(value / q) * q;
  // The quotient is a rounded double, so the remainder can be off by q in either direction.
  if (rest < 0) return rest + q;
  return rest < q ? rest : rest - q;
}

export const plus = (a, b, q) => (a + b < q ? a + b : a + b - q);
export const minus = (a, b, q) => (a < b ? a - b + q : a - b);

/** a b modulo q. */
export function times(a, b, q) {
  if (q <= WITHOUT_HALVES) return reduce(a * b, q);
  const high = Math.floor(b / HALF);
  return reduce(reduce(a * high, q) * HALF + a * (b - high * HALF), q);
}

/** a to the power of an integer, which may be a BigInt of any size. */
export function power(a, exponent, q) {
  let found = 1 % q;
  let factor = a;
  for (let left = BigInt(exponent); left; left >>= 1n) {
    if (left & 1n) found = times(found, factor, q);
    factor = times(factor, factor, q);
  }
  return found;
}

/** The product of two polynomials, without its coefficients below degree `lowest`. */
export function product(a, b, q, lowest = 0) {
  // One kind of array: engines compile the sums below several times slower for a mixture.
  const left = new Float64Array(a);
  const right = new Float64Array(b);
  const found = new Float64Array(a.length + b.length - 1 - lowest);
  for (let at = 0; at < found.length; at += 1) {
    const degree = lowest + at;
    const first = Math.max(0, degree - b.length + 1);
    found[at] = sumProducts(left, right, degree, first, Math.min(degree + 1, a.length), q);
  }
  return found;
}

/** The sum of a[i] b[degree - i] for all i in [first, end). */
function sumProducts(a, b, degree, first, end, q) {
  if (q > WITHOUT_HALVES) return sumProductsByHalves(a, b, degree, first, end, q);
  const most = Math.floor(EXACT / (q * q)); // products that are added without a reduction
  let sum = 0;
  for (let start = first; start < end; start += most) {
    const stop = Math.min(start + most, end);
    for (let i = start; i < stop; i += 1) sum += a[i] * b[degree - i];
    sum = reduce(sum, q);
  }
  return sum;
}

function sumProductsByHalves(a, b, degree, first, end, q) {
  let sum = 0;
  for (let i = first; i < end; i += 1) sum = plus(sum, times(a[i], b[degree - i], q), q);
  return sum;
}

/**
 * The quotient of a polynomial and a divisor with leading coefficient 1, without the remainder. The
 * dividend is given by its coefficients from the degree of the divisor upwards: the others do not
 * matter for the quotient.
 */
export function quotient(dividend, divisor, q) {
  const degree = divisor.length - 1;
  const found = new Float64Array(dividend.length);
  for (let at = found.length - 1; at >= 0; at -= 1) {
    const end = Math.min(found.length, at + degree + 1);
    const above = sumProducts(found, divisor, degree + at, at + 1, end, q);
    found[at] = minus(dividend[at], above, q);
  }
  return found;
}

/** Z = X (X - 1) ... (X - M + 1). */
export function vanishing(count, q) {
  const last = new Float64Array(count + 1);
  last[count] = 1;
  return expandNewton(last, q);
}

/** The polynomial of degree < M with these M values at 0, ..., M - 1. */
export function interpolation(values, q) {
  const inverses = inverseFactorials(values.length, q);
  const found = takeDifferences(values, q);
  return expandNewton(found.map((difference, order) => times(difference, inverses[order], q)), q);
}

/**
 * The first value, the first difference of neighbours, the first difference of these differences,
 * and so on: divided by j!, the coefficients c_j in `expandNewton`. No shortcut for zeros, here and
 * there: the time must not depend on the response.
 */
function takeDifferences(values, q) {
  const found = new Float64Array(values);
  let bound = q; // of all absolute values
  for (let order = 1; order < found.length; order += 1) {
    if (2 * bound > EXACT) bound = reduceAll(found, q);
    subtractNeighbours(found, 1, order, found.length);
    bound *= 2;
  }
  reduceAll(found, q);
  return found;
}

/** The sum of all c_j X (X - 1) ... (X - j + 1), Newton's form, by Horner's rule. */
function expandNewton(c, q) {
  const found = new Float64Array(c.length); // highest first
  let bound = q; // of all absolute values
  for (let size = 0; size < c.length; size += 1) {
    const point = c.length - 1 - size;
    if (bound * (point + 1) + q > EXACT) bound = reduceAll(found, q);
    found[size] = c[point];
    subtractNeighbours(found, point, 1, size + 1);
    bound = bound * (point + 1) + q;
  }
  reduceAll(found, q);
  return found.reverse();
}

/** Subtract from each number in [first, end) the number before it, times `factor`. */
function subtractNeighbours(numbers, factor, first, end) {
  for (let at = end - 1; at >= first; at -= 1) numbers[at] -= factor * numbers[at - 1];
}

/** Reduce all coefficients in place; their new bound. */
function reduceAll(polynomial, q) {
  for (let at = 0; at < polynomial.length; at += 1) polynomial[at] = reduce(polynomial[at], q);
  return q;
}

/** 1 / i! for every i below `count`. */
function inverseFactorials(count, q) {
  const found = new Float64Array(count).fill(1);
  let factorial = 1;
  for (let i = 1; i < count; i += 1) factorial = times(factorial, i, q);
  found[count - 1] = power(factorial, q - 2, q); // one inversion; the others follow from it
  for (let i = count - 1; i > 0; i -= 1) found[i - 1] = times(found[i], i, q);
  return found;
}

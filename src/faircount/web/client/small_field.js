// Exact arithmetic in F_q for primes q below 2^32, with plain numbers from 0 to q - 1.
//
// A double holds every integer below 2^53, but the product of two residues can reach 2^64. One
// factor is therefore split into halves of 16 bits: half times residue stays below 2^48, and a
// residue times 2^16 plus such a product below 2^49. Polynomials are arrays of coefficients, lowest
// first.

export const LARGEST_FACTOR = 2 ** 32;
const HALF = 2 ** 16;
const WITHOUT_HALVES = 2 ** 26; // products of two residues stay below 2^52

/** An integer from 0 to 2^53 - 1 modulo q. */
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

/** The product of two polynomials. */
export function product(a, b, q) {
  const found = new Array(a.length + b.length - 1).fill(0);
  for (let i = 0; i < a.length; i += 1) {
    for (let j = 0; j < b.length; j += 1) {
      found[i + j] = plus(found[i + j], times(a[i], b[j], q), q);
    }
  }
  return found;
}

/** The quotient of a polynomial and one with leading coefficient 1; the remainder is dropped. */
export function quotient(dividend, divisor, q) {
  const rest = dividend.slice();
  const degree = divisor.length - 1;
  for (let at = rest.length - 1; at >= degree; at -= 1) {
    for (let j = 0; j < degree; j += 1) {
      rest[at - degree + j] = minus(rest[at - degree + j], times(rest[at], divisor[j], q), q);
    }
  }
  return rest.slice(degree);
}

/** Z = X (X - 1) ... (X - M + 1). */
export function vanishing(count, q) {
  let found = [1];
  for (let point = 0; point < count; point += 1) {
    found = product(found, [minus(0, point, q), 1], q);
  }
  return found;
}

/**
 * The polynomial of degree < M with these M values at 0, ..., M - 1; `z` vanishes at those points.
 */
export function interpolation(values, z, q) {
  const count = values.length;
  const slopes = reciprocalSlopes(count, q);
  const found = new Array(count).fill(0);
  values.forEach((value, point) => {
    // No shortcut for a value of 0: the time must not depend on the response.
    const weight = times(value, slopes[point], q);
    let coefficient = 1; // of Z / (X - point), from the highest down
    for (let at = count - 1; at >= 0; at -= 1) {
      found[at] = plus(found[at], times(weight, coefficient, q), q);
      coefficient = plus(times(point, coefficient, q), z[at], q);
    }
  });
  return found;
}

/** 1 / Z'(i) for every point; Z'(i), the product of all i - j, is i! (M-1-i)! (-1)^(M-1-i). */
function reciprocalSlopes(count, q) {
  const inverse = new Array(count).fill(1); // of i!
  let factorial = 1;
  for (let i = 1; i < count; i += 1) factorial = times(factorial, i, q);
  inverse[count - 1] = power(factorial, q - 2, q); // one inversion; the others follow from it
  for (let i = count - 1; i > 0; i -= 1) inverse[i - 1] = times(inverse[i], i, q);
  return inverse.map((left, i) => {
    const both = times(left, inverse[count - 1 - i], q);
    return (count - 1 - i) % 2 ? minus(0, both, q) : both;
  });
}

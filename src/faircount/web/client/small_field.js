// Exact arithmetic in F_q for primes q below 2^32, with plain numbers from 0 to q - 1.
//
// A double holds every whole number below 2^53. Two residues multiply to less than 2^64, so that one of them is cut into
// halves of 16 bits: a half times a residue stays below 2^48, and a residue times 2^16 plus such a product below 2^49.
// Polynomials are arrays of coefficients, the lowest first.

export const LARGEST_FACTOR = 2 ** 32;
const HALF = 2 ** 16;
const WITHOUT_HALVES = 2 ** 26; // products of two residues stay below 2^52

/** A whole number from 0 to 2^53 - 1 modulo q. The quotient is rounded, so that the rest may be off by one q. */
function reduced(value, q) {
  const rest = value - Math.floor(value / q) * q;
  return rest < 0 ? rest + q : rest < q ? rest : rest - q;
}

export const plus = (a, b, q) => (a + b < q ? a + b : a + b - q);
export const minus = (a, b, q) => (a < b ? a - b + q : a - b);

/** a b modulo q. */
export function times(a, b, q) {
  if (q <= WITHOUT_HALVES) return reduced(a * b, q);
  const high = Math.floor(b / HALF);
  return reduced(reduced(a * high, q) * HALF + a * (b - high * HALF), q);
}

/** a to a power that is a whole number, of any size as BigInt. */
export function power(a, exponent, q) {
  let [found, factor] = [1 % q, a];
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
    for (let j = 0; j < b.length; j += 1) found[i + j] = plus(found[i + j], times(a[i], b[j], q), q);
  }
  return found;
}

/** A polynomial divided by one whose highest coefficient is 1, without the remainder. */
export function quotient(dividend, divisor, q) {
  const [rest, degree] = [dividend.slice(), divisor.length - 1];
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
  for (let point = 0; point < count; point += 1) found = product(found, [minus(0, point, q), 1], q);
  return found;
}

/** The polynomial of degree below M that has these M values at 0, 1, ..., M - 1; `z` is the vanishing one. */
export function interpolation(values, z, q) {
  const [count, slopes] = [values.length, reciprocalSlopes(values.length, q)];
  const found = new Array(count).fill(0);
  values.forEach((value, point) => {
    const weight = times(value, slopes[point], q); // also where the value is 0: every answer takes the same steps
    let coefficient = 1; // of Z / (X - point), from the highest one down
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
  for (let each = 1; each < count; each += 1) inverse[count - 1] = times(inverse[count - 1], each, q);
  inverse[count - 1] = power(inverse[count - 1], q - 2, q);
  for (let each = count - 1; each > 0; each -= 1) inverse[each - 1] = times(inverse[each], each, q);
  return inverse.map((left, i) => {
    const both = times(left, inverse[count - 1 - i], q);
    return (count - 1 - i) % 2 ? minus(0, both, q) : both;
  });
}

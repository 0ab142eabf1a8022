// That a report is exactly one vote, proven to both servers together and shown to neither. A report is M = N + m bits w: a
// one-hot answer and m coins. With Z = X (X - 1) ... (X - M + 1):
//
//   s uniform of degree < k;  f = the polynomial with f(i) = w_i and degree < M, plus Z s;  h = f (f - 1) / Z
//   row = (w, s, h), 2M + 3k - 1 elements of F_q, split between the servers like any vector
//
// The servers ask at a point that nobody knows before all shares are fixed. Not reviewed outside.

import { extensionField, modulus } from "./extension_field.js";
import { insist } from "./refusal.js";
import { interpolation, LARGEST_FACTOR, minus, plus, product, quotient, vanishing } from "./small_field.js";

const FAILURE_BITS = 40;
const MOST_BITS = 2600;

/** What a proven report of such a survey consists of: {q, items, coins, degree, width, proof}. */
export function reportForm(q, items, coins, users) {
  const bits = items + coins;
  insist(bits <= MOST_BITS && q >= BigInt(bits), "derived", "these are more bits than a proof here can hold");
  insist(q < BigInt(LARGEST_FACTOR), "derived", "a proof needs a modulus below 2^32");
  const field = smallestField(Number(q), 2 * (bits - 1), BigInt(users) << BigInt(FAILURE_BITS));
  const noise = coins ? "users" : "servers";
  const proof = { coins, degree: field.k, failure_bits: FAILURE_BITS, modulus: modulus(field), noise };
  return { q: Number(q), items, coins, degree: field.k, width: 2 * bits + 3 * field.k - 1, proof };
}

/**
 * The field with the smallest prime k for which (roots + 2k) / (q^k - q) is at most 1 / failures: in it a polynomial of
 * degree `roots` + 2k vanishes at so few points outside F_q.
 */
function smallestField(q, roots, failures) {
  for (let k = 2; ; k += 1) {
    const enough = BigInt(q) ** BigInt(k) - BigInt(q) >= BigInt(roots + 2 * k) * failures;
    const field = enough && isSmallPrime(k) ? extensionField(q, k) : null;
    if (field) return field;
  }
}

function isSmallPrime(k) {
  for (let factor = 2; factor * factor <= k; factor += 1) if (k % factor === 0) return false;
  return k > 1;
}

/** The row of a report: the bits, the blind of k uniform elements, and h. Draw the blind apart from S2's seed. */
export function prove(form, bits, blind) {
  const { q } = form;
  const z = vanishing(bits.length, q);
  const f = product(z, blind, q);
  interpolation(bits, z, q).forEach((coefficient, at) => (f[at] = plus(f[at], coefficient, q)));
  const lessOne = [minus(f[0], 1, q), ...f.slice(1)];
  return [...bits, ...blind, ...quotient(product(f, lessOne, q), z, q)];
}

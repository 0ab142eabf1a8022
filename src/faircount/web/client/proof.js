// Proves to both servers together that a report is one sheet of answers, and reveals it to neither.
// A report is M bits w: those of the answers, then coins. With Z = X (X - 1) ... (X - M + 1):
//
//   s uniform of degree < k
//   f = the polynomial of degree < M with f(i) = w_i, plus Z s
//   h = f (f - 1) / Z, which is a polynomial exactly if all w_i are bits
//   row = (w, s, h), 2M + 3k - 1 elements of F_q, split between the servers like any vector
//
// The servers query it at one random point that nobody knows before all shares are fixed. They also
// open one weighted sum of the bits per constraint, which has a public value: "these add up to 1",
// for example. The prover does not need to know the constraints. No independent security review
// yet.

import { extensionField, modulus } from "./extension_field.js";
import { insist } from "./refusal.js";
import {
  interpolation, LARGEST_FACTOR, minus, plus, product, quotient, vanishing,
} from "./small_field.js";

const FAILURE_BITS = 40;
const MAX_BITS = 2600;

/**
 * The layout of a proven report: {q, coins, degree, width, proof}. A sheet has `bits` bits, which
 * satisfy `constraints` and are published as `cells` sums; coins may follow them.
 */
export function reportLayout(q, { bits, coins, constraints, cells }, users) {
  const size = bits + coins;
  // f is defined by its values at M different points of F_q.
  const isPossible = size <= MAX_BITS && q >= BigInt(size);
  insist(isPossible, "derived", "a report has more bits than a proof can cover");
  insist(q < BigInt(LARGEST_FACTOR), "derived", "a proof needs a modulus below 2^32");
  const field = smallestField(Number(q), 2 * (size - 1), BigInt(users) << BigInt(FAILURE_BITS));
  const degree = field.k;
  const proof = {
    bits,
    coins,
    constraints: constraints.length,
    cells,
    degree,
    failure_bits: FAILURE_BITS,
    modulus: modulus(field),
    noise: coins ? "users" : "servers",
  };
  return { q: Number(q), coins, degree, width: 2 * size + 3 * degree - 1, proof };
}

/**
 * The field with the smallest prime k for which (roots + 2k) / (q^k - q) is at most 1 / failures. A
 * dishonest proof passes only if a polynomial of degree `roots` + 2k vanishes at the random point,
 * which is uniform outside F_q.
 */
function smallestField(q, roots, failures) {
  for (let k = 2; ; k += 1) {
    const isLarge = BigInt(q) ** BigInt(k) - BigInt(q) >= BigInt(roots + 2 * k) * failures;
    const field = isLarge && isSmallPrime(k) ? extensionField(q, k) : null;
    if (field) return field;
  }
}

function isSmallPrime(k) {
  for (let factor = 2; factor * factor <= k; factor += 1) {
    if (k % factor === 0) return false;
  }
  return k > 1;
}

/**
 * The row of a report: the bits, the blind of k uniform elements, and h. The blind must not come
 * from the seed of the aggregator's share: the aggregator knows that seed.
 */
export function prove(layout, bits, blind) {
  const { q } = layout;
  const count = bits.length;
  const z = vanishing(count, q);
  const f = product(z, blind, q);
  interpolation(bits, q).forEach((value, at) => (f[at] = plus(f[at], value, q)));
  // f (f - 1) from degree M on: the quotient by Z does not depend on the rest.
  const high = product(f, f, q, count);
  f.subarray(count).forEach((value, at) => (high[at] = minus(high[at], value, q)));
  return [...bits, ...blind, ...quotient(high, z, q)];
}

// What the two servers do with proven reports, written once more for the known answers: the page
// has only the prover.

import { taggedHash, paramsDigest } from "../../src/faircount/web/client/digests.js";
import {
  extensionField, modulus, multiply,
} from "../../src/faircount/web/client/extension_field.js";
import { expand, residue } from "../../src/faircount/web/client/field.js";
import { deriveKey } from "../../src/faircount/web/client/encryption.js";
import {
  interpolation, minus, plus, vanishing,
} from "../../src/faircount/web/client/small_field.js";

/** The field of a case, with what is needed there; its modulus must be the published one. */
export function fieldOf(q, k, published) {
  const field = extensionField(q, k);
  if (String(modulus(field)) !== String(published)) throw new Error(`modulus ${modulus(field)}`);
  return field;
}

/** A polynomial over F_q at a point of the extension. */
export function valueAt(field, polynomial, point) {
  return polynomial.reduceRight((sum, coefficient) => {
    const [lowest, ...others] = multiply(field, sum, point);
    return [plus(lowest, coefficient, field.q), ...others];
  }, new Array(field.k).fill(0));
}

/**
 * f, the interpolation of the bits plus Z times the blind, at a point; for a share as well, since
 * it is linear.
 */
export function blindedAt(field, bits, blind, point) {
  const z = vanishing(bits.length, field.q);
  const hidden = multiply(field, valueAt(field, z, point), valueAt(field, blind, point));
  const interpolated = valueAt(field, interpolation(bits, field.q), point);
  return interpolated.map((value, at) => plus(value, hidden[at], field.q));
}

/** The point of the survey's one query. */
export async function pointOf(published, values, q, k) {
  const key = await deriveKey(values, await paramsDigest(published), await taggedHash("query"));
  for (let tried = 1; ; tried += 1) {
    const found = (await expand(key, BigInt(q), tried * k)).slice(-k).map(Number);
    if (found.slice(1).some((coefficient) => coefficient !== 0)) return found;
  }
}

/** A server's verifier share for its share of a row. */
export function verifierShareOf(field, one, share, point) {
  const size = one.bits + one.coins;
  const bits = share.slice(0, size);
  const blind = share.slice(size, size + one.degree);
  const h = share.slice(size + one.degree);
  const opened = one.constraints.map(({ weights }) => {
    const whole = weights.reduce((sum, [at, weight]) => sum + BigInt(weight) * BigInt(bits[at]), 0n);
    return Number(residue(whole, BigInt(field.q)));
  });
  return [...blindedAt(field, bits, blind, point), ...valueAt(field, h, point), ...opened];
}

/** Whether both verifier shares together are those of a valid report. */
export function accepts(field, one, first, second, point) {
  const [k, q] = [one.degree, field.q];
  const whole = first.map((value, at) => plus(value, second[at], q));
  const [f, h] = [whole.slice(0, k), whole.slice(k, 2 * k)];
  const left = multiply(field, f, [minus(f[0], 1, q), ...f.slice(1)]);
  const right = multiply(field, valueAt(field, vanishing(one.bits + one.coins, q), point), h);
  const areMet = one.constraints.every(({ value }, at) => {
    return whole[2 * k + at] === Number(residue(BigInt(value), BigInt(q)));
  });
  return areMet && String(left) === String(right);
}

// Who runs the servers: each operator signs the parameters of a survey with a long-term key. The
// signature shows that whoever holds the key runs the server; that the key belongs to the
// organization of this name shows only the place where the organization publishes its fingerprint.

import { hex, join, same, textBytes, u32, unhex } from "./bytes.js";
import { LABEL, taggedHash } from "./digests.js";
import { AGGREGATOR, COORDINATOR } from "./encryption.js";
import { insist } from "./refusal.js";
import { verify } from "./signatures.js";

const FINGERPRINT_BYTES = 16;
const NO_KEY = new Uint8Array(32);

/** Refuse a survey that the operators of both servers have not signed; signatures are hex. */
export async function checkOperators(params, signatures) {
  const first = await isSigned(params, COORDINATOR, "s1", signatures?.s1);
  const second = await isSigned(params, AGGREGATOR, "s2", signatures?.s2);
  const areSigned = first && second;
  // check: page-operators - an owner names organizations that run no server
  insist(areSigned, "operators", "the operators of the servers have not signed this survey");
}

async function isSigned(params, role, server, signature) {
  const key = params.keys[`${server}_operator_key`];
  const isHex = typeof signature === "string" && /^[0-9a-f]{128}$/.test(signature);
  // Anybody can sign under a key of zeros, which has a small order.
  if (!isHex || same(key, NO_KEY)) return false;
  const name = textBytes(params[`${server}_operator`]);
  const place = join(textBytes(`${LABEL}/operator\0`), u32(role), params.survey, params.digest);
  return verify(key, unhex(signature), join(place, u32(name.length), name));
}

/** The fingerprint of an operator's key for people to compare: eight groups of four digits. */
export async function formatFingerprint(key) {
  const digits = hex((await taggedHash("operator-key", key)).slice(0, FINGERPRINT_BYTES));
  return digits.match(/.{4}/g).join(" ");
}

/** A name without what does not tell organizations apart: case, spaces and punctuation. */
export const normalizeOperator = (name) =>
  name.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, "");

/**
 * Whether one organization runs both servers, as far as names and keys tell, or none is named: then
 * nothing separates the shares.
 */
export function hasOneOperator({ keys, s1_operator: first, s2_operator: second }) {
  const key = keys.s1_operator_key;
  const hasOneKey = !same(key, NO_KEY) && same(key, keys.s2_operator_key);
  // check: page-one-operator - one organization shows two names for one key
  if (hasOneKey) return true;
  return normalizeOperator(first) === normalizeOperator(second);
}

// Values derived from an invitation's token: the access value that the coordinator (S1) checks, the
// participant's id, and the key of the MAC with which the aggregator (S2) checks who takes part.

import { join, textBytes } from "./bytes.js";
import { sha256, taggedHash } from "./digests.js";
import { deriveKey } from "./encryption.js";
import { insist } from "./refusal.js";

/** The invitation with this token, for the parameters with this hash. */
export async function deriveInvitation(token, params) {
  const isComplete = token.length === 32 && params.length === 32;
  insist(isComplete, "code", "an invitation has a token and a hash of 32 bytes each");
  const access = await sha256(textBytes("s1"), token);
  return { token, params, access, user: await userId(access) };
}

/** The id of the participant with this access value. */
export const userId = async (access) => (await taggedHash("user", access)).slice(0, 16);

/** The key of `entryMac`. The aggregator gets it from the owner, the coordinator never does. */
export const enrolmentMacKey = (token) => deriveKey(token, new Uint8Array(32), textBytes("s2"));

/**
 * HMAC-SHA-256 over hash and public key: this participant takes part in this survey with this key.
 */
export async function entryMac(token, params, publicKey) {
  const kind = { name: "HMAC", hash: "SHA-256" };
  const secret = await enrolmentMacKey(token);
  const key = await crypto.subtle.importKey("raw", secret, kind, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, join(params, publicKey)));
}

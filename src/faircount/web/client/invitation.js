// What follows from an invitation: access for S1, the person's id, and the key that seals its entry for S2.

import { join, textBytes } from "./bytes.js";
import { labelled, sha256 } from "./digests.js";
import { insist } from "./refusal.js";
import { deriveKey } from "./sealing.js";

/** An invitation of a token and the digest of the parameters, with all that follows from it. */
export async function invitation(token, params) {
  insist(token.length === 32 && params.length === 32, "code", "an invitation has a token and a digest of 32 bytes");
  const access = await sha256(textBytes("s1"), token);
  return { token, params, access, user: await userId(access) };
}

/** The id of the person whose access this is. */
export const userId = async (access) => (await labelled("user", access)).slice(0, 16);

/** What S2 gets: the key of `entryMac`. */
export const sealingKey = (token) => deriveKey(token, new Uint8Array(32), textBytes("s2"));

/** HMAC-SHA-256 over the digest and a public key: this person takes part with this key. */
export async function entryMac(token, params, publicKey) {
  const kind = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", await sealingKey(token), kind, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, join(params, publicKey)));
}

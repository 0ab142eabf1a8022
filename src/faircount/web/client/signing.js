// What the servers signed: S2's statements, S1's acknowledgements, and whether a result counts an entry.

import { join, same, textBytes, u32 } from "./bytes.js";
import { decode } from "./codec.js";
import { entryLeaf, LABEL, labelled, rootOfPath, sha256 } from "./digests.js";

export const S2 = 0xffffffff;

/** Whether a signature is this Ed25519 key's on this data. */
export async function verify(publicKey, signature, data) {
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, key, signature, data);
  } catch {
    return false; // no key at all
  }
}

const signedBytes = (signed) =>
  join(textBytes(`${LABEL}/statement\0`), u32(signed.by), u32(signed.number), signed.previous, signed.payload);

/** The message that S2 signed; null if it did not. */
export async function statementOf(s2Key, signed) {
  if (signed.by !== S2 || !(await verify(s2Key, signed.signature, signedBytes(signed)))) return null;
  try {
    return await decode(signed.payload);
  } catch {
    return null; // signed, but no message that a person can be told
  }
}

/** Whether S1 has signed that it wrote this very body. */
export async function acknowledges(keys, survey, accepted, body) {
  const bodyHash = await sha256(body);
  if (!same(accepted.survey, survey) || !same(accepted.body_hash, bodyHash)) return false;
  const root = await rootOfPath(accepted.index, accepted.size, accepted.path, await labelled("acknowledged", bodyHash));
  if (root === null) return false;
  const data = join(textBytes(`${LABEL}/acknowledgement\0`), survey, u32(accepted.size), root);
  return verify(keys.s1, accepted.signature, data);
}

/** Whether a published result counts the entry with this user id and key. */
export async function countsIn(published, inclusion, user, publicKey) {
  const leaf = await entryLeaf(inclusion.index, user, publicKey);
  const root = await rootOfPath(inclusion.index, inclusion.size, inclusion.path, leaf);
  return inclusion.size === published.included && root !== null && same(root, published.root);
}

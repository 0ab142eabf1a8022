// What the servers signed: the aggregator's statements, the coordinator's acknowledgements, and
// whether a result counts an entry.

import { join, same, textBytes, u32 } from "./bytes.js";
import { decode } from "./codec.js";
import { entryLeaf, LABEL, rootOfPath, sha256, taggedHash } from "./digests.js";
import { AGGREGATOR } from "./encryption.js";

/** Whether this is the Ed25519 signature of the key on the data. */
export async function verify(publicKey, signature, data) {
  const kind = { name: "Ed25519" };
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, kind, false, ["verify"]);
    return await crypto.subtle.verify(kind, key, signature, data);
  } catch {
    return false; // not a valid key
  }
}

/** The message that the aggregator signed; null if the signature is not its own. */
export async function verifyStatement(aggregatorKey, signed) {
  // check: page-statement-party - what was signed as another party passes as the aggregator's
  if (signed.by !== AGGREGATOR) return null;
  const { by, number, previous, payload } = signed;
  const data = join(textBytes(`${LABEL}/statement\0`), u32(by), u32(number), previous, payload);
  // check: page-statement-signature - the coordinator makes up a result
  if (!(await verify(aggregatorKey, signed.signature, data))) return null;
  try {
    return await decode(payload);
  } catch {
    return null; // signed, but not a message for participants
  }
}

/** Whether the coordinator signed that it stored exactly this message for this survey. */
export async function verifyAcknowledgement(keys, survey, acknowledgement, message) {
  const { index, size, path, signature } = acknowledgement;
  const messageHash = await sha256(message);
  const isForMessage =
    same(acknowledgement.survey, survey) && same(acknowledgement.message_hash, messageHash);
  // check: page-acknowledged-message - somebody else's acknowledgement
  if (!isForMessage) return false;
  // One signature covers several messages: it is on the root of a tree over their hashes.
  const root = await rootOfPath(index, size, path, await taggedHash("acknowledged", messageHash));
  if (root === null) return false;
  const data = join(textBytes(`${LABEL}/acknowledgement\0`), survey, u32(size), root);
  return verify(keys.coordinator, signature, data);
}

/** Whether a published result counts the entry with this user id and key. */
export async function isCounted(published, proof, user, publicKey) {
  // check: page-inclusion-size - a path for another tree size can prove what is no entry
  if (proof.size !== published.included) return false;
  const leaf = await entryLeaf(proof.index, user, publicKey);
  const root = await rootOfPath(proof.index, proof.size, proof.path, leaf);
  return root !== null && same(root, published.root);
}

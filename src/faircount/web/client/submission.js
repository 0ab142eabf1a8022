// A person's whole answer in one message, drawn once. Store it before it is sent: a second one would be a second draw.

import { join } from "./bytes.js";
import { encode } from "./codec.js";
import { labelled, sha256 } from "./digests.js";
import { expand, pack, residue, subtract } from "./field.js";
import { entryMac } from "./invitation.js";
import { respond } from "./parameters.js";
import { agree, deriveKey, freshKeyPair, keyInfo, PURPOSE, S2_INDEX, seal } from "./sealing.js";

const SEED = 16;
const SALT = 16;

/** The body for the item at this position, and the parts of it that the page shows. */
export async function submission(params, invitation, answer, random) {
  const drawn = respond(params, answer, random).map((value) => residue(value, params.q));
  return prepared(params, invitation, drawn, random(SEED), await freshKeyPair(), random);
}

/** The body for a vector, a seed and a key drawn before; `random` is for salt and nonce. */
export async function prepared(params, invitation, vector, seed, pair, random) {
  const mask = await expanded(params, invitation.user, pair.public, seed);
  const share = pack(subtract(vector, mask, params.q), params.q);
  const shared = await agree(pair.secret, params.keys.box);
  const salt = random(SALT);
  const commitment = await labelled("commitment", salt, share);
  const info = await bound(params, PURPOSE.servers, invitation.user, pair.public, commitment);
  const blob = await seal(shared, params.digest, info, seed, random);
  const mac = await entryMac(invitation.token, params.digest, pair.public);
  const fields = { survey: params.survey, access: invitation.access, public_key: pair.public, mac, salt, share, blob };
  return { body: await encode("Submission", fields), share, blob, commitment, publicKey: pair.public };
}

/** S2's share of a person's vector. */
async function expanded(params, user, publicKey, seed) {
  const info = await bound(params, PURPOSE.seedExpansion, user, publicKey);
  return expand(await deriveKey(seed, params.digest, info), params.q, params.width);
}

/** What binds a key: the survey, S2, and the hash of who and what it is for. */
async function bound(params, purpose, ...context) {
  return keyInfo(purpose, params.survey, 0, 0, S2_INDEX, await sha256(join(...context)));
}

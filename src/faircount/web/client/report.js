// A participant's response as one message. The noise is drawn once: store the report before sending
// it, and send the same bytes again after a failure. A second draw would weaken the privacy.

import { join } from "./bytes.js";
import { encode } from "./codec.js";
import { devicePublicKey, SECRET_SIZE } from "./device.js";
import { sha256, taggedHash } from "./digests.js";
import {
  AGGREGATOR, agreeSecret, deriveKey, encrypt, generateKeyPair, keyInfo, PURPOSE,
} from "./encryption.js";
import { expand, pack, residue, subtract } from "./field.js";
import { entryMac } from "./invitation.js";
import { drawVector } from "./parameters.js";

const SEED_SIZE = 16;
const SALT_SIZE = 16;

/**
 * The report for this sheet of answers, with the values that the page shows. Of the privacy level
 * nothing is kept but the report, which is as long and looks the same at every level.
 */
export async function makeReport(params, invitation, sheet, random, level = 0) {
  const drawn = drawVector(params, sheet, random, level);
  const vector = drawn.map((value) => residue(value, params.q));
  const seed = random(SEED_SIZE);
  return encodeReport(params, invitation, vector, seed, await generateKeyPair(), random);
}

/**
 * The report for a vector, a seed and a key pair drawn before; `random` gives salt, nonce and the
 * key of this device. The aggregator's share is expanded from the seed; the coordinator's share is
 * the difference.
 */
export async function encodeReport(params, invitation, vector, seed, pair, random) {
  const { user, token, access } = invitation;
  const aggregatorShare = await expandShare(params, user, pair.public, seed);
  const share = pack(subtract(vector, aggregatorShare, params.q), params.q);
  const secret = await agreeSecret(pair.secret, params.keys.encryption_key);
  // The salt hides the share in its commitment: without it the aggregator could try all vectors.
  const salt = random(SALT_SIZE);
  const commitment = await taggedHash("commitment", salt, share);
  const info = await shareKeyInfo(params, PURPOSE.servers, user, pair.public, commitment);
  const encryptedShare = await encrypt(secret, params.digest, info, seed, random);
  const device = random(SECRET_SIZE);
  const message = await encode("Report", {
    survey: params.survey,
    access,
    public_key: pair.public,
    mac: await entryMac(token, params.digest, pair.public),
    salt,
    share,
    encrypted_share: encryptedShare,
    device_key: await devicePublicKey(device),
  });
  return { message, share, encryptedShare, commitment, publicKey: pair.public, device };
}

/** The aggregator's share of a participant's vector. */
async function expandShare(params, user, publicKey, seed) {
  const info = await shareKeyInfo(params, PURPOSE.seedExpansion, user, publicKey);
  return expand(await deriveKey(seed, params.digest, info), params.q, params.width);
}

/** Binds a key to the survey, the aggregator, and the hash of the participant and the share. */
async function shareKeyInfo(params, purpose, ...context) {
  return keyInfo(purpose, params.survey, 0, 0, AGGREGATOR, await sha256(join(...context)));
}

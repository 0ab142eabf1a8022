// The key of the device that answers: whoever has only the invitation, as its owner does, cannot
// speak for the participant afterwards. The report carries the public half; a withdrawal and every
// question about the report are signed.

import { join, textBytes, unhex } from "./bytes.js";
import { encode } from "./codec.js";
import { LABEL } from "./digests.js";

const ED25519 = { name: "Ed25519" };
const PKCS8_PREFIX = unhex("302e020100300506032b657004220420"); // of an Ed25519 secret key
const NO_SIGNATURE = new Uint8Array(64);
/** Bytes of a device's secret key. */
export const SECRET_SIZE = 32;

/** The public half of a device's key. */
export async function devicePublicKey(secret) {
  const { x } = await crypto.subtle.exportKey("jwk", await importSecret(secret));
  const text = atob(x.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/**
 * A "Withdrawal" or an "OutcomeRequest" that this device signs for a survey. Some browsers sign the
 * same bytes differently each time: store a message that has to stay the same.
 */
export async function signForDevice(name, params, access, secret) {
  const fields = { survey: params.survey, access, device_key: await devicePublicKey(secret) };
  const unsigned = await encode(name, { ...fields, signature: NO_SIGNATURE });
  const data = join(textBytes(`${LABEL}/device\0`), params.digest, unsigned);
  const signature = await crypto.subtle.sign(ED25519, await importSecret(secret), data);
  return encode(name, { ...fields, signature: new Uint8Array(signature) });
}

function importSecret(secret) {
  const encoded = join(PKCS8_PREFIX, secret);
  // Exportable, because WebCrypto gives the public half of an imported key in no other way.
  return crypto.subtle.importKey("pkcs8", encoded, ED25519, true, ["sign"]);
}

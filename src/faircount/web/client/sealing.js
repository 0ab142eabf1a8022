// X25519, HKDF-SHA-256, AES-256-GCM with a random nonce in front, and the AES-256-CTR key stream.

import { join, littleEndian, textBytes, u32, unhex } from "./bytes.js";
import { insist } from "./refusal.js";

export const PURPOSE = { servers: 4, seedExpansion: 8 };
export const S2_INDEX = 0xffffffff;

const FIELD_PRIME = (1n << 255n) - 19n;
const NONCE = 12;
const TAG = 16;
const PKCS8_HEAD = unhex("302e020100300506032b656e04220420"); // what stands before the 32 bytes of an X25519 secret

/** A fresh key; its secret half cannot be taken out of the browser. */
export async function freshKeyPair() {
  const pair = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
  return { secret: pair.privateKey, public: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)) };
}

/** A secret key from its 32 bytes. */
export function secretKey(bytes) {
  return crypto.subtle.importKey("pkcs8", join(PKCS8_HEAD, bytes), { name: "X25519" }, false, ["deriveBits"]);
}

/** The secret that a key shares with the owner of a public key; a public key that must be refused is refused. */
export async function agree(secret, publicBytes) {
  insist(publicBytes.length === 32 && littleEndian(publicBytes) < FIELD_PRIME, "key", "a public key is not canonical");
  const shared = await rawAgreement(secret, publicBytes);
  insist(shared.some((byte) => byte !== 0), "key", "a public key gives a shared secret of zeros");
  return shared;
}

async function rawAgreement(secret, publicBytes) {
  try {
    const other = await crypto.subtle.importKey("raw", publicBytes, { name: "X25519" }, false, []);
    return new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: other }, secret, 256));
  } catch {
    insist(false, "key", "a public key cannot be used");
  }
}

/** The string that binds a key to its use. */
export function keyInfo(purpose, survey, attempt, sender, receiver, context) {
  const head = join(textBytes("faircount/1\0"), Uint8Array.of(purpose));
  return join(head, survey, u32(attempt), u32(sender), u32(receiver), context);
}

/** 32 bytes for one use of a secret. */
export async function deriveKey(secret, salt, info) {
  const whole = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  return new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, whole, 256));
}

/** Nonce, ciphertext and tag. */
export async function seal(secret, salt, info, plaintext, random) {
  const nonce = random(NONCE);
  const key = await boxKey(secret, salt, info, "encrypt");
  return join(nonce, new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce }, key, plaintext)));
}

/** The plaintext of a blob; null unless it was sealed with the same secret, salt and info and not changed. */
export async function open(secret, salt, info, blob) {
  if (blob.length < NONCE + TAG) return null;
  const key = await boxKey(secret, salt, info, "decrypt");
  try {
    const iv = blob.subarray(0, NONCE);
    return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, blob.subarray(NONCE)));
  } catch {
    return null;
  }
}

async function boxKey(secret, salt, info, use) {
  return crypto.subtle.importKey("raw", await deriveKey(secret, salt, info), "AES-GCM", false, [use]);
}

/** The first bytes of the AES-256-CTR key stream from a zero block. */
export async function keyStream(key, size) {
  const cipher = await crypto.subtle.importKey("raw", key, "AES-CTR", false, ["encrypt"]);
  const counter = { name: "AES-CTR", counter: new Uint8Array(16), length: 128 };
  return new Uint8Array(await crypto.subtle.encrypt(counter, cipher, new Uint8Array(size)));
}

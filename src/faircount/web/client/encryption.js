// X25519, HKDF-SHA-256, AES-256-GCM with a random nonce in front, and the AES-256-CTR key stream.

import { join, littleEndian, textBytes, u32, unhex } from "./bytes.js";
import { insist } from "./refusal.js";

/** What a derived key is for. */
export const PURPOSE = { servers: 4, seedExpansion: 8 };
/** The number of the aggregator (S2) wherever participants have an index. */
export const COORDINATOR = 0xfffffffe;
export const AGGREGATOR = 0xffffffff;

const FIELD_PRIME = (1n << 255n) - 19n;
const NONCE_SIZE = 12;
const TAG_SIZE = 16;
const X25519 = { name: "X25519" };
const PKCS8_PREFIX = unhex("302e020100300506032b656e04220420"); // of an X25519 secret key

/** A fresh key pair; the browser never lets a script export the secret half. */
export async function generateKeyPair() {
  const pair = await crypto.subtle.generateKey(X25519, false, ["deriveBits"]);
  const exported = await crypto.subtle.exportKey("raw", pair.publicKey);
  return { secret: pair.privateKey, public: new Uint8Array(exported) };
}

/** A secret key from its 32 bytes. */
export function importSecretKey(bytes) {
  const encoded = join(PKCS8_PREFIX, bytes);
  return crypto.subtle.importKey("pkcs8", encoded, X25519, false, ["deriveBits"]);
}

/** The secret that a secret key shares with the owner of a public key. */
export async function agreeSecret(secret, publicBytes) {
  // A second encoding of the same point would give the same secret under another name.
  const isCanonical = publicBytes.length === 32 && littleEndian(publicBytes) < FIELD_PRIME;
  // check: page-key-canonical - one key under two names
  insist(isCanonical, "key", "a public key is not canonical");
  const shared = await deriveShared(secret, publicBytes);
  // A point of small order gives zeros to everybody: whoever chose it could decrypt the share.
  insist(shared.some((byte) => byte !== 0), "key", "a public key gives a shared secret of zeros");
  return shared;
}

async function deriveShared(secret, publicBytes) {
  try {
    const other = await crypto.subtle.importKey("raw", publicBytes, X25519, false, []);
    const bits = await crypto.subtle.deriveBits({ ...X25519, public: other }, secret, 256);
    return new Uint8Array(bits);
  } catch {
    insist(false, "key", "a public key cannot be used");
  }
}

/** The HKDF info that binds a key to its purpose, survey, sender, receiver and context. */
export function keyInfo(purpose, survey, attempt, sender, receiver, context) {
  const prefix = join(textBytes("faircount/1\0"), Uint8Array.of(purpose));
  return join(prefix, survey, u32(attempt), u32(sender), u32(receiver), context);
}

/** 32 bytes for one use of a secret. */
export async function deriveKey(secret, salt, info) {
  const whole = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const kind = { name: "HKDF", hash: "SHA-256", salt, info };
  return new Uint8Array(await crypto.subtle.deriveBits(kind, whole, 256));
}

/** Nonce, ciphertext and tag. */
export async function encrypt(secret, salt, info, plaintext, random) {
  const nonce = random(NONCE_SIZE);
  const key = await cipherKey(secret, salt, info, "encrypt");
  const kind = { name: "AES-GCM", iv: nonce };
  return join(nonce, new Uint8Array(await crypto.subtle.encrypt(kind, key, plaintext)));
}

/** The plaintext; null unless it was encrypted with this secret, salt and info and not changed. */
export async function decrypt(secret, salt, info, encrypted) {
  if (encrypted.length < NONCE_SIZE + TAG_SIZE) return null;
  const key = await cipherKey(secret, salt, info, "decrypt");
  const kind = { name: "AES-GCM", iv: encrypted.subarray(0, NONCE_SIZE) };
  try {
    const plaintext = await crypto.subtle.decrypt(kind, key, encrypted.subarray(NONCE_SIZE));
    return new Uint8Array(plaintext);
  } catch {
    return null;
  }
}

async function cipherKey(secret, salt, info, use) {
  const key = await deriveKey(secret, salt, info);
  return crypto.subtle.importKey("raw", key, "AES-GCM", false, [use]);
}

/** The first bytes of the AES-256-CTR key stream from a zero block. */
export async function keyStream(key, size) {
  const cipher = await crypto.subtle.importKey("raw", key, "AES-CTR", false, ["encrypt"]);
  const counter = { name: "AES-CTR", counter: new Uint8Array(16), length: 128 };
  return new Uint8Array(await crypto.subtle.encrypt(counter, cipher, new Uint8Array(size)));
}

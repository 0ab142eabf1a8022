// Whether this browser has everything that the client needs. Checked before anything else happens.

import { unhex } from "../client/bytes.js";
import { generateKeyPair } from "../client/encryption.js";
import { insist, Refusal } from "../client/refusal.js";

// The public key of the first test in RFC 8032, section 7.1.
const PUBLIC_KEY = unhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
const CHECK_DATABASE = "faircount-check";

/** Refuse an address without encryption, a browser that is too old, and one without storage. */
export async function checkBrowser() {
  insist(window.isSecureContext, "insecure", "no secure context");
  const features = [
    "isWellFormed" in String.prototype,
    "hasOwn" in Object,
    "timeout" in AbortSignal,
    "locks" in navigator,
  ];
  insist(features.every(Boolean), "browser", "a feature of the language is missing");
  try {
    await generateKeyPair();
    await crypto.subtle.importKey("raw", PUBLIC_KEY, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    throw new Refusal("browser", "X25519 or Ed25519 is missing");
  }
  insist(await storageWorks(), "storage", "IndexedDB cannot be opened");
}

function storageWorks() {
  return new Promise((resolve) => {
    try {
      const opening = indexedDB.open(CHECK_DATABASE);
      opening.onsuccess = () => {
        opening.result.close();
        indexedDB.deleteDatabase(CHECK_DATABASE);
        resolve(true);
      };
      opening.onerror = () => resolve(false);
    } catch {
      resolve(false);
    }
  });
}

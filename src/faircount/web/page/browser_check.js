// Whether this browser has all that the client needs. What is missing is told before anything else is done.

import { unhex } from "../client/bytes.js";
import { insist, Refusal } from "../client/refusal.js";
import { freshKeyPair } from "../client/sealing.js";

const PUBLIC_KEY = unhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"); // of RFC 8032, section 7.1

/** Refuses a browser that is too old, an address without protection, and a browser that keeps nothing. */
export async function checkBrowser() {
  insist(window.isSecureContext, "insecure", "no secure context");
  const needed = ["isWellFormed" in String.prototype, "hasOwn" in Object, "timeout" in AbortSignal, "locks" in navigator];
  insist(needed.every(Boolean), "browser", "a part of the language is missing");
  try {
    await freshKeyPair();
    await crypto.subtle.importKey("raw", PUBLIC_KEY, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    throw new Refusal("browser", "X25519 or Ed25519 is missing");
  }
  insist(await storageWorks(), "storage", "IndexedDB cannot be opened");
}

function storageWorks() {
  return new Promise((resolve) => {
    try {
      const opening = indexedDB.open("faircount-check");
      opening.onsuccess = () => (opening.result.close(), indexedDB.deleteDatabase("faircount-check"), resolve(true));
      opening.onerror = () => resolve(false);
    } catch {
      resolve(false);
    }
  });
}

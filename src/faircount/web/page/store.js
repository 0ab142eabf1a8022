// What this device keeps: one record for each survey that was answered here, sealed under a key that no script can read
// out. A record is on the disk (strict durability) before anything of it is sent. No answer and no token is kept.

import { systemRandom } from "../client/random.js";

const DATABASE = "faircount";
const RECORDS = "parts";

/** The record of this id, or null. */
export async function load(id) {
  const kept = await request("readonly", (records) => records.get(id));
  return kept ? opened(kept) : null;
}

/** All records. */
export async function loadAll() {
  return Promise.all((await request("readonly", (records) => records.getAll())).map(opened));
}

/** Write a new record, unless there is one; the record that stands. */
export async function addFirst(record) {
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const kept = await sealed(key, record);
  try {
    await request("readwrite", (records) => records.add(kept));
  } catch (problem) {
    if (problem.name !== "ConstraintError") throw problem; // another tab was first: its draw stands
  }
  return load(record.id);
}

/** Write a record again. */
export async function save(record) {
  const { key } = await request("readonly", (records) => records.get(record.id));
  const kept = await sealed(key, record);
  await request("readwrite", (records) => records.put(kept));
  return record;
}

/** Forget a record, and its key with it. */
export const remove = (id) => request("readwrite", (records) => records.delete(id));

/** Do something with a record while no other tab does. */
export const alone = (id, action) => navigator.locks.request(`${DATABASE} ${id}`, action);

async function sealed(key, record) {
  const iv = systemRandom(12);
  const plain = new TextEncoder().encode(JSON.stringify(record));
  const box = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, plain);
  return { id: record.id, key, iv, box: new Uint8Array(box) };
}

async function opened({ key, iv, box }) {
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, box);
  return JSON.parse(new TextDecoder().decode(plain));
}

function database() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(RECORDS, { keyPath: "id" });
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

/** One request in a transaction of its own; done when the transaction is. */
async function request(mode, ask) {
  const base = await database();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = base.transaction(RECORDS, mode, { durability: "strict" });
      const asked = ask(transaction.objectStore(RECORDS));
      transaction.oncomplete = () => resolve(asked.result);
      transaction.onabort = () => reject(transaction.error ?? asked.error);
    });
  } finally {
    base.close();
  }
}

// What this device stores: one record per survey answered here, encrypted under a key that no
// script can export. A record is on the disk (strict durability) before anything of it is sent.
// Neither the response nor the invitation's token is stored.

import { systemRandom } from "../client/random.js";

const DATABASE = "faircount";
const RECORDS = "participations";
const NONCE_SIZE = 12;

/** The record with this id, or null. */
export async function load(id) {
  const stored = await request("readonly", (records) => records.get(id));
  return stored ? decryptRecord(stored) : null;
}

/** All records. */
export async function loadAll() {
  const stored = await request("readonly", (records) => records.getAll());
  return Promise.all(stored.map(decryptRecord));
}

/** Store a new record unless there is one with its id; returns the record that is stored. */
export async function addFirst(record) {
  const kind = { name: "AES-GCM", length: 256 };
  const key = await crypto.subtle.generateKey(kind, false, ["encrypt", "decrypt"]);
  const stored = await encryptRecord(key, record);
  try {
    await request("readwrite", (records) => records.add(stored));
  } catch (problem) {
    // Another tab was first: its draw of noise stays the only one.
    if (problem.name !== "ConstraintError") throw problem;
  }
  return load(record.id);
}

/** Replace a record by its new version. */
export async function save(record) {
  const { key } = await request("readonly", (records) => records.get(record.id));
  const stored = await encryptRecord(key, record);
  await request("readwrite", (records) => records.put(stored));
  return record;
}

/** Delete a record together with its key. */
export const remove = (id) => request("readwrite", (records) => records.delete(id));

/** Run an action while no other tab works on the same record. */
export const withLock = (id, action) => navigator.locks.request(`${DATABASE} ${id}`, action);

async function encryptRecord(key, record) {
  const iv = systemRandom(NONCE_SIZE);
  const plain = new TextEncoder().encode(JSON.stringify(record));
  const box = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, plain);
  return { id: record.id, key, iv, box: new Uint8Array(box) };
}

async function decryptRecord({ key, iv, box }) {
  const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, box);
  return JSON.parse(new TextDecoder().decode(plain));
}

function openDatabase() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore(RECORDS, { keyPath: "id" });
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

/** One request in a transaction of its own; resolves when the transaction is complete. */
async function request(mode, ask) {
  const database = await openDatabase();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(RECORDS, mode, { durability: "strict" });
      const asked = ask(transaction.objectStore(RECORDS));
      transaction.oncomplete = () => resolve(asked.result);
      transaction.onabort = () => reject(transaction.error ?? asked.error);
    });
  } finally {
    database.close();
  }
}

// Messages as bytes: u8 version | u8 tag | fields in order | the first 8 bytes of the SHA-256 of all that.
// Only what a person's client sends or reads is listed here; the layouts are those of the Python package.

import { join, same, u32 } from "./bytes.js";
import { sha256 } from "./digests.js";
import { insist } from "./refusal.js";

const VERSION = 2;
const CHECK = 8;

const fixed = (size) => ({
  write: (value) => (insist(value.length === size, "malformed", `${size} bytes are needed here`), value),
  read: (reader) => reader.take(size),
});
const number = (size, read, write) => ({
  write: (value) => {
    const out = new DataView(new ArrayBuffer(size));
    write(out, value);
    return new Uint8Array(out.buffer);
  },
  read: (reader) => read(new DataView(reader.take(size).buffer)),
});
const u8 = number(1, (view) => view.getUint8(0), (view, value) => view.setUint8(0, value));
const word = number(4, (view) => view.getUint32(0), (view, value) => view.setUint32(0, value));
const i64 = number(8, (view) => view.getBigInt64(0), (view, value) => view.setBigInt64(0, value));
const blob = {
  write: (value) => join(u32(value.length), value),
  read: (reader) => reader.take(word.read(reader)),
};
const listOf = (kind, most = Infinity) => ({
  write: (values) => join(u32(values.length), ...values.map(kind.write)),
  read: (reader) => {
    const count = word.read(reader);
    insist(count <= Math.min(most, reader.left), "malformed", "a list is longer than it can be");
    return Array.from({ length: count }, () => kind.read(reader));
  },
});
const record = (fields) => ({
  write: (value) => join(...Object.entries(fields).map(([name, kind]) => kind.write(value[name]))),
  read: (reader) => Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, kind.read(reader)])),
});
const id = fixed(16);
const hash = fixed(32);
const signature = fixed(64);
const path = listOf(hash, 32); // no tree is higher; nobody knows yet who has sent a longer one

const signed = record({ by: word, payload: blob, signature, number: word, previous: hash });
const against = record({ who: word, epsilon: blob, delta: blob });

const LAYOUTS = {
  Rejected: [0, record({ reason: u8, detail: blob })],
  Accepted: [1, record({ survey: id, body_hash: hash, index: word, size: word, path, signature })],
  Signed: [2, signed],
  Published: [
    6,
    record({
      survey: id, digest: hash, claim_hash: hash, root: hash, included: word, counts: listOf(i64), epsilon: blob,
      delta: blob, realized_epsilon: blob, realized_delta: blob, against: listOf(against), refused: word,
    }),
  ],
  Aborted: [7, record({ survey: id, reason: blob, spent: u8 })],
  Wait: [11, record({ survey: id, state: blob })],
  Inquiry: [12, record({ survey: id, access: hash })],
  Withdraw: [14, record({ survey: id, access: hash })],
  Submission: [
    16,
    record({ survey: id, access: hash, public_key: hash, mac: hash, salt: id, share: blob, blob }),
  ],
  Inclusion: [21, record({ published: signed, index: word, size: word, path })],
  Concluded: [22, record({ statement: signed })],
};
const NAMES = new Map(Object.entries(LAYOUTS).map(([name, [tag]]) => [tag, name]));

/** Names of the messages that this client can read, and of those that S1 answers with. */
export const KNOWN = Object.keys(LAYOUTS);
export const ANSWERS = ["Rejected", "Accepted", "Wait", "Inclusion", "Concluded"];

/** The bytes of a message. */
export async function encode(name, fields) {
  const [tag, layout] = LAYOUTS[name];
  return framed(join(Uint8Array.of(VERSION, tag), layout.write(fields)));
}

/** {name, ...fields} of the message of one of these kinds behind these bytes; any others are refused unread. */
export async function decode(bytes, kinds = KNOWN) {
  insist(bytes.length >= 2 + CHECK, "malformed", "too short for a message");
  const [body, name] = [bytes.subarray(0, -CHECK), NAMES.get(bytes[1])];
  insist(bytes[0] === VERSION && kinds.includes(name), "malformed", "a message of an unknown version or kind");
  insist(same(await checkOf(body), bytes.subarray(-CHECK)), "malformed", "a message was changed on its way");
  const reader = new Reader(body, 2);
  const fields = LAYOUTS[name][1].read(reader);
  insist(reader.left === 0, "malformed", "bytes are left over after a message");
  return { name, ...fields };
}

async function framed(body) {
  return join(body, await checkOf(body));
}

async function checkOf(body) {
  return (await sha256(body)).subarray(0, CHECK);
}

class Reader {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }

  get left() {
    return this.bytes.length - this.at;
  }

  take(size) {
    insist(size <= this.left, "malformed", "a message ends too early");
    this.at += size;
    return this.bytes.slice(this.at - size, this.at);
  }
}

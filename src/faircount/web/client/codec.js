// Messages as bytes: u8 version | u8 tag | fields in order | checksum, which is the first 8 bytes
// of the SHA-256 of everything before it. It detects corruption and authenticates nothing.
//
// The layouts are those of the Python package, under the same names. Only messages that a
// participant's client sends or reads are listed.

import { join, same, u32 } from "./bytes.js";
import { sha256 } from "./digests.js";
import { insist } from "./refusal.js";

const VERSION = 2;
const CHECKSUM_SIZE = 8;
const MAX_PATH = 32; // a Merkle tree over 2^32 leaves is no higher

const fixed = (size) => ({
  write: (value) => {
    insist(value.length === size, "malformed", `this field has ${size} bytes`);
    return value;
  },
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
const byteString = {
  write: (value) => join(u32(value.length), value),
  read: (reader) => reader.take(word.read(reader)),
};
const listOf = (kind, most = Infinity) => ({
  write: (values) => join(u32(values.length), ...values.map(kind.write)),
  read: (reader) => {
    const count = word.read(reader);
    // Every element has at least one byte: a count that a message cannot hold allocates nothing.
    insist(count <= Math.min(most, reader.left), "malformed", "a list is longer than it can be");
    return Array.from({ length: count }, () => kind.read(reader));
  },
});
const record = (fields) => ({
  write: (value) => join(...Object.entries(fields).map(([name, kind]) => kind.write(value[name]))),
  read: (reader) =>
    Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, kind.read(reader)])),
});
const id = fixed(16);
const hash = fixed(32);
const signature = fixed(64);
// Paths are read before any signature is checked, so a stranger could have sent them: bound them.
const path = listOf(hash, MAX_PATH);

const signed = record({ by: word, payload: byteString, signature, number: word, previous: hash });
const against = record({ who: word, epsilon: byteString, delta: byteString });
const published = record({
  survey: id,
  digest: hash,
  manifest_hash: hash,
  root: hash,
  included: word,
  counts: listOf(i64),
  epsilon: byteString,
  delta: byteString,
  realized_epsilon: byteString,
  realized_delta: byteString,
  against: listOf(against),
  rejected: word,
});
const aborted = record({
  survey: id,
  code: u8,
  numbers: listOf(word),
  detail: byteString,
  by: word,
  spent: u8,
});
const acknowledgement = record({
  survey: id,
  message_hash: hash,
  index: word,
  size: word,
  path,
  signature,
});
const report = record({
  survey: id,
  access: hash,
  public_key: hash,
  mac: hash,
  salt: id,
  share: byteString,
  encrypted_share: byteString,
  device_key: hash,
});
const fromDevice = record({ survey: id, access: hash, device_key: hash, signature });

/** By the name of the Python class: [tag, layout]. */
const LAYOUTS = {
  Rejection: [0, record({ reason: u8, detail: byteString })],
  Acknowledgement: [1, acknowledgement],
  Signed: [2, signed],
  Published: [6, published],
  Aborted: [7, aborted],
  NotReady: [11, record({ survey: id, state: byteString, notices: u8 })],
  OutcomeRequest: [12, fromDevice],
  Withdrawal: [14, fromDevice],
  Report: [16, report],
  InclusionProof: [21, record({ published: signed, index: word, size: word, path, notices: u8 })],
  FinalStatement: [22, record({ statement: signed, notices: u8 })],
};
const NAMES = new Map(Object.entries(LAYOUTS).map(([name, [tag]]) => [tag, name]));

/** Names of all messages that this client can read. */
export const KNOWN = Object.keys(LAYOUTS);
/** Names of the messages with which the coordinator replies. */
export const REPLIES = [
  "Rejection", "Acknowledgement", "NotReady", "InclusionProof", "FinalStatement",
];

/** The bytes of a message. */
export async function encode(name, fields) {
  const [tag, layout] = LAYOUTS[name];
  const content = join(Uint8Array.of(VERSION, tag), layout.write(fields));
  return join(content, await checksumOf(content));
}

/**
 * {name, ...fields} of the message behind these bytes. Messages of other kinds than `kinds` are
 * refused before any field is read.
 */
export async function decode(bytes, kinds = KNOWN) {
  insist(bytes.length >= 2 + CHECKSUM_SIZE, "malformed", "too short for a message");
  const content = bytes.subarray(0, -CHECKSUM_SIZE);
  const name = NAMES.get(bytes[1]);
  const isKnown = bytes[0] === VERSION && kinds.includes(name);
  // check: page-message-kind - a long message where a short one is expected
  insist(isKnown, "malformed", "a message of an unknown version or kind");
  const isIntact = same(await checksumOf(content), bytes.subarray(-CHECKSUM_SIZE));
  // check: page-message-intact - a damaged message
  insist(isIntact, "malformed", "a message was damaged on its way");
  const reader = new Reader(content, 2);
  const fields = LAYOUTS[name][1].read(reader);
  // check: page-message-end - bytes that nobody reads
  insist(reader.left === 0, "malformed", "bytes are left over after a message");
  return { name, ...fields };
}

async function checksumOf(content) {
  return (await sha256(content)).subarray(0, CHECKSUM_SIZE);
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

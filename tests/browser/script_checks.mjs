// Makes one attack on the browser's client and prints whether the client fell for it. Arguments: the
// address of the folder with the scripts, which may be changed ones (tests/mutants.py), and the name
// of the attack. What an attack needs comes from standard input, in JSON.

import { readFileSync } from "node:fs";

const [folder, attack] = process.argv.slice(2);
const load = (name) => import(`${folder}/${name}`);
const { join, textBytes, u32, unhex } = await load("client/bytes.js");
const { decode, encode, REPLIES } = await load("client/codec.js");
const { LABEL, rootOfPath, sha256, taggedHash, paramsDigest } = await load("client/digests.js");
const { agreeSecret, AGGREGATOR, generateKeyPair } = await load("client/encryption.js");
const { parse, parseInvited } = await load("client/parameters.js");
const { Refusal } = await load("client/refusal.js");
const { verifyAcknowledgement, verifyStatement } = await load("client/signatures.js");
const { verifyOutcome } = await load("page/participation.js");

const given = JSON.parse(readFileSync(0, "utf8"));
const SURVEY = new Uint8Array(16).fill(1);
const ZEROS = new Uint8Array(32);

const ED25519 = { name: "Ed25519" };

async function signer() {
  const pair = await crypto.subtle.generateKey(ED25519, true, ["sign", "verify"]);
  const key = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const sign = async (data) =>
    new Uint8Array(await crypto.subtle.sign(ED25519, pair.privateKey, data));
  return { key, sign };
}

/** An ended survey, signed by this key as this party. */
async function statementOf({ sign }, { by = AGGREGATOR, survey = SURVEY } = {}) {
  const fields = { survey, code: 1, numbers: [], detail: new Uint8Array(0), by: 0, spent: 0 };
  return signedBy(sign, by, await encode("Aborted", fields));
}

async function signedBy(sign, by, payload) {
  const statement = { by, number: 1, previous: ZEROS, payload };
  const data = join(textBytes(`${LABEL}/statement\0`), u32(by), u32(1), ZEROS, payload);
  return { ...statement, signature: await sign(data) };
}

async function acknowledge({ sign }, message) {
  const messageHash = await sha256(message);
  const root = await taggedHash("acknowledged", messageHash);
  const data = join(textBytes(`${LABEL}/acknowledgement\0`), SURVEY, u32(1), root);
  const signature = await sign(data);
  return { survey: SURVEY, message_hash: messageHash, index: 0, size: 1, path: [], signature };
}

async function isAccepted(work) {
  try {
    await work();
    return true;
  } catch (problem) {
    if (problem instanceof Refusal) return false;
    throw problem;
  }
}

const withChecksum = async (content) => join(content, (await sha256(content)).slice(0, 8));

const ATTACKS = {
  nothing: async () => {
    const server = await signer();
    const message = textBytes("mine");
    const acknowledgement = await acknowledge(server, message);
    const results = [
      (await verifyStatement(server.key, await statementOf(server))) !== null,
      await verifyAcknowledgement({ coordinator: server.key }, SURVEY, acknowledgement, message),
      (await rootOfPath(0, 2, [ZEROS], ZEROS)) !== null,
      (await verifyOutcome(
        { survey: SURVEY, keys: { aggregator: server.key } }, await statementOf(server),
      )) !== null,
    ];
    return results.every(Boolean);
  },
  "page-statement-party": async () => {
    const server = await signer();
    return (await verifyStatement(server.key, await statementOf(server, { by: 0 }))) !== null;
  },
  "page-statement-signature": async () => {
    const [server, other] = [await signer(), await signer()];
    return (await verifyStatement(server.key, await statementOf(other))) !== null;
  },
  "page-acknowledged-message": async () => {
    const server = await signer();
    const other = await acknowledge(server, textBytes("another's"));
    // The signature is on the tree, which has the other message: the tree is made to fit.
    const hash = await sha256(textBytes("mine"));
    const mine = await acknowledge(server, textBytes("mine"));
    const elsewhere = new Uint8Array(16).fill(2);
    const forMine = { ...mine, message_hash: other.message_hash };
    return (
      (await verifyAcknowledgement({ coordinator: server.key }, SURVEY, forMine, textBytes("mine"))) ||
      (await verifyAcknowledgement(
        { coordinator: server.key }, SURVEY, { ...mine, survey: elsewhere, message_hash: hash },
        textBytes("mine"),
      ))
    );
  },
  "page-path-index": async () => (await rootOfPath(5, 1, [], ZEROS)) !== null,
  "page-path-end": async () => (await rootOfPath(0, 1, [ZEROS], ZEROS)) !== null,
  "page-invited-parameters": async () => {
    const digest = await paramsDigest(textBytes(given.published));
    return isAccepted(() => parseInvited(textBytes(given.weaker), digest));
  },
  parameters: () => isAccepted(() => parse(textBytes(given.published))),
  "page-message-kind": async () => {
    const { payload } = await statementOf(await signer());
    return isAccepted(() => decode(payload, REPLIES));
  },
  "page-message-intact": async () => {
    const { payload } = await statementOf(await signer());
    payload[3] ^= 1;
    return isAccepted(() => decode(payload));
  },
  "page-message-end": async () => {
    const { payload } = await statementOf(await signer());
    const longer = await withChecksum(join(payload.slice(0, -8), Uint8Array.of(0)));
    return isAccepted(() => decode(longer));
  },
  "page-key-canonical": async () => {
    const { secret } = await generateKeyPair();
    // 9 + p in 255 bits: the same point as 9.
    const again = unhex("f6" + "ff".repeat(30) + "7f");
    return isAccepted(() => agreeSecret(secret, again));
  },
  "page-outcome-survey": async () => {
    const server = await signer();
    const other = await statementOf(server, { survey: new Uint8Array(16).fill(2) });
    return (await verifyOutcome({ survey: SURVEY, keys: { aggregator: server.key } }, other)) !== null;
  },
  "page-outcome-parameters": async () => {
    const server = await signer();
    const published = {
      survey: SURVEY, digest: ZEROS, manifest_hash: ZEROS, root: ZEROS, included: 2,
      counts: [1n, 1n], epsilon: textBytes("1"), delta: textBytes("0"),
      realized_epsilon: textBytes("1"), realized_delta: textBytes("0"), against: [], rejected: 0,
    };
    const signed = await signedBy(server.sign, AGGREGATOR, await encode("Published", published));
    const params = { survey: SURVEY, digest: new Uint8Array(32).fill(7), keys: { aggregator: server.key } };
    const own = { ...params, digest: ZEROS };
    if ((await verifyOutcome(own, signed)) === null) throw new Error("the true one is refused");
    return (await verifyOutcome(params, signed)) !== null;
  },
};

console.log(JSON.stringify(await ATTACKS[attack]()));

// Replays test_vectors/ with the browser's client, in Node and in a browser: one function per file,
// which is called with every case and throws where the client computes something else.

import {
  decode as decodeJson, encode as encodeJson,
} from "../../src/faircount/web/client/canonical_json.js";
import { weightedSum } from "../../src/faircount/web/client/blocks.js";
import { bytesText, hex, textBytes, unhex } from "../../src/faircount/web/client/bytes.js";
import { decode, encode, KNOWN } from "../../src/faircount/web/client/codec.js";
import { devicePublicKey, signForDevice } from "../../src/faircount/web/client/device.js";
import {
  entryLeaf, paramsDigest, rootOfPath, sha256,
} from "../../src/faircount/web/client/digests.js";
import { expand, pack, subtract, unpack } from "../../src/faircount/web/client/field.js";
import {
  deriveInvitation, enrolmentMacKey, entryMac,
} from "../../src/faircount/web/client/invitation.js";
import { drawPlaced, lossesOf } from "../../src/faircount/web/client/levels.js";
import { checkOperators } from "../../src/faircount/web/client/operators.js";
import { parseInvited, parse } from "../../src/faircount/web/client/parameters.js";
import { decoysDelta, samplingDelta } from "../../src/faircount/web/client/privacy.js";
import { prove } from "../../src/faircount/web/client/proof.js";
import {
  encodeSheet, openCells, readQuestionnaire,
} from "../../src/faircount/web/client/questionnaire.js";
import { Refusal } from "../../src/faircount/web/client/refusal.js";
import { 
  agreeSecret, decrypt, deriveKey, encrypt, importSecretKey, keyInfo,
} from "../../src/faircount/web/client/encryption.js";
import {
  verifyAcknowledgement, verifyStatement, verify,
} from "../../src/faircount/web/client/signatures.js";
import { encodeReport } from "../../src/faircount/web/client/report.js";
import { vanishing } from "../../src/faircount/web/client/small_field.js";
import { laplaceTable, lookup, tableDigest } from "../../src/faircount/web/client/tables.js";
import { accepts, blindedAt, fieldOf, pointOf, valueAt, verifierShareOf } from "./verifier.mjs";

/** Files that a participant's client in the `servers` topology does not need. */
export const NOT_OURS = [
  "shamir", "bad_shamir", "masks", "graphs", "sets", "explicit_users", "placed_coins",
  "bad_device_messages",
];

const ONE = 1n << 128n;

/** Tables that are computed and not listed, for epsilon 1 and h = 9. */
const LAPLACE = {
  laplace: () => laplaceTable(ONE, 1, 9),
  "laplace, two items": () => laplaceTable(2n * ONE, 2, 9),
};

function equal(found, wanted, what) {
  const [left, right] = [found, wanted].map((value) => JSON.stringify(value));
  if (left !== right) {
    throw new Error(`${what}: ${left.slice(0, 80)} instead of ${right.slice(0, 80)}`);
  }
}

async function refused(action, what) {
  try {
    await action();
  } catch (problem) {
    if (problem instanceof Refusal) return problem.code;
    throw problem;
  }
  throw new Error(`${what} was not refused`);
}

/** Bytes 00, 01, 02, ... in the order in which they are asked for. */
function listed() {
  let next = 0;
  return (size) => Uint8Array.from({ length: size }, () => next++ % 256);
}

const decimal = (values) => values.map(String);
const bigs = (values) => values.map((value) => BigInt(value));

export const REPLAYS = {
  async known_answer(one) {
    const publicB = await publicOf(one.secret_b);
    const shared = await agreeSecret(await importSecretKey(unhex(one.secret_a)), publicB);
    const key = await deriveKey(shared, unhex(one.salt), unhex(one.info));
    equal(hex(key), one.key, "key");
    const row = await expand(key, BigInt(one.q), one.count);
    equal(decimal(row.slice(0, 4)), one.first, "elements");
    equal(hex(await sha256(pack(row, BigInt(one.q)))), one.packed_sha256, "packed");
  },

  async key_derivation(one) {
    const parts = [unhex(one.survey), one.attempt, one.sender, one.receiver, unhex(one.context)];
    const info = keyInfo(one.purpose, ...parts);
    equal(hex(info), one.info, "info");
    const shared = await agreeSecret(await importSecretKey(unhex(one.secret)), unhex(one.public));
    equal(hex(await deriveKey(shared, unhex(one.salt), info)), one.key, "key");
  },

  async bad_keys(one) {
    const secret = await importSecretKey(unhex(one.secret));
    equal(await refused(() => agreeSecret(secret, unhex(one.public)), one.why), "key", "reason");
  },

  async expansion(one) {
    const row = await expand(unhex(one.key), BigInt(one.q), one.elements.length);
    equal(decimal(row), one.elements, "elements");
    equal(hex(pack(row, BigInt(one.q))), one.packed, "packed");
  },

  async packing(one) {
    equal(hex(pack(bigs(one.elements), BigInt(one.q))), one.packed, "packed");
    const row = unpack(unhex(one.packed), BigInt(one.q), one.elements.length);
    equal(decimal(row), one.elements, "elements");
  },

  bad_packing: (one) => refused(() => unpack(unhex(one.packed), BigInt(one.q), one.count), one.why),

  async encryption(one) {
    const shared = await agreeSecret(await importSecretKey(unhex(one.secret)), unhex(one.public));
    equal(hex(shared), one.shared, "shared");
    const [salt, info] = [unhex(one.salt), unhex(one.info)];
    const nonce = () => unhex(one.nonce);
    const encrypted = await encrypt(shared, salt, info, unhex(one.plaintext), nonce);
    equal(hex(encrypted), one.encrypted_share, "encrypted share");
    equal(hex(await decrypt(shared, salt, info, encrypted)), one.plaintext, "plaintext");
  },

  async bad_encryption(one) {
    const [secret, salt, info] = [one.shared, one.salt, one.info].map(unhex);
    equal(await decrypt(secret, salt, info, unhex(one.encrypted_share)), null, one.why);
  },

  async draws(one) {
    const table =
      one.table in LAPLACE
        ? LAPLACE[one.table]()
        : { values: one.table_values, cumulative: bigs(one.cumulative) };
    equal(await tableDigest(table), one.digest, "digest");
    equal(one.bits.map((bits) => lookup(table, BigInt(bits))), one.values, "values");
  },

  exact_delta(one) {
    const found =
      one.mechanism === "decoys"
        ? decoysDelta(one.decoys, one.epsilon)
        : samplingDelta(one.floor, Number(one.p), one.epsilon);
    const wanted = Number(one.delta_replace);
    if (Math.abs(found - wanted) > 1e-11 * wanted) {
      throw new Error(`delta ${found} instead of ${wanted}`);
    }
  },

  async params(one) {
    const published = textBytes(one.published);
    equal(bytesText(encodeJson(decodeJson(published))), one.published, "canonical form");
    equal(hex(await paramsDigest(published)), one.digest, "digest");
    if (JSON.parse(one.published).topology === "servers") {
      const params = await parseInvited(published, unhex(one.digest));
      const [{ text }] = params.questionnaire.questions;
      equal(typeof text, "string", "text of the first question");
      const parseOther = () => parseInvited(published, new Uint8Array(32));
      equal(await refused(parseOther, "another digest"), "digest", "reason");
    } else {
      equal(await refused(() => parse(published), "several visits"), "topology", "reason");
    }
  },

  bad_params: (one) => refused(() => parse(textBytes(one.published)), one.why),

  async rosters(one) {
    const at = one.lines.length - 1;
    const leaf = await entryLeaf(at, ...one.lines[at].map(unhex));
    equal(hex(leaf), one.leaves[at], "leaf");
    const path = one.proof_of_last.map(unhex);
    equal(hex(await rootOfPath(at, at + 1, path, leaf)), one.root, "root");
    equal(await rootOfPath(at, at + 1, [...path, leaf], leaf), null, "a path that is too long");
  },

  async invitations(one) {
    const guest = await deriveInvitation(unhex(one.token), unhex(one.params_digest));
    const mac = await entryMac(guest.token, guest.params, unhex(one.public_key));
    const found = [guest.access, guest.user, await enrolmentMacKey(guest.token), mac].map(hex);
    equal(found, [one.access, one.user, one.enrolment_mac_key, one.mac], "invitation");
  },

  async servers_upload(one) {
    const params = await parse(textBytes(one.published));
    const guest = await deriveInvitation(unhex(one.token), params.digest);
    const secret = await importSecretKey(unhex(one.secret));
    const pair = { secret, public: await publicOf(one.secret) };
    const [vector, seed] = [bigs(one.response), unhex(one.seed)];
    const made = await encodeReport(params, guest, vector, seed, pair, listed());
    const found = [made.share, made.commitment, made.encryptedShare, made.message].map(hex);
    equal(found, [one.share, one.commitment, one.encrypted_share, one.body], "report");
  },

  async validity(one) {
    const field = fieldOf(one.q, one.k, one.modulus);
    const size = one.N + one.m;
    equal(valueAt(field, vanishing(size, one.q), one.r), one.Z_at_r, "Z");
    for (const [at, bits] of one.bits.entries()) {
      const row = prove({ q: one.q }, bits, one.s[at]);
      equal(row, [...bits, ...one.s[at], ...one.h[at]], "row");
      equal(blindedAt(field, bits, one.s[at], one.r), one.f_at_r[at], "f");
      equal(valueAt(field, one.h[at], one.r), one.h_at_r[at], "h");
    }
  },

  async proven_reports(one) {
    const { drawn, mechanism, questionnaire } = await parse(textBytes(one.published));
    const [size, { q, degree, proof }] = [one.bits + one.coins, drawn.layout];
    const wanted = [one.q, one.degree, one.bits, one.coins, one.modulus];
    equal([q, degree, proof.bits, proof.coins, proof.modulus], wanted, "layout");
    for (const report of one.reports) {
      const bits = report.row.slice(0, size);
      if (mechanism === "server-joint") {
        equal(encodeSheet(questionnaire, report.sheet), bits, "bits of the sheet");
      }
      if (mechanism === "server-levels") {
        equal(drawPlaced(drawn, report.sheet, report.level, listed()), bits, "bits at a level");
      }
      const blind = report.row.slice(size, size + one.degree);
      equal(prove(drawn.layout, bits, blind), report.row, "row");
      await judged({ ...one, ...report }, true);
    }
  },

  sheets(one) {
    const questionnaire = readQuestionnaire(one);
    equal(questionnaire.constraints, one.constraints, "constraints");
    equal(questionnaire.openings.map((weights) => ({ weights })), one.openings, "openings");
    for (const { sheet, bits, cells } of one.sheets) {
      equal(encodeSheet(questionnaire, sheet), bits, "bits");
      equal(openCells(questionnaire, bits), cells, "cells");
    }
  },

  async levels(one) {
    const { drawn, derived } = await parse(textBytes(one.published));
    const { form, levels } = drawn;
    equal(levels.offered.map(({ coin }) => String(coin)), derived.coins, "coins");
    equal(form.constraints, one.constraints, "constraints");
    equal(form.cells, one.openings.length, "cells");
    one.losses.forEach((wanted, level) => {
      const { answer, both } = lossesOf(levels, level);
      equal([answer, both.toFixed(12)], [wanted.answer, wanted.both.toFixed(12)], "losses");
    });
    for (const { sheet, level, random, bits, cells } of one.reports) {
      const prepared = (size) => {
        equal(size, 16, "random bytes");
        return unhex(random);
      };
      const found = drawPlaced(drawn, sheet, level, prepared);
      equal(found, bits, "bits");
      equal(one.openings.map(({ weights }) => weightedSum(weights, found)), cells, "cells");
    }
  },

  bad_reports: (one) => judged(one, false),

  async messages(one) {
    if (!KNOWN.includes(one.name)) {
      equal(await refused(() => decode(unhex(one.bytes)), one.name), "malformed", "reason");
      return;
    }
    const { name, ...fields } = await decode(unhex(one.bytes));
    equal([name, hex(await encode(name, fields))], [one.name, one.bytes], "message");
  },

  bad_messages: (one) => refused(() => decode(unhex(one.bytes)), one.why),

  async requests(one) {
    const label = "faircount/1/statement\0";
    const place = "by" in one ? [u32Hex(one.by), "00".repeat(36), one.payload].join("") : "";
    const data = "by" in one ? unhex(hex(textBytes(label)) + place) : unhex(one.signed);
    equal(await verify(unhex(one.public), unhex(one.signature), data), true, "signature");
    data[data.length - 1] ^= 1;
    const isValid = await verify(unhex(one.public), unhex(one.signature), data);
    equal(isValid, false, "signature of other bytes");
  },

  async bad_requests(one) {
    const { name, ...signed } = await decode(unhex(one.statement));
    equal([name, await verifyStatement(unhex(one.public), signed)], ["Signed", null], one.why);
  },

  async device_messages(one) {
    const params = await parse(textBytes(one.published));
    const secret = unhex(one.secret);
    const made = await signForDevice(one.name, params, unhex(one.access), secret);
    equal([hex(await devicePublicKey(secret)), hex(made)], [one.public, one.body], "signed");
  },

  async acknowledgements(one) {
    equal(await acknowledged(one), true, "acknowledgement");
  },

  async bad_acknowledgements(one) {
    equal(await acknowledged(one), false, one.why);
  },

  async operators(one) {
    const params = await parse(textBytes(one.published));
    await checkOperators(params, one);
    const { s1, s2 } = params.fingerprints;
    equal([s1, s2], one.fingerprints, "fingerprints");
  },

  async bad_operators(one) {
    const params = await parse(textBytes(one.published));
    equal(await refused(() => checkOperators(params, one), one.why), "operators", "reason");
  },
};

/** Shares, the query, the verifier shares of both servers, and their decision. */
async function judged(one, accepted) {
  const [q, field] = [BigInt(one.q), fieldOf(one.q, one.degree, one.modulus)];
  const point = await pointOf(textBytes(one.published), unhex(one.v1 + one.v2), one.q, one.degree);
  equal(point, one.point, "point");
  const second = await expand(unhex(one.key), q, one.row.length);
  const first = subtract(bigs(one.row), second, q);
  equal(hex(pack(first, q)), one.share, "share");
  const shares = [first, second].map((share) =>
    verifierShareOf(field, one, share.map(Number), point),
  );
  equal(shares, [one.verifier_share_1, one.verifier_share_2], "verifier shares");
  const isAccepted = accepts(field, one, ...shares, point);
  equal([isAccepted, one.accepted], [accepted, accepted], "decision");
}

async function acknowledged(one) {
  const survey = Uint8Array.from({ length: 16 }, (_, at) => at);
  const accepted = await decode(unhex(one.accepted));
  return verifyAcknowledgement({ coordinator: unhex(one.s1) }, survey, accepted, unhex(one.body));
}

const u32Hex = (value) => value.toString(16).padStart(8, "0");

/** The public half of an X25519 secret: the secret times the base point 9. */
async function publicOf(secret) {
  const base = Uint8Array.from({ length: 32 }, (_, at) => (at ? 0 : 9));
  return agreeSecret(await importSecretKey(unhex(secret)), base);
}

/** Replay all cases of all files; the problems, and how many cases there were. */
export async function replayAll(files) {
  const problems = [];
  let cases = 0;
  for (const [name, file] of Object.entries(files)) {
    if (NOT_OURS.includes(name)) continue;
    for (const [at, one] of file.cases.entries()) {
      cases += 1;
      try {
        await REPLAYS[name](one);
      } catch (problem) {
        problems.push(`${name} ${at}: ${problem.message}`);
      }
    }
  }
  return { cases, problems };
}

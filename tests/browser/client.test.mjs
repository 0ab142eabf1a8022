// The browser's client in Node: `node --test tests/browser`.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

import { ballOf } from "../../src/faircount/web/client/balls.js";
import { hex } from "../../src/faircount/web/client/bytes.js";
import { encode as encodeJson } from "../../src/faircount/web/client/canonical_json.js";
import { REPLIES, decode, encode } from "../../src/faircount/web/client/codec.js";
import { sha256 } from "../../src/faircount/web/client/digests.js";
import { uniformElements } from "../../src/faircount/web/client/field.js";
import { drawPlaced, lossesOf, readLevels } from "../../src/faircount/web/client/levels.js";
import { MECHANISMS } from "../../src/faircount/web/client/mechanisms.js";
import { laplaceEpsilon } from "../../src/faircount/web/client/privacy.js";
import { prove, reportLayout } from "../../src/faircount/web/client/proof.js";
import { radiusTable } from "../../src/faircount/web/client/radius.js";
import { systemRandom } from "../../src/faircount/web/client/random.js";
import { Refusal } from "../../src/faircount/web/client/refusal.js";
import { interpolation, times, vanishing } from "../../src/faircount/web/client/small_field.js";
import { laplaceTable } from "../../src/faircount/web/client/tables.js";
import { NOT_OURS, REPLAYS } from "./replay.mjs";

const FOLDER = new URL("../../test_vectors/", import.meta.url);
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith(".json"));
const NAMES = FILES.map((file) => file.slice(0, -5)).filter((name) => !NOT_OURS.includes(name));

for (const name of NAMES) {
  test(`known answers: ${name}`, async () => {
    const { cases } = JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER)));
    assert.ok(cases.length > 0);
    for (const one of cases) await REPLAYS[name](one);
  });
}

test("bytes that are no message are refused, for a message that this client reads", async () => {
  const path = [new Uint8Array(32)];
  const good = await encode("Acknowledgement", acknowledgement(path));
  const body = good.slice(0, -8);
  const longList = body.slice();
  longList.set([255, 255, 255, 255], 2 + 16 + 32 + 8);
  const checked = [body.slice(0, -1), Uint8Array.from([...body, 0]), longList];
  const bad = await Promise.all(checked.map(withChecksum));
  assert.equal((await decode(good)).size, 2);
  bad.push(good.slice(0, -1), join(good, [0]), changed(good, 20), changed(good, 0));
  for (const bytes of bad) {
    await assert.rejects(decode(bytes), Refusal, hex(bytes.slice(0, 4)));
  }
});

test("unsigned replies cannot carry long lists, and other kinds are refused unread", async () => {
  const survey = new Uint8Array(16);
  const hash = new Uint8Array(32);
  const accepted = (count) => {
    return encode("Acknowledgement", acknowledgement(new Array(count).fill(hash)));
  };
  assert.equal((await decode(await accepted(32), REPLIES)).path.length, 32);
  await assert.rejects(decode(await accepted(33), REPLIES), Refusal);
  const fields = { survey, code: 1, numbers: [], detail: hash, by: 0, spent: 0 };
  const ended = await encode("Aborted", fields);
  assert.equal((await decode(ended)).name, "Aborted");
  await assert.rejects(decode(ended, REPLIES), Refusal);
});

const acknowledgement = (path) => ({
  survey: new Uint8Array(16),
  message_hash: new Uint8Array(32),
  index: 0,
  size: 2,
  path,
  signature: new Uint8Array(64),
});
const withChecksum = async (content) => join(content, (await sha256(content)).slice(0, 8));
const join = (one, other) => Uint8Array.from([...one, ...other]);
const changed = (bytes, at) => bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));

test("keys of canonical JSON stand in the order of code points, not of UTF-16 units", () => {
  const bytes = encodeJson({ "\u{1f600}": 1, "\uff5e": 2, b: 3, a: 4, ab: 5 });
  assert.equal(new TextDecoder().decode(bytes), '{"a":4,"ab":5,"b":3,"\uff5e":2,"\u{1f600}":1}');
  assert.throws(() => encodeJson("\ud800"), Refusal);
});

test("heads are binomial: every random byte counted once", () => {
  for (const [coins, wanted] of [[3, [1, 3, 3, 1]], [8, [1, 8, 28, 56, 70, 56, 28, 8, 1]]]) {
    const found = new Array(coins + 1).fill(0);
    for (let byte = 0; byte < 256; byte += 1) {
      const random = () => Uint8Array.of(byte);
      const params = { answers: 2, drawn: { coinsPerUser: coins } };
      const [, count] = MECHANISMS.decoys.vector(params, [0], random);
      found[Number(count)] += 1;
    }
    assert.deepEqual(found, wanted.map((ways) => (ways * 256) / 2 ** coins));
  }
});

test("a person is counted exactly when the random bits lie below p", async () => {
  const coin = { values: [1, 0], cumulative: [1n << 126n, 1n << 128n] };
  const params = { answers: 3, drawn: { coin } };
  const first = (byte) => (size) => Uint8Array.from({ length: size }, (_, at) => (at ? 255 : byte));
  assert.deepEqual(MECHANISMS.dpds.vector(params, [2], first(0x3f)), [0n, 0n, 1n]);
  assert.deepEqual(MECHANISMS.dpds.vector(params, [2], first(0x40)), [0n, 0n, 0n]);
});

test("a Laplace table is a symmetric distribution next to the ideal one", () => {
  const { values, cumulative, distance } = laplaceTable(1n << 127n, 0.5, 20);
  const weights = cumulative.map((top, at) => top - (at ? cumulative[at - 1] : 0n));
  assert.equal(values[0], -values.at(-1));
  assert.equal(cumulative.at(-1), 1n << 128n);
  assert.deepEqual(weights, weights.slice().reverse());
  assert.ok(distance > 0 && distance < 2 ** -115);
});

test("less noise than planned costs epsilon, more costs nothing", () => {
  assert.equal(laplaceEpsilon(1, 1.5), 1);
  assert.ok(laplaceEpsilon(1, 0.9) > 1 && laplaceEpsilon(1, 0.5) > laplaceEpsilon(1, 0.9));
});

test("large requests for random bytes are filled to the end", () => {
  const bytes = systemRandom(200_000);
  const last = bytes.slice(-1000);
  // 1,000 uniform bytes miss more than 56 values with probability below 10^-20.
  assert.ok(new Set(last).size > 200);
});

const LARGEST = 4294967291; // the largest prime below 2^32

test("products of residues are exact up to the largest modulus", () => {
  for (const q of [2, 3, 65537, 67108859, 67108864, 67108879, 2147483647, LARGEST]) {
    const near = [0, 1, 2, 65535, 65536, 65537, 2 ** 26, 2 ** 31, q >> 1, q - 65537, q - 2, q - 1];
    const values = near.filter((value) => value >= 0 && value < q);
    values.push(...uniformElements(BigInt(q), 500, systemRandom).map(Number));
    for (const [at, a] of values.entries()) {
      for (const b of [...values.slice(0, 12), values[values.length - 1 - at]]) {
        assert.equal(BigInt(times(a, b, q)), (BigInt(a) * BigInt(b)) % BigInt(q), `${a} ${b} ${q}`);
      }
    }
  }
});

/** A polynomial at a point, with integers of any size. */
function valueAt(polynomial, x, q) {
  return polynomial.reduceRight((sum, value) => (sum * x + BigInt(value)) % q, 0n);
}

test("proofs are exact for moduli of every size: h Z = f (f - 1), f through the bits", () => {
  // 67108859 and 67108879 surround 2^26, where products of residues begin to need two halves.
  for (const q of [367, 100003, 67108859, 67108879, LARGEST]) {
    checkProof(q, Array.from({ length: 120 }, (_, at) => Number(at === 29 || at % 3 === 1)));
  }
});

function checkProof(modulus, bits) {
  const q = BigInt(modulus);
  const form = { bits: bits.length - 5, coins: 5, constraints: [], cells: 1 };
  const layout = reportLayout(q, form, 1000);
  const blind = uniformElements(q, layout.degree, systemRandom).map(Number);
  const row = prove(layout, bits, blind);
  assert.equal(row.length, layout.width);
  assert.deepEqual(row.slice(0, bits.length + layout.degree), [...bits, ...blind]);
  const h = row.slice(bits.length + layout.degree);
  const z = vanishing(bits.length, modulus);
  const through = interpolation(bits, modulus);
  bits.forEach((bit, at) => assert.equal(valueAt(through, BigInt(at), q), BigInt(bit)));
  // As many points as coefficients: two polynomials of this degree that agree there are equal.
  for (let x = 0n; x < 2 * (bits.length + layout.degree) - 1; x += 1n) {
    const f = (valueAt(through, x, q) + valueAt(z, x, q) * valueAt(blind, x, q)) % q;
    assert.equal((f * (f + q - 1n)) % q, (valueAt(h, x, q) * valueAt(z, x, q)) % q);
  }
}

test("words that would make elements unequally likely are drawn again", () => {
  const words = [new Uint8Array(8).fill(255), Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 9)];
  // 2^64 - 1 is one of the two words left over.
  assert.deepEqual(uniformElements(7n, 1, () => words.shift()), [2n]);
  assert.equal(words.length, 0);
});

test("the coins in a report are fair: every random byte counted once", () => {
  const layout = reportLayout(223n, { bits: 3, coins: 3, constraints: [], cells: 3 }, 10);
  const found = new Array(8).fill(0);
  for (let byte = 0; byte < 256; byte += 1) {
    const random = (size) => new Uint8Array(size).fill(size === 1 ? byte : 0);
    const params = { answers: 3, drawn: { layout } };
    const row = MECHANISMS["placed-coins"].vector(params, [1], random);
    assert.deepEqual(row.slice(0, 3), [0n, 1n, 0n]);
    found[Number(row[3] * 4n + row[4] * 2n + row[5])] += 1;
  }
  assert.deepEqual(found, new Array(8).fill(32));
});

test("a long table of noise leaves room for what people click", async () => {
  const real = performance.now;
  let clock = 0;
  let events = 0;
  const click = setInterval(() => (events += 1));
  // Every look at the clock is as if a long time had passed.
  performance.now = () => (clock += 1000);
  try {
    const { cumulative } = await radiusTable([ballOf({ kind: "one", cells: 4 })], 1n << 128n);
    assert.ok(cumulative.length > 100);
    assert.ok(events > 10);
  } finally {
    performance.now = real;
    clearInterval(click);
  }
});

test("a coin falls as often as its level says, at every byte that decides", () => {
  const levels = { offered: [0n, 1n << 126n, 1n << 128n].map((coin) => ({ coin })) };
  const form = { bits: 4, starts: [{ inside: 0, outside: 2 }] };
  const inside = levels.offered.map((_, level) => {
    const bytes = Array.from({ length: 256 }, (_, first) => first);
    const draws = bytes.map((first) => {
      const random = (size) => Uint8Array.from({ length: size }, (_, at) => (at ? 255 : first));
      return drawPlaced({ levels, form }, [1], level, random);
    });
    assert.ok(draws.every((bits) => bits[1] + bits[3] === 1 && bits[0] + bits[2] === 0));
    return draws.filter((bits) => bits[1] === 1).length;
  });
  assert.deepEqual(inside, [0, 64, 256]);
});

test("losses of absurd levels are numbers, too", () => {
  const plain = [10n, 810n, 1610n].map((epsilon) =>
    ({ name: `level ${epsilon}`, epsilon: String(epsilon << 128n) }),
  );
  const levels = readLevels(plain);
  const losses = levels.offered.map((_, level) => Math.round(lossesOf(levels, level).both));
  assert.deepEqual(losses, [810, 810, 1610]);
});

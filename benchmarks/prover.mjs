// Times the prover of the participant's page in Node, beside Prio3Histogram of @divviup/prio3.
// Arguments: the number of items, the modulus, the number of users and, if it is to be compared,
// the folder in which that package was installed. Prints CPU seconds per call in JSON.
//
//   proof    the proof alone, from bits and random elements that are there already
//   report   for ours: blind drawn, bits proven, the aggregator's share expanded from a derived
//            key, the coordinator's share packed; for Prio3: `shard` and both shares encoded
//
// The first call of a report comes before anything is compiled or warm: a participant makes one.

import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";

import { deriveKey } from "../src/faircount/web/client/encryption.js";
import { expand, pack, subtract, uniformElements } from "../src/faircount/web/client/field.js";
import { PROVEN } from "../src/faircount/web/client/proven_mechanisms.js";
import { prove, reportLayout } from "../src/faircount/web/client/proof.js";
import { systemRandom } from "../src/faircount/web/client/random.js";

const ANSWER = 7;
const TURNS = 12;
const SECONDS_PER_TURN = 0.05;

const [items, modulus, users] = process.argv.slice(2, 5).map(Number);
const folder = process.argv[5];

function ours() {
  const q = BigInt(modulus);
  // One vote: exactly one of the bits is 1.
  const weights = Array.from({ length: items }, (_, bit) => [bit, 1]);
  const form = { bits: items, coins: 0, constraints: [{ weights, value: 1 }], cells: items };
  const layout = reportLayout(q, form, users);
  const bits = Array.from({ length: items }, (_, at) => Number(at === ANSWER));
  const blind = uniformElements(q, layout.degree, systemRandom).map(Number);
  const digest = systemRandom(32);
  return {
    proof: () => prove(layout, bits, blind),
    async report() {
      const params = { drawn: { layout }, answers: items };
      const row = PROVEN["server-laplace"].vector(params, [ANSWER], systemRandom);
      const key = await deriveKey(systemRandom(16), digest, digest);
      return pack(subtract(row, await expand(key, q, layout.width), q), q);
    },
  };
}

/** Chunks have about the length of a square root, as the VDAF draft recommends. */
async function theirs() {
  const found = createRequire(join(folder, "package.json")).resolve("@divviup/prio3");
  const { Prio3Histogram } = await import(pathToFileURL(found));
  const chunkLength = Math.round(Math.sqrt(items));
  const prio3 = new Prio3Histogram({ shares: 2, length: items, chunkLength });
  const { flp } = prio3;
  const measurement = flp.encode(ANSWER);
  const elements = (count) => Array.from({ length: count }, () => 2n ** 126n + BigInt(count));
  const proveRand = elements(flp.proveRandLen);
  const jointRand = elements(flp.jointRandLen);
  return {
    proof: () => flp.prove(measurement, proveRand, jointRand),
    async report() {
      const rand = Buffer.from(systemRandom(prio3.randSize));
      const { inputShares } = await prio3.shard(ANSWER, Buffer.alloc(16), rand);
      return inputShares.map((share) => prio3.encodeInputShare(share));
    },
  };
}

/** CPU seconds of this process per call. */
async function cpuSeconds(work, calls) {
  const start = process.cpuUsage();
  for (let call = 0; call < calls; call += 1) await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6 / calls;
}

const provers = { ours: ours(), ...(folder && { theirs: await theirs() }) };
const seconds = {};
for (const [name, { report }] of Object.entries(provers)) {
  await setTimeout(200); // until the compiler is done with what came before
  seconds[name] = { first: await cpuSeconds(report, 1), report: Infinity, proof: Infinity };
}
for (let turn = 0; turn < TURNS; turn += 1) {
  for (const [name, prover] of Object.entries(provers)) {
    for (const kind of ["report", "proof"]) {
      const known = Math.min(seconds[name][kind], seconds[name].first);
      const calls = Math.ceil(SECONDS_PER_TURN / known);
      seconds[name][kind] = Math.min(known, await cpuSeconds(prover[kind], calls));
    }
  }
}
console.log(JSON.stringify({ ...seconds, node: process.version }));

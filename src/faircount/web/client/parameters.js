// Published parameters: read, compared with the digest in the invitation, and judged. Every derived number that a person
// depends on is computed here, not believed.

import { same, unhex } from "./bytes.js";
import { big, decode, unscaled } from "./canonical_json.js";
import { COMMON } from "./derived_values.js";
import { paramsDigest } from "./digests.js";
import { MECHANISMS } from "./mechanisms.js";
import { insist } from "./refusal.js";

const VERSION = 2;
const TEXTS = [
  "question", "population", "owner", "purpose", "contact", "s1_operator", "s2_operator",
  "mechanism", "topology", "relation", "survey", "epsilon", "delta",
];
const NUMBERS = ["minimum", "k", "t", "attempts", "phi", "n_max", "version"];
const NAMES = [...TEXTS, ...NUMBERS, "derived", "items", "keys", "phases", "settings"];
const KEYS = ["box", "s1", "s1_commitment", "s2", "s2_commitment"];
const DERIVED = ["D", "allocation", "h", "p", "q", "scale", "tables"];
const LARGEST_MODULUS = 1n << 62n;

/** The parameters that an invitation names: other bytes than those of its digest are refused. */
export async function believed(published, digest) {
  insist(same(await paramsDigest(published), digest), "digest", "the parameters are not those of the invitation");
  return parse(published);
}

/** Parameters that this client can take part with, and whose promise holds as far as it computes; others are refused. */
export async function parse(published) {
  const plain = decode(published);
  insist(exactly(plain, NAMES), "malformed", "parameters are missing, or unknown ones are there");
  checkKinds(plain);
  const mechanism = supported(plain);
  insist(plain.phi === plain.settings.insiders, "derived", "phi does not follow from the other parameters");
  const drawn = await mechanism.prepare(plain);
  checkPromise(plain, mechanism, drawn);
  const keys = Object.fromEntries(KEYS.map((name) => [name, key(plain.keys[name])]));
  const bytes = { survey: unhex(plain.survey), digest: await paramsDigest(published), published };
  const width = drawn.form?.width ?? plain.items.length; // elements that a person splits between the servers
  const { proven } = mechanism;
  return { ...plain, ...bytes, keys, q: big(plain.derived.q), real: reals(plain), drawn, width, proven };
}

/** The vector of one person who chose the item at this position. */
export const respond = (params, answer, random) =>
  MECHANISMS[params.mechanism].vector(params.drawn, params.items.length, answer, random);

function checkKinds(plain) {
  insist(TEXTS.every((name) => typeof plain[name] === "string"), "malformed", "text is expected");
  insist(NUMBERS.every((name) => isCount(plain[name])), "malformed", "whole numbers are expected");
  insist(plain.version === VERSION, "version", "these parameters are of another version");
  insist(/^[0-9a-f]{32}$/.test(plain.survey), "malformed", "a survey id has 16 bytes");
  insist(Array.isArray(plain.phases) && plain.phases.every(isCount), "malformed", "phases are seconds");
  insist(plain.minimum >= 2 && plain.minimum <= plain.n_max, "malformed", "the minimum lies between 2 and n_max");
  insist(Array.isArray(plain.items) && plain.items.length >= 2 && plain.items.every(isLabel), "malformed", "items");
  insist(new Set(plain.items).size === plain.items.length, "malformed", "items must be distinct");
  insist(exactly(plain.keys, KEYS), "malformed", "a key of a server is missing, or an unknown one is there");
}

/** The mechanism, if this client can draw it. */
function supported(plain) {
  insist(plain.topology === "servers", "topology", "surveys with several visits need the installed client");
  insist(plain.relation === "replace-one", "malformed", "the relation is unknown");
  const mechanism = Object.hasOwn(MECHANISMS, plain.mechanism) ? MECHANISMS[plain.mechanism] : null;
  insist(mechanism !== null, "mechanism", `this page cannot draw ${plain.mechanism}`);
  insist(exactly(plain.settings, mechanism.settings), "malformed", "the settings are not complete, or unknown");
  const derived = mechanism.proven ? [...DERIVED, "proof"] : DERIVED;
  insist(exactly(plain.derived, derived), "malformed", "the derived values are not complete, or unknown");
  insist(COMMON.every((name) => isCount(plain.settings[name])), "malformed", "settings are whole numbers");
  insist(plain.derived.scale === 1 && plain.derived.allocation === "alike", "derived", "scale or allocation");
  insist(big(plain.derived.q) >= 2n && big(plain.derived.q) < LARGEST_MODULUS, "derived", "q is out of range");
  return mechanism;
}

/** With the fewest people that may be counted, and with all. */
function checkPromise(plain, mechanism, drawn) {
  const holds = [plain.minimum, plain.n_max].every((size) => mechanism.promiseHolds(plain, drawn, size));
  insist(holds, "promise", "the promised privacy does not follow from the parameters");
}

const reals = (plain) => ({ epsilon: unscaled(plain.epsilon), delta: unscaled(plain.delta) });
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isLabel = (value) => typeof value === "string" || Number.isSafeInteger(value);

function exactly(value, names) {
  const plain = value !== null && typeof value === "object" && !Array.isArray(value);
  return plain && Object.keys(value).sort().join() === names.slice().sort().join();
}

function key(text) {
  const bytes = unhex(text);
  insist(bytes.length === 32, "malformed", "a key has 32 bytes");
  return bytes;
}

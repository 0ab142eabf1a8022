// Published parameters: parsed, compared with the hash in the invitation, and checked. Every
// derived number on which a participant's privacy depends is computed here, not taken on trust.

import { same, unhex } from "./bytes.js";
import { decode, parseInteger, unscaled } from "./canonical_json.js";
import { paramsDigest } from "./digests.js";
import { MECHANISMS } from "./mechanisms.js";
import { formatFingerprint } from "./operators.js";
import { checkSheet, readQuestionnaire } from "./questionnaire.js";
import { insist } from "./refusal.js";
import { checkSettings } from "./settings.js";
import { hasExactly, isCount } from "./shapes.js";

const VERSION = 3;
const TEXTS = [
  "population", "owner", "purpose", "contact", "s1_operator", "s2_operator",
  "mechanism", "topology", "relation", "survey", "epsilon", "delta",
];
const NUMBERS = ["minimum", "k", "t", "attempts", "grace", "phi", "n_max", "version"];
const QUESTIONS = ["title", "language", "questions", "translations"];
const NAMES = [
  ...TEXTS, ...NUMBERS, ...QUESTIONS, "derived", "keys", "phase_seconds", "settings",
];
const KEYS = [
  "aggregator", "aggregator_commitment", "coordinator", "coordinator_commitment", "encryption_key",
  "s1_operator_key", "s2_operator_key",
];
const DERIVED = ["D", "allocation", "h", "p", "q", "scale", "tables"];
const LARGEST_MODULUS = 1n << 62n;
const MAX_ATTEMPTS = 1 << 16;
const MAX_USERS = 2 ** 31;

/** The parameters of an invitation; bytes with another hash than the invitation's are refused. */
export async function parseInvited(published, digest) {
  // A server that shows one participant other parameters could ask for a report with less noise.
  const isInvited = same(await paramsDigest(published), digest);
  // check: page-invited-parameters - one participant is shown weaker parameters
  insist(isInvited, "digest", "the parameters are not those of the invitation");
  return parse(published);
}

/**
 * Parameters with which this client can take part and whose privacy promise it has verified; others
 * are refused.
 */
export async function parse(published) {
  const plain = decode(published);
  // check: page-parameter-names - parameters that mean nothing to this client
  insist(hasExactly(plain, NAMES), "malformed", "parameters are missing or unknown");
  checkKinds(plain);
  const mechanism = supportedMechanism(plain);
  const phiFollows = plain.phi === plain.settings.insiders;
  // check: page-insiders - a guarantee against fewer insiders than is said
  insist(phiFollows, "derived", "phi does not follow from the other parameters");
  const questionnaire = readQuestionnaire(plain);
  const answers = mechanism.takesSheets ? null : countAnswers(questionnaire);
  const asked = { ...plain, questionnaire, answers };
  const drawn = await mechanism.derive(asked);
  checkPromise(asked, mechanism, drawn);
  const keys = Object.fromEntries(KEYS.map((name) => [name, parseKey(plain.keys[name])]));
  return {
    ...asked,
    survey: unhex(plain.survey),
    digest: await paramsDigest(published),
    published,
    keys,
    fingerprints: {
      s1: await formatFingerprint(keys.s1_operator_key),
      s2: await formatFingerprint(keys.s2_operator_key),
    },
    q: parseInteger(plain.derived.q),
    real: { epsilon: unscaled(plain.epsilon), delta: unscaled(plain.delta) },
    drawn,
    width: drawn.layout?.width ?? answers, // elements that are split between the servers
    proven: mechanism.proven,
  };
}

/**
 * The vector of a participant with this sheet of answers, noise included. `level` is the position
 * of the privacy level where the survey offers levels, 0 for the strongest.
 */
export function drawVector(params, sheet, random, level = 0) {
  const isPossible = level === 0 || params.drawn.levels !== undefined;
  insist(isPossible, "answer", "this survey offers no privacy levels");
  const answers = checkSheet(params.questionnaire, sheet);
  return MECHANISMS[params.mechanism].vector(params, answers, random, level);
}

/** How many answers the only question has; other questions need a mechanism that takes sheets. */
function countAnswers({ questions }) {
  const [{ answers, form }] = questions;
  const isOne = questions.length === 1 && form === "choice";
  insist(isOne, "malformed", "this mechanism counts the answers to one question");
  return answers;
}

function checkKinds(plain) {
  const { attempts, minimum, n_max: users, phase_seconds: phaseSeconds } = plain;
  insist(TEXTS.every((name) => typeof plain[name] === "string"), "malformed", "expected text");
  insist(NUMBERS.every((name) => isCount(plain[name])), "malformed", "expected integers");
  insist(plain.version === VERSION, "version", "these parameters are of another version");
  insist(/^[0-9a-f]{32}$/.test(plain.survey), "malformed", "a survey id has 16 bytes");
  insist(
    Array.isArray(phaseSeconds) && phaseSeconds.every(isCount), "malformed", "phases are seconds",
  );
  const areTries = attempts >= 1 && attempts <= MAX_ATTEMPTS;
  insist(areTries, "malformed", "the number of attempts is out of range");
  insist(users <= MAX_USERS, "malformed", "n_max is out of range");
  // A single accepted report would be published as it is, hidden by nobody else's.
  // check: page-minimum - a sum over one report is that report
  insist(minimum >= 2 && minimum <= users, "malformed", "the minimum lies between 2 and n_max");
  insist(hasExactly(plain.keys, KEYS), "malformed", "a server's key is missing or unknown");
}

/** The mechanism, if this client can draw its noise. */
function supportedMechanism(plain) {
  const { derived, settings } = plain;
  const isOneVisit = plain.topology === "servers";
  insist(isOneVisit, "topology", "surveys with several visits need the installed client");
  insist(plain.phase_seconds.length <= 1, "malformed", "a survey with one visit has one phase");
  insist(plain.relation === "replace-one", "malformed", "the relation is unknown");
  const isKnown = Object.hasOwn(MECHANISMS, plain.mechanism);
  insist(isKnown, "mechanism", `this page does not support ${plain.mechanism}`);
  const mechanism = MECHANISMS[plain.mechanism];
  const names = [...DERIVED, ...(mechanism.proven ? ["proof"] : []), ...(mechanism.derived ?? [])];
  insist(hasExactly(settings, mechanism.settings), "malformed", "settings are missing or unknown");
  // check: page-derived-names - derived values that nobody checks
  insist(hasExactly(derived, names), "malformed", "derived values are missing or unknown");
  checkSettings(settings);
  const isPlain = derived.scale === 1 && derived.allocation === "alike";
  insist(isPlain, "derived", "scale or allocation does not follow from the other parameters");
  const q = parseInteger(derived.q);
  insist(q >= 2n && q < LARGEST_MODULUS, "derived", "q is out of range");
  return mechanism;
}

/** Verify the promise for the smallest and for the largest number of accepted reports. */
function checkPromise(plain, mechanism, drawn) {
  const sizes = [plain.minimum, plain.n_max];
  const holds = sizes.every((size) => mechanism.promiseHolds(plain, drawn, size));
  // check: page-promise - more privacy is promised than is kept
  insist(holds, "promise", "the promised privacy does not follow from the parameters");
}

function parseKey(text) {
  const bytes = unhex(text);
  // check: page-key-size - a key that is none
  insist(bytes.length === 32, "malformed", "a key has 32 bytes");
  return bytes;
}

// Hidden privacy levels. A survey with levels publishes two tables: one of everybody, with the
// epsilon e1 of the strongest level, and one of those whom their own device counts a second time.
// A level is the probability of that, its coin: 0 for the strongest level, 1 for the weakest, whose
// epsilon eL is the promise. Nobody learns what a coin said: a report is one bit of (inside, answer)
// and (outside, answer) for every question, and looks the same whichever it is.
//
//   h = (eL - e1) / 2     what a vote in the second table costs, over all questions
//
// The same as in the Python package; epsilons and coins are whole numbers over 2^128.

import { leastModulus } from "./blocks.js";
import { parseInteger } from "./canonical_json.js";
import { uniformBits } from "./field.js";
import { cellNoise } from "./joint_noise.js";
import { checkText } from "./question_texts.js";
import { exponentialFloor } from "./radius.js";
import { insist } from "./refusal.js";
import { hasExactly, isCount } from "./shapes.js";

const FEWEST = 2;
const MOST = 3;
// With other questions, answer and level together would cost more than is said.
const KINDS = ["one", "yes"];
const USUAL_NAMES = ["very strong", "strong", "normal"]; // the strongest first
const COIN_BITS = 128;
const ALWAYS = 1n << BigInt(COIN_BITS);
const LARGEST_EXPONENT = 700; // larger ones overflow
const WORKING_BITS = 320n; // of the exponentials from which a coin is computed

/**
 * The levels of published settings, checked: {offered: [{name, epsilonUnits, epsilon, coin}],
 * halfUnits}, the strongest first.
 */
export function readLevels(plain) {
  const isList = Array.isArray(plain) && plain.length >= FEWEST && plain.length <= MOST;
  insist(isList, "malformed", `a survey offers ${FEWEST} to ${MOST} privacy levels`);
  const areLevels = plain.every((level) => hasExactly(level, ["epsilon", "name"]));
  insist(areLevels, "malformed", "a privacy level has a name and an epsilon");
  plain.forEach(({ name }) => checkText(name));
  const names = new Set(plain.map(({ name }) => name));
  insist(names.size === plain.length, "malformed", "privacy levels must have different names");
  const units = plain.map(({ epsilon }) => parseInteger(epsilon));
  const ascends = units.every((value, at) => value > (units[at - 1] ?? 0n));
  insist(ascends, "malformed", "privacy levels have ascending epsilons, the strongest first");
  checkNames(plain);
  const halfUnits = (units.at(-1) - units[0]) >> 1n;
  const offered = plain.map(({ name }, at) => ({
    name,
    epsilonUnits: units[at],
    epsilon: Number(units[at]) / 2 ** 128,
    coin: coinOf(units, at, halfUnits),
  }));
  return { offered, halfUnits };
}

/** Refuse usual names in another order: the page says them in its own words. */
function checkNames(levels) {
  const usual = levels.map(({ name }) => USUAL_NAMES.indexOf(name)).filter((place) => place >= 0);
  const ascends = usual.every((place, at) => at === 0 || usual[at - 1] < place);
  // check: page-usual-names - the weakest level is called "very strong"
  insist(ascends, "malformed", "a weaker level has the name of a stronger one");
}

function coinOf(units, at, halfUnits) {
  if (at === 0) return 0n;
  return at === units.length - 1 ? ALWAYS : coinFor(units[at] - units[0], halfUnits);
}

/**
 * The coin of a level between the strongest and the weakest, rounded down:
 * p = (1 - w) u / ((1 - u) (w + u)) with u = e^-h and w = e^-(e - e1).
 */
export function coinFor(extraUnits, halfUnits) {
  const one = 1n << WORKING_BITS;
  // p grows with u and falls with w. So u is rounded down and w up: with a larger coin a person
  // would lose more than the level promises.
  const u = exponentialFloor(halfUnits, WORKING_BITS);
  const w = exponentialFloor(extraUnits, WORKING_BITS) + 1n;
  return (((one - w) * u) << BigInt(COIN_BITS)) / ((one - u) * (w + u));
}

/** What somebody of this level loses: {answer, both}, the second with the level together. */
export function lossesOf({ offered, halfUnits }, level) {
  const { coin, epsilon } = offered[level];
  const half = Number(halfUnits) / 2 ** 128;
  const p = Number(coin) / 2 ** COIN_BITS;
  const gain = gainOf(p, half);
  // Not through 1 - p + ..., which has no digits left for p = 1 and a large h.
  const fall = p === 1 ? half : -Math.log1p(p * Math.expm1(-half));
  // (e1 + eL) / 2 is exact at the strongest level, where a double of the formula need not be.
  if (level === 0) return { answer: epsilon, both: (epsilon + offered.at(-1).epsilon) / 2 };
  const both = (offered[0].epsilon + half + Math.max(gain, fall)) * (1 + 1e-12);
  return { answer: epsilon, both: Math.max(epsilon, Math.min(both, offered.at(-1).epsilon)) };
}

/** ln(1 - p + p e^h): how much a vote may add to the likelihood. */
function gainOf(p, half) {
  if (half <= LARGEST_EXPONENT) return Math.log1p(p * Math.expm1(half));
  return p > 0 ? half + Math.log(p) : 0; // an infinite e^h times 0 would be no number
}

/**
 * The bits of a report with levels: {bits, coins, constraints, cells, leastModulus, starts, sizes}.
 * For every question the bits inside, then those outside; `starts` has where both begin.
 */
export function leveledForm({ questions, cells }) {
  const areChoices = questions.every(({ kind }) => KINDS.includes(kind));
  // check: page-level-kinds - with several ticks, answer and level would cost more than is said
  insist(areChoices, "malformed", "with privacy levels every question has exactly one answer");
  const sizes = questions.map(({ answers }) => answers); // two answers have two bits here
  let bits = 0;
  const starts = sizes.map((size) => {
    const start = { inside: bits, outside: bits + size };
    bits += 2 * size;
    return start;
  });
  const [{ inside: first }] = starts;
  const constraints = [
    ...starts.map(({ inside }, at) => addsUpToOne(range(inside, 2 * sizes[at]))),
    // Inside at the first question or outside at this one: the same side everywhere.
    ...starts.slice(1).map(({ outside }, at) =>
      addsUpToOne([...range(first, sizes[0]), ...range(outside, sizes[at + 1])]),
    ),
  ];
  return {
    bits,
    coins: 0,
    constraints,
    cells: cells + sum(sizes),
    leastModulus: Math.max(2, ...constraints.map(leastModulus)),
    starts,
    sizes,
  };
}

const range = (start, size) => Array.from({ length: size }, (_, at) => start + at);
const addsUpToOne = (bits) => ({ weights: bits.map((bit) => [bit, 1]), value: 1 });
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The bits of a canonical sheet at a level; whether they are inside is drawn here, once. */
export function drawPlaced({ levels, form }, sheet, level, random) {
  checkLevel(levels, level);
  // Drawn at every level, so that no draw, and no number of bytes, tells the level.
  const drawn = uniformBits(COIN_BITS, random);
  const side = drawn < levels.offered[level].coin ? "inside" : "outside";
  const bits = new Array(form.bits).fill(0);
  sheet.forEach((answer, number) => (bits[form.starts[number][side] + answer] = 1));
  return bits;
}

function checkLevel({ offered }, level) {
  const isOffered = isCount(level) && level < offered.length;
  insist(isOffered, "answer", "this is not one of the privacy levels of the survey");
}

/**
 * The noise of a cell of the second table, for every question: independent cells with the
 * distribution e^(-h_k |z|). A question has the share of h that it has of epsilon in the first table.
 */
export async function secondNoises({ halfUnits }, noises, count) {
  const whole = noises.reduce((total, { epsilonUnits }) => total + epsilonUnits, 0n);
  const found = [];
  for (const number of range(0, count)) {
    const group = noises.find(({ questions }) => questions.includes(number));
    const share = whole * BigInt(group.questions.length);
    found.push(await cellNoise(number, (halfUnits * group.epsilonUnits) / share));
  }
  return found;
}

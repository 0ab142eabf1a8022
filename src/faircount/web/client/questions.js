// The kinds of questions, and how an answer becomes bits; the same as in the Python package.
//
//   one      exactly one of several answers; a yes/no question has two
//   any      any of several items
//   most     at most `most` of several items
//   scale    one of several ordered answers, published as counts, or as the sum of the scores
//   number   a number in a range, published as a sum; with bands, one of them
//   table    two questions whose answers are counted together
//
// "Prefer not to say" (`skip`) and "does not apply" (`only_if`: the question depends on an earlier
// one) are further answers where exactly one is given. Elsewhere both are one cell, and a
// constraint ties it to the others: who has no answer chooses nothing and has the number 0.
//
// A question, as `readQuestion` returns it, has the published values and
//   form          "choice", "several" or "sum"
//   bits          how many bits an answer has
//   constraint    what the bits of a valid answer satisfy; null where all patterns are answers
//   openings      the cells, each a weighted sum of bits
//   blocks        the cells in their order, as blocks that noise protects together
//   checkAnswer   the canonical answer: a position (choice), ascending positions (several), a whole
//                 number of steps (sum), or null where there is none
//   encode        the bits of a canonical answer
//   notApplicable the canonical answer of people whom the question does not concern
// and, by form: choices and answers (how many), limit, or largest, origin and unit.

import { numberBits, numberWeights } from "./blocks.js";
import { alignDecimals, parseDecimal } from "./decimals.js";
import { checkItems, checkText } from "./question_texts.js";
import { insist } from "./refusal.js";
import { hasExactly, isCount } from "./shapes.js";

const COMMON = ["kind", "text", "skip", "only_if"];
const MAX_STEPS = 10_000n; // a finer number would make the distribution of its noise too long

/** A published question, checked. */
export function readQuestion(plain) {
  const isKnown = typeof plain?.kind === "string" && Object.hasOwn(KINDS, plain.kind);
  insist(isKnown, "malformed", "a question has an unknown kind");
  insist(typeof plain.skip === "boolean", "malformed", "skip is true or false");
  return { ...plain, ...KINDS[plain.kind](plain) };
}

/** Refuse a question with other names than these. */
function checkNames(plain, ...names) {
  const isComplete = hasExactly(plain, [...COMMON, ...names]);
  insist(isComplete, "malformed", "a question has missing or unknown fields");
}

function checkAsked(plain, ...names) {
  checkNames(plain, ...names);
  checkText(plain.text);
}

const KINDS = {
  one(plain) {
    checkAsked(plain, "items");
    checkItems(plain.items);
    return choiceForm(plain, plain.items.length);
  },

  yes(plain) {
    checkAsked(plain, "items");
    checkItems(plain.items);
    insist(plain.items.length === 2, "malformed", "a yes/no question has two answers");
    return choiceForm(plain, 2);
  },

  any(plain) {
    checkAsked(plain, "items");
    checkItems(plain.items);
    return severalForm(plain, plain.items.length);
  },

  most(plain) {
    checkAsked(plain, "items", "most");
    checkItems(plain.items);
    const isLimit = isCount(plain.most) && plain.most >= 1 && plain.most < plain.items.length;
    insist(isLimit, "malformed", "most is at least 1 and below the number of items");
    return severalForm(plain, plain.most);
  },

  scale(plain) {
    checkAsked(plain, "items", "open");
    checkItems(plain.items);
    const isKnown = ["counts", "mean"].includes(plain.open);
    insist(isKnown, "malformed", "a scale is opened as counts or as a mean");
    if (plain.open === "counts") return choiceForm(plain, plain.items.length);
    const [origin, unit] = ["1", "1"].map(parseDecimal);
    return sumForm(plain, plain.items.length - 1, origin, unit);
  },

  number: (plain) => (Object.hasOwn(plain, "bands") ? readBands(plain) : readNumber(plain)),

  table(plain) {
    checkNames(plain, "rows", "columns");
    const { text, rows, columns, skip, only_if: onlyIf } = plain;
    const areTexts = Array.isArray(text) && text.length === 2;
    insist(areTexts, "malformed", "a table has two texts");
    text.forEach(checkText);
    insist(!skip && onlyIf === null, "malformed", "a table has no skip and no only_if");
    checkItems(rows);
    checkItems(columns);
    return choiceForm(plain, rows.length * columns.length);
  },
};

function readBands(plain) {
  checkAsked(plain, "bands");
  const isList = Array.isArray(plain.bands) && plain.bands.length >= 3;
  insist(isList, "malformed", "bands are at least three edges");
  const edges = plain.bands.map(parseDecimal);
  const units = alignDecimals(edges);
  const ascends = units.slice(1).every((edge, at) => units[at] < edge);
  insist(ascends, "malformed", "bands are edges in ascending order");
  return { ...choiceForm(plain, edges.length - 1), edges };
}

function readNumber(plain) {
  checkAsked(plain, "low", "high", "step");
  const [origin, end, unit] = [plain.low, plain.high, plain.step].map(parseDecimal);
  const [low, high, step] = alignDecimals([origin, end, unit]);
  insist(step > 0n && low < high, "malformed", "a number needs low < high and a step above 0");
  const range = high - low;
  insist(range % step === 0n, "malformed", "the step of a number must divide its range");
  insist(range / step <= MAX_STEPS, "malformed", "a number has too many steps");
  return sumForm(plain, Number(range / step), origin, unit);
}

const mayBeMissing = ({ skip, only_if: onlyIf }) => skip || onlyIf !== null;

function checkPosition(answer, size) {
  const isPosition = isCount(answer) && answer < size;
  insist(isPosition, "answer", "an answer is not one of those that the question has");
  return answer;
}

/** Exactly one answer: a bit each, of which one is set; two answers are one bit. */
function choiceForm({ skip, only_if: onlyIf }, choices) {
  const answers = choices + Number(onlyIf !== null) + Number(skip);
  const isBinary = answers === 2;
  const bits = isBinary ? 1 : answers;
  const places = Array.from({ length: bits }, (_, bit) => bit);
  const checkAnswer = (answer) =>
    answer === null && skip ? answers - 1 : checkPosition(answer, answers);
  return {
    form: "choice",
    choices,
    answers,
    isBinary,
    bits,
    constraint: isBinary ? null : { weights: places.map((bit) => [bit, 1]), value: 1 },
    openings: places.map((bit) => [[bit, 1]]),
    // A replaced answer moves one count up and another one down; one count of two only moves.
    blocks: [isBinary ? { kind: "any", cells: 1 } : { kind: "one", cells: answers }],
    notApplicable: onlyIf === null ? null : choices,
    checkAnswer,
    encode: (answer) => {
      const position = checkAnswer(answer);
      return isBinary ? [position] : places.map((bit) => Number(bit === position));
    },
  };
}

/** Several items: a bit each, then that of a missing answer, then the slack of the limit. */
function severalForm(plain, limit) {
  const count = plain.items.length;
  const hasMissing = mayBeMissing(plain);
  const cells = count + Number(hasMissing);
  const slack = hasMissing || limit < count ? numberWeights(limit) : [];
  const items = Array.from({ length: count }, (_, item) => [item, 1]);
  const missing = hasMissing ? [[count, limit]] : [];
  // The public value is the limit itself. Slack of two bits that must add up to 3 would be shorter,
  // and would let a report choose three items where two are allowed.
  const weights = [...items, ...missing, ...slack.map((weight, at) => [cells + at, weight])];
  const block = limit < count
    ? { kind: "most", cells: count, bound: limit }
    : { kind: "any", cells: count };
  const checkAnswer = (answer) => {
    if (answer === null && hasMissing) return null;
    insist(Array.isArray(answer), "answer", "an answer is not a list of positions");
    const chosen = answer.map((position) => checkPosition(position, count));
    insist(new Set(chosen).size === chosen.length, "answer", "an answer names an item twice");
    insist(chosen.length <= limit, "answer", "an answer has too many items");
    return chosen.sort((one, other) => one - other);
  };
  return {
    form: "several",
    limit,
    bits: cells + slack.length,
    constraint: slack.length ? { weights, value: limit } : null,
    openings: Array.from({ length: cells }, (_, bit) => [[bit, 1]]),
    blocks: hasMissing ? [block, { kind: "any", cells: 1 }] : [block],
    notApplicable: null,
    checkAnswer,
    encode: (answer) => {
      const chosen = checkAnswer(answer);
      const bits = items.map(([item]) => Number(chosen?.includes(item) ?? false));
      if (hasMissing) bits.push(Number(chosen === null));
      const rest = chosen === null ? 0 : limit - chosen.length;
      return slack.length ? [...bits, ...numberBits(rest, limit)] : bits;
    },
  };
}

/**
 * A whole number of steps; only the sum is published. Where an answer may be missing, a bit
 * says whether there is one, and number + slack = largest * answered ties both together.
 */
function sumForm(plain, largest, origin, unit) {
  const hasMissing = mayBeMissing(plain);
  const parts = numberWeights(largest);
  const size = parts.length;
  const total = parts.map((weight, at) => [at, weight]);
  const slack = parts.map((weight, at) => [size + 1 + at, weight]);
  const block = { kind: "number", cells: 1, bound: largest };
  const checkAnswer = (answer) =>
    answer === null && hasMissing ? null : checkPosition(answer, largest + 1);
  return {
    form: "sum",
    largest,
    origin,
    unit,
    bits: hasMissing ? 2 * size + 1 : size,
    constraint: hasMissing ? { weights: [...total, [size, -largest], ...slack], value: 0 } : null,
    openings: hasMissing ? [total, [[size, 1]]] : [total],
    blocks: hasMissing ? [block, { kind: "any", cells: 1 }] : [block],
    notApplicable: null,
    checkAnswer,
    encode: (answer) => {
      const steps = checkAnswer(answer);
      if (steps === null) return new Array(2 * size + 1).fill(0);
      const number = numberBits(steps, largest);
      return hasMissing ? [...number, 1, ...numberBits(largest - steps, largest)] : number;
    },
  };
}

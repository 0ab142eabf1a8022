// Estimates and intervals of the questions of a survey with joint noise, kind by kind; the same as
// in the Python package. All noise is added to counts or sums whose distribution is known exactly, so
// an interval is the set of whole numbers from which the noise could have led to what was published.
// Where an estimate is made of several sums, each of them has its share of the error.
//
// A row is {answer, measure, ofAnswered, estimate, low, high}:
//   answer      a position; {row} or {column} for the margins of a table; "missing" or "answered"
//               where these have a count of their own; null for a mean or a median
//   measure     "share", "mean" or "median"
//   ofAnswered  whether it is about those who answered, and not all who were counted

import { toDouble } from "./decimals.js";
import { cellDistribution, quantileOf } from "./noise_distributions.js";

const ERROR = 0.05;

/** The rows of every question, with intervals of 95% each. */
export function sheetEstimates({ questions }, noises, counts, included) {
  const distributions = new Map();
  return questions.map((question, number) => {
    const noise = noises.find((group) => group.questions.includes(number));
    const cells = counts.slice(question.cellsFrom, question.cellsFrom + question.openings.length);
    const before = noise.questions.slice(0, noise.questions.indexOf(number));
    const place = before.reduce((sum, other) => sum + questions[other].blocks.length, 0);
    /** The distribution of a sum of cells of one of the question's blocks; equal balls share it. */
    const distribution = (block = 0, terms = 1) => {
      const at = place + block;
      const name = JSON.stringify([noises.indexOf(noise), noise.balls[at], terms]);
      if (!distributions.has(name)) distributions.set(name, cellDistribution(noise, at, terms));
      return distributions.get(name);
    };
    return estimateQuestion({ question, cells, distribution, included });
  });
}

function estimateQuestion(released) {
  const { form } = released.question;
  if (form === "choice") return estimateChoice(released);
  return form === "several" ? estimateItems(released) : estimateSum(released);
}

/** The least and the greatest true sum in [0, top] for a published one. */
function bounds(value, distribution, error, top) {
  const reach = quantileOf(distribution, error / 2);
  const low = Math.min(Math.max(value - reach, 0), top);
  return [low, Math.max(Math.min(value + reach, top), low)];
}

const row = (answer, measure, estimate, low, high, ofAnswered = false) =>
  ({ answer, measure, ofAnswered, estimate, low, high });

function estimateChoice(released) {
  const { question, cells, distribution, included: n } = released;
  const counts = question.isBinary ? [n - cells[0], cells[0]] : cells;
  const rows = estimateShares(released, counts);
  if (counts.length > question.choices) {
    const [chosen, missing] = [counts.slice(0, question.choices), counts.slice(question.choices)];
    rows.push(...sharesOfAnswered(released, chosen, sum(missing), distribution(0, missing.length)));
  }
  if (question.kind === "scale") rows.push(meanOfScores(released, counts));
  if (question.edges && counts.length === question.choices) {
    rows.push(medianOfBands(released, counts));
  }
  return question.kind === "table" ? [...rows, ...estimateMargins(released)] : rows;
}

/** The share of every answer among all counted people. */
function estimateShares({ distribution, included: n }, counts, block = 0) {
  return counts.map((count, at) => {
    const [low, high] = bounds(count, distribution(block), ERROR, n);
    return row(at, "share", count / n, low / n, high / n);
  });
}

/** Shares among those who answered: both intervals have half of the error. */
function sharesOfAnswered({ distribution, included: n }, counts, missing, distributionOfMissing) {
  const [fewest, most] = bounds(missing, distributionOfMissing, ERROR / 2, n);
  const answered = Math.max(n - missing, 1);
  return counts.map((count, at) => {
    const [low, high] = bounds(count, distribution(), ERROR / 2, n);
    const least = Math.min(low / Math.max(n - fewest, 1), 1);
    const greatest = most < n ? Math.min(high / (n - most), 1) : 1;
    return row(at, "share", count / answered, least, greatest, true);
  });
}

/**
 * The mean score from the counts of all scores. The sum of the scores 0, 1, ... is that of the
 * numbers of people with a score of at least k; each of them has its share of the error.
 */
function meanOfScores({ question, distribution, included: n }, counts) {
  const { choices: points } = question;
  const hasMissing = counts.length > points;
  const error = hasMissing ? ERROR / 2 : ERROR;
  // From the middle of the scale, as the Python package counts: where counts add up to the people
  // counted, the origin does not matter.
  const middle = (points - 1) / 2;
  const total = sum(counts.slice(0, points).map((count, score) => (score - middle) * count));
  let low = 0;
  let high = 0;
  for (let least = 1; least < points; least += 1) {
    const reached = sum(counts.slice(least, points));
    const ofSum = question.isBinary ? distribution() : distribution(0, points - least);
    const [fewest, most] = bounds(reached, ofSum, error / (points - 1), n);
    low += fewest;
    high += most;
  }
  let answered = [n, n, n];
  if (hasMissing) {
    const missing = sum(counts.slice(points));
    const [fewest, most] = bounds(missing, distribution(0, counts.length - points), error, n);
    answered = [n - missing, n - fewest, n - most].map((people) => Math.max(people, 1));
  }
  const top = points - 1;
  const mean = middle + total / answered[0];
  const [least, greatest] = [low / answered[1], high / answered[2]];
  return row(
    null, "mean", 1 + mean, 1 + Math.min(least, top), 1 + Math.min(greatest, top), hasMissing,
  );
}

/**
 * The median, and the edges of the bands that may hold it. The lowest median lies in the first band
 * up to which at least half of the people are, the greatest in the last band below which at most
 * half are; both ends may be wrong with half of the error.
 */
function medianOfBands({ question, distribution, included: n }, counts) {
  const half = n / 2;
  const inner = counts.slice(1).map((_, at) => {
    const ofSum = question.isBinary ? distribution() : distribution(0, at + 1);
    // One-sided statements: `bounds` halves the error once more, so it gets all of it.
    return bounds(sum(counts.slice(0, at + 1)), ofSum, ERROR, n);
  });
  const reaching = inner.findIndex(([, most]) => most >= half);
  const first = reaching < 0 ? inner.length : reaching;
  const last = inner.findLastIndex(([fewest]) => fewest <= half) + 1;
  const edges = question.edges.map(toDouble);
  const median = interpolateHalf(projectToSimplex(counts.map((count) => count / n)), edges);
  return row(null, "median", median, edges[first], edges[last + 1]);
}

/** Where the cumulative shares reach one half, between the edges of a band. */
function interpolateHalf(shares, edges) {
  let below = 0;
  for (const [at, share] of shares.entries()) {
    if (below + share >= 0.5 && share > 0) {
      return edges[at] + ((0.5 - below) / share) * (edges[at + 1] - edges[at]);
    }
    below += share;
  }
  return edges.at(-1);
}

/** The nearest shares that are not negative and add up to 1. */
export function projectToSimplex(values) {
  const sorted = values.slice().sort((one, other) => other - one);
  let total = 0;
  let excess = 0;
  sorted.forEach((value, at) => {
    total += value;
    // The values that stay above 0 share what is too much.
    if (value - (total - 1) / (at + 1) > 0) excess = (total - 1) / (at + 1);
  });
  return values.map((value) => Math.max(value - excess, 0));
}

/** The shares of the rows and the columns of a table: sums of its cells. */
function estimateMargins({ question, cells, distribution, included: n }) {
  const [height, width] = [question.rows.length, question.columns.length];
  const marginOf = (answer, places) => {
    const count = sum(places.map((place) => cells[place]));
    const [low, high] = bounds(count, distribution(0, places.length), ERROR, n);
    return row(answer, "share", count / n, low / n, high / n);
  };
  const list = (size, item) => Array.from({ length: size }, (_, at) => item(at));
  return [
    ...list(height, (at) => marginOf({ row: at }, list(width, (other) => at * width + other))),
    ...list(width, (at) => marginOf({ column: at }, list(height, (other) => other * width + at))),
  ];
}

function estimateItems(released) {
  const { question, cells, distribution } = released;
  const items = cells.slice(0, question.items.length);
  const rows = estimateShares(released, items);
  if (cells.length === items.length) return rows;
  const missing = cells.at(-1);
  const [share] = estimateShares(released, [missing], 1);
  const ofAnswered = sharesOfAnswered(released, items, missing, distribution(1));
  return [...rows, { ...share, answer: "missing" }, ...ofAnswered];
}

/** The mean; where answers may be missing, that of those who answered, and how many they are. */
function estimateSum({ question, cells, distribution, included: n }) {
  const { largest } = question;
  const [total, answered] = cells;
  const hasMissing = cells.length > 1;
  const error = hasMissing ? ERROR / 2 : ERROR;
  const [low, high] = bounds(total, distribution(), error, largest * n);
  let people = [n, n, n];
  const rows = [];
  if (hasMissing) {
    const [fewest, most] = bounds(answered, distribution(1), error, n);
    people = [answered, most, fewest].map((count) => Math.max(count, 1));
    const [lower, upper] = bounds(answered, distribution(1), ERROR, n);
    rows.push(row("answered", "share", answered / n, lower / n, upper / n));
  }
  const ends = [
    total / people[0],
    Math.min(low / people[1], largest),
    Math.min(high / people[2], largest),
  ];
  const [origin, unit] = [question.origin, question.unit].map(toDouble);
  const [mean, least, greatest] = ends.map((steps) => origin + unit * steps);
  return [row(null, "mean", mean, least, greatest, hasMissing), ...rows];
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

// Estimates of a survey with privacy levels. The table of everybody, y1, is the headline: it needs
// no assumption. The second table, y2, tells how many were counted a second time, and serves a
// weighted estimate that is right if these people answer like everybody. Where the weakest level is
// at least five times the strongest, y2 also narrows the interval of the headline, still without
// an assumption: those inside are some of all. The same as in the Python package.

import { cellDistribution, quantileOf, varianceOf } from "./noise_distributions.js";
import { laplaceDistribution } from "./privacy.js";
import { projectToSimplex, sheetEstimates } from "./sheet_estimates.js";

const ERROR = 0.05;
const NORMAL_95 = 1.959963984540054;
const OWN_SHARE = 0.8; // of the error is for the table of everybody, where both tables are used
const LARGE_RATIO = 5n;
const LEAST_VARIANCE = 1e-12;

/** The rows of every question, from the table of everybody. */
export function baseEstimates(questionnaire, drawn, counts, included) {
  const rows = sheetEstimates(questionnaire, drawn.noises, counts, included);
  if (!usesBoth(drawn.levels)) return rows;
  const tables = tablesOf(questionnaire, drawn, counts, included);
  return rows.map((found, number) =>
    found.map((row) => (row.ofAnswered ? row : narrowed(row, tables[number], included))),
  );
}

// Fixed by the parameters: elsewhere the second table only costs a part of the error.
const usesBoth = ({ offered }) =>
  offered.at(-1).epsilonUnits >= LARGE_RATIO * offered[0].epsilonUnits;

/** {first, second, distribution, epsilon} of every question: counts by answer, and their noise. */
function tablesOf({ questions, cells }, { noises, second }, counts, included) {
  let from = cells;
  return questions.map(({ answers, cellsFrom, isBinary, openings }, number) => {
    const own = counts.slice(cellsFrom, cellsFrom + openings.length);
    const inside = counts.slice(from, from + answers);
    from += answers;
    const noise = noises.find((group) => group.questions.includes(number));
    return {
      first: isBinary ? [included - own[0], own[0]] : own,
      second: inside,
      // A question with exactly one answer has one block, so one ball.
      distribution: cellDistribution(noise, noise.questions.indexOf(number)),
      epsilon: 2 * second[number].epsilon,
    };
  });
}

/** The noise of both servers in a sum of cells of the second table: [first point, distribution]. */
const secondDistribution = ({ epsilon }, terms) => laplaceDistribution(epsilon, 2 * terms);

/** The smallest z with P(noise > z) at most `tail`. */
function secondQuantile(table, terms, tail) {
  const [first, distribution] = secondDistribution(table, terms);
  let beyond = 0;
  let at = distribution.length - 1;
  while (at > 0 && beyond + distribution[at] <= tail) {
    beyond += distribution[at];
    at -= 1;
  }
  return first + at;
}

/** A row with an interval from both tables: who is inside is also among all, and only once. */
function narrowed(row, table, included) {
  const { first, distribution, second } = table;
  const own = quantileOf(distribution, (OWN_SHARE * ERROR) / 2);
  const tail = ((1 - OWN_SHARE) * ERROR) / 2;
  const [count, inside] = [first[row.answer], second[row.answer]];
  const others = sum(second) - inside;
  const low = Math.max(count - own, inside - secondQuantile(table, 1, tail));
  const most = included - others + secondQuantile(table, second.length - 1, tail);
  const high = Math.min(count + own, most);
  // Noise may leave nothing between them: then the table of everybody speaks alone.
  if (low > high) return row;
  return { ...row, low: share(low, included), high: share(high, included) };
}

const share = (count, included) => Math.min(Math.max(count, 0), included) / included;
const sum = (values) => values.reduce((total, value) => total + value, 0);

/**
 * {twice, error, rows}: about how many were counted a second time, the half width of its 95%
 * interval, and for every question the estimates that hold if these people answer like everybody.
 */
export function alikeEstimates(questionnaire, drawn, counts, included) {
  const tables = tablesOf(questionnaire, drawn, counts, included);
  const inside = countInside(tables);
  const [first, ...others] = tables;
  // A single sum has an exact distribution; several are weighted, and their mean is close to normal.
  const reach = others.length
    ? NORMAL_95 * Math.sqrt(inside.variance)
    : secondQuantile(first, first.second.length, ERROR / 2);
  return {
    twice: Math.min(Math.max(inside.mean, 0), included),
    error: reach,
    rows: tables.map((table, number) => weighted(table, inside, number, included)),
  };
}

/** How many are inside: the sums of all questions say the same, each with its own noise. */
function countInside(tables) {
  const precise = tables.map((table) => {
    // Without noise, as at a very large epsilon, all questions say the same.
    return 1 / Math.max(table.second.length * secondVariance(table), LEAST_VARIANCE);
  });
  const whole = sum(precise);
  const shares = precise.map((weight) => weight / whole);
  const mean = sum(tables.map(({ second }, at) => shares[at] * sum(second)));
  return { mean, shares, variance: 1 / whole };
}

/** The variance of a cell of the second table, with the noise of both servers. */
function secondVariance({ epsilon }) {
  const a = Math.exp(-epsilon / 2);
  return (4 * a) / (1 - a) ** 2;
}

/** For every answer the weighted mean of both tables, with the weight that has the least error. */
function weighted(table, inside, number, n) {
  const m = Math.min(Math.max(inside.mean, 1), n);
  const own = varianceOf(table.distribution) / n ** 2;
  const noise = secondVariance(table);
  // Of the first table only: with y2 in the weight, the estimate would be biased.
  const psis = projectToSimplex(table.first.map((count) => count / n));
  return table.first.map((count, answer) => {
    const psi = psis[answer];
    const ofCells = noise * (1 - 2 * psi * inside.shares[number]) + psi ** 2 * inside.variance;
    // The noise of y2 / m, and the luck of who is inside.
    const other = ofCells / m ** 2 + psi * (1 - psi) * (1 / m - 1 / n);
    // Where neither table has noise both say the same, and the first needs no assumption.
    const weight = own === 0 ? 0 : own / (own + other);
    const estimate = ((1 - weight) * count) / n + (weight * table.second[answer]) / m;
    const reach = NORMAL_95 * Math.sqrt(own * (1 - weight));
    return {
      answer,
      measure: "share",
      ofAnswered: false,
      estimate,
      low: Math.min(Math.max(estimate - reach, 0), 1),
      high: Math.min(Math.max(estimate + reach, 0), 1),
    };
  });
}

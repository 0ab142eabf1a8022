// The published result: for every question tables of estimates with intervals. A bar shows each
// share, and a mark on a line each mean.

import { bytesText } from "../client/bytes.js";
import { unscaled } from "../client/canonical_json.js";
import { toDouble } from "../client/decimals.js";
import { estimates, estimatesIfAlike } from "../client/estimates.js";
import { hasOneOperator } from "../client/operators.js";
import { axisOf, chart, drawingRow, meanChart } from "./chart.js";
import { element, ownerText } from "./dom.js";
import {
  decimalsFor,
  decimalsForMean,
  formatNumber,
  formatPercent,
  formatSmall,
  translate,
} from "./language.js";
import { operatorNames } from "./operators.js";
import {
  answerLabels, missingLabel, questionText, wordsElement, wordsOf,
} from "./question_words.js";
import { hasSeveral, say } from "./wording.js";

/** The section with the result. */
export function resultSection(params, published) {
  const epsilon = unscaled(bytesText(published.realized_epsilon));
  const privacy = {
    epsilon: formatNumber(epsilon, { maximumSignificantDigits: 4 }),
    delta: formatSmall(unscaled(bytesText(published.realized_delta))),
  };
  const votes = {
    included: formatNumber(published.included),
    refused: formatNumber(published.rejected),
  };
  const validity = params.proven ? "resultProven" : "resultUnproven";
  const found = estimates(params, published);
  const alike = estimatesIfAlike(params, published);
  return element(
    "section",
    { class: "result" },
    element("h2", {}, say(params, "resultTitle")),
    found.map((rows, number) => questionResult(params, number, rows, votes)),
    element("p", { class: "quiet" }, say(params, "resultText")),
    alike ? ifAlike(params, alike, votes) : null,
    element("p", { class: "quiet" }, say(params, validity, votes)),
    element("p", { class: "quiet" }, realized(params, privacy)),
    hasOneOperator(params)
      ? ownerText("p", translate("resultOneOperator", operatorNames(params)), { class: "warning" })
      : null,
  );
}

/** The privacy that was achieved; with levels, that of the strongest and of the weakest. */
function realized({ drawn }, privacy) {
  if (!drawn.levels) return translate("resultRealized", privacy);
  const [{ epsilon }] = drawn.levels.offered;
  const strongest = formatNumber(epsilon, { maximumSignificantDigits: 4 });
  return translate("resultRealizedLevels", { ...privacy, strongest });
}

/** How many were counted twice, and estimates that hold under a condition, which stands first. */
function ifAlike(params, { twice, error, rows }, { included }) {
  const whole = (value) => formatNumber(Math.round(value));
  const counted = { twice: whole(twice), error: whole(error), included };
  const tables = rows.map((found, number) => {
    const heading = wordsElement("h4", questionText(params, number), wordsOf(params));
    const question = params.questionnaire.questions[number];
    const caption = translate("resultAlike");
    const made = resultTable(question, found, labelsFor(params, number), caption);
    return hasSeveral(params) ? [heading, made] : made;
  });
  return [
    element("p", { class: "quiet" }, say(params, "resultBase")),
    element("h3", {}, translate("resultAgain")),
    element("p", {}, translate("resultTwice", counted)),
    tables,
    element("p", { class: "quiet" }, translate("resultAlikeText")),
  ];
}

/** The tables of one question; with several questions its text stands above them. */
function questionResult(params, number, rows, { included }) {
  const heading = wordsElement("h3", questionText(params, number), wordsOf(params));
  const question = params.questionnaire.questions[number];
  const label = labelsFor(params, number);
  const [first, second] = [wordsOf(params).questions[number].text].flat();
  const tables = groupsOf(question, rows).map(([caption, kept]) =>
    resultTable(question, kept, label, translate(caption, { included, first, second })),
  );
  return hasSeveral(params) ? [heading, tables] : tables;
}

/** [name of the caption, rows] of every table: equal units stand together. */
function groupsOf(question, rows) {
  const isMargin = ({ answer }, name) => Object.hasOwn(Object(answer), name);
  const isPlain = (row) => !row.ofAnswered && !isMargin(row, "row") && !isMargin(row, "column");
  const shares = rows.filter(({ measure }) => measure === "share");
  const groups = [
    ["resultOther", rows.filter(({ measure }) => measure !== "share")],
    ["resultCaption", shares.filter(isPlain)],
    ["resultAnswered", shares.filter(({ ofAnswered }) => ofAnswered)],
    ["resultFirst", shares.filter((row) => isMargin(row, "row"))],
    ["resultSecond", shares.filter((row) => isMargin(row, "column"))],
  ];
  // What a question asks for comes first: the mean of a number, the shares of everything else.
  if (question.form !== "sum") groups.push(groups.shift());
  return groups.filter(([, kept]) => kept.length);
}

/** Row -> what it is about, in words. */
function labelsFor(params, number) {
  const question = params.questionnaire.questions[number];
  const labels = answerLabels(params, number);
  const words = wordsOf(params);
  const { columns, rows } = words.questions[number];
  return ({ answer, measure, ofAnswered }) => {
    if (measure === "median") return plainLabel("median");
    if (measure === "mean") return plainLabel(ofAnswered ? "meanAnswered" : "mean");
    if (answer === "missing") return element("span", {}, missingLabel(question));
    if (answer === "answered") return plainLabel("answeredShare");
    if (typeof answer === "number") return wordsElement("span", labels[answer], words);
    const text = "row" in answer ? rows[answer.row] : columns[answer.column];
    return wordsElement("span", text, words);
  };
}

const plainLabel = (name) => element("span", {}, translate(name));

function resultTable(question, rows, label, caption) {
  const headings = ["resultItem", "resultShare", "resultRange"].map((name) =>
    element("th", { scope: "col" }, translate(name)),
  );
  const axis = axisOf(rows);
  const decimals = decimalsFor(rows.filter(({ measure }) => measure === "share"));
  const draw = (row) => (row.measure === "share" ? chart(row, axis) : drawMean(question, row));
  const rowsOf = (row) => [textRow(row, label, decimals), drawingRow(3, draw(row))];
  return element(
    "table",
    {},
    ownerText("caption", caption),
    element("thead", {}, element("tr", {}, headings)),
    element("tbody", {}, rows.flatMap(rowsOf)),
  );
}

/** A mark within the range of the question. */
function drawMean(question, row) {
  const { choices, edges, largest, origin, unit } = question;
  if (edges) return meanChart(row, [toDouble(edges[0]), toDouble(edges.at(-1))]);
  if (largest === undefined) return meanChart(row, [1, choices]); // the scores of a scale
  const least = toDouble(origin);
  return meanChart(row, [least, least + largest * toDouble(unit)]);
}

function textRow(row, label, decimals) {
  const isShare = row.measure === "share";
  const format = isShare ? (share) => formatPercent(share, decimals) : meanFormat(row);
  const range = { low: format(row.low), high: format(row.high) };
  const value = format(row.estimate);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, label(row)),
    element("td", {}, isShare ? translate("percent", { value }) : value),
    element("td", {}, translate(isShare ? "range" : "plainRange", range)),
  );
}

function meanFormat(row) {
  const places = decimalsForMean(row);
  const digits = { minimumFractionDigits: places, maximumFractionDigits: places };
  return (value) => formatNumber(value, { ...digits, signDisplay: "negative" });
}

// The estimates of every question: shares as bars, a mean as a mark on its range, a table of two
// questions as a grid, and always the numbers as text.

import { axisOf, chart, drawingRow, meanChart } from "./chart.js";
import { element, ownerText } from "./dom.js";
import { formatNumber, formatPercent, translate, translateFrom } from "./language.js";
import { LANGUAGES as PARTICIPANT } from "./participant_strings.js";
import { row, sentence, table } from "./parts.js";

const HEADINGS = ["resultItem", "resultShare", "resultRange", "resultConsistentHead"];
// Part of a question -> name of the caption of its table.
const CAPTIONS = {
  shares: "resultCaption",
  answered: "resultAnswered",
  rows: "resultSide",
  columns: "resultSide",
  measure: "resultMeasure",
};

/** A section for every question; a single one needs no heading. */
export function questionResults({ charts, users }) {
  const included = formatNumber(users);
  if (charts.length === 1) return questionTables(charts[0], included);
  return charts.map((question) =>
    element(
      "section",
      { class: "question-result" },
      ownerText("h3", `${question.number}. ${question.text}`),
      questionTables(question, included),
    ),
  );
}

/** What the second table says: how many, and estimates whose condition stands in every caption. */
export function secondTable({ charts, second, users }) {
  if (!second) return null;
  const included = formatNumber(users);
  const whole = (value) => formatNumber(Math.round(value));
  const { estimate, low, high } = second.twice;
  const counted = { included, twice: whole(estimate), low: whole(low), high: whole(high) };
  const p = formatNumber(second.test.p, { maximumSignificantDigits: 2 });
  const tables = charts.map((question, at) => {
    const heading = ownerText("h4", `${question.number}. ${question.text}`);
    const rows = second.rows[at];
    const made = rowsTable({ ...question, rows }, "shares", translate("levelsAlike"));
    return charts.length > 1 ? [heading, made] : made;
  });
  return element(
    "section",
    { class: "second-table" },
    sentence("levelsBase", {}, { class: "quiet" }),
    element("h3", {}, translate("levelsAgain")),
    sentence("levelsTwice", counted),
    tables,
    sentence("levelsAlikeText", {}, { class: "quiet" }),
    sentence(second.test.rejected ? "levelsDiffer" : "levelsNotDiffer", { p }),
  );
}

function questionTables(question, included) {
  // What a question asks for comes first: the mean of a number, the shares of everything else.
  const parts = Object.keys(CAPTIONS);
  if (question.is_mean) parts.unshift(parts.pop());
  const tables = parts.map((part) => partTable(question, part, included));
  const made = tables.filter((found) => found !== null);
  if (question.sides === null) return made;
  return [element("div", { class: "pair" }, grid(question, included), made[0]), ...made.slice(1)];
}

/** The table of one part of the estimates; null if the question has none of them. */
function partTable(question, part, included) {
  const text = question.texts[part === "columns" ? 1 : 0];
  return rowsTable(question, part, translate(CAPTIONS[part], { included, text }));
}

function rowsTable(question, part, caption) {
  const rows = question.rows.filter((found) => found.part === part);
  if (!rows.length) return null;
  const axis = axisOf(rows);
  const isShare = part !== "measure";
  const draw = (found) => (isShare ? chart(found, axis) : meanChart(found, question.range));
  const made = rows.flatMap((found) => {
    const format = formatterOf(found);
    const range = { low: format(found.low), high: format(found.high) };
    return [
      row(
        labelOf(question, found),
        valueText(isShare, format(found.estimate)),
        isShare ? translate("range", range) : translate("trendRange", range),
        valueText(isShare, format(found.consistent)),
      ),
      drawingRow(HEADINGS.length, draw(found)),
    ];
  });
  return table(caption, HEADINGS, made, nameOf(question, caption));
}

/** What a table is called: the captions of several questions may be the same. */
const nameOf = ({ text }, caption) => `${text}: ${caption}`;

const valueText = (isShare, value) => (isShare ? translate("percent", { value }) : value);

/** How the numbers of a row are written: with as many decimals as its interval allows. */
function formatterOf({ decimals, part }) {
  if (part !== "measure") return (share) => formatPercent(share, decimals);
  const places = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return (value) => formatNumber(value, { ...places, signDisplay: "negative" });
}

/** What a row is about: the owner's words, or those of the page. */
function labelOf({ bands }, { band, label, word }) {
  if (label !== null) return ownerText("span", label);
  if (word !== null) return element("span", {}, translateFrom(PARTICIPANT, word));
  const [low, high] = [bands[band], bands[band + 1]].map((edge) =>
    formatNumber(edge, { maximumFractionDigits: 20 }),
  );
  const name = band === bands.length - 2 ? "lastBand" : "band";
  return element("span", {}, translateFrom(PARTICIPANT, name, { low, high }));
}

/** Two questions crosswise: the share of every pair as a bar, and the margins as numbers. */
function grid({ rows, sides: [down, across], texts }, included) {
  const inPart = (name) => rows.filter(({ part }) => part === name);
  const cells = inPart("shares");
  const axis = axisOf(cells);
  const percent = (found) =>
    translate("percent", { value: formatterOf(found)(found.estimate) });
  const head = (text, scope) => ownerText("th", text, { scope });
  const all = translate("gridAll");
  const margins = inPart("rows").map((found) => element("td", { class: "margin" }, percent(found)));
  const body = down.map((text, at) => {
    const own = cells.slice(at * across.length, (at + 1) * across.length);
    const drawn = own.map((found) => element("td", {}, percent(found), chart(found, axis)));
    return element("tr", {}, head(text, "row"), drawn, margins[at]);
  });
  const last = inPart("columns").map((found) => element("td", { class: "margin" }, percent(found)));
  body.push(element("tr", {}, head(all, "row"), last, element("td")));
  const caption = translate("gridCaption", { included, rows: texts[0], columns: texts[1] });
  const heads = [element("td"), ...[...across, all].map((text) => head(text, "col"))];
  const made = element(
    "table",
    { class: "grid" },
    ownerText("caption", caption),
    element("thead", {}, element("tr", {}, heads)),
    element("tbody", {}, body),
  );
  const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": caption };
  return element("div", box, made);
}

/** What has changed since the same people were asked before; null for the first time. */
export function changes({ before, questions }) {
  if (before === undefined) return null;
  return element(
    "div",
    {},
    element("h3", {}, translate("trendTitle", { before })),
    questions.map((question) => questionChanges(question, questions.length > 1)),
  );
}

function questionChanges(question, isOneOfSeveral) {
  const isShare = ({ part }) => part !== "measure";
  const shares = question.changes.filter(isShare);
  const others = question.changes.filter((change) => !isShare(change));
  return [
    isOneOfSeveral ? ownerText("h4", `${question.number}. ${question.text}`) : null,
    shares.length ? changeTable("trendCaption", question, shares) : null,
    others.length ? changeTable("trendCaptionMean", question, others) : null,
  ];
}

function changeTable(caption, question, rows) {
  const made = rows.map((change) => {
    const format = changeFormat(change);
    const range = { low: format(change.low), high: format(change.high) };
    return row(
      labelOf(question, change),
      format(change.estimate),
      translate("trendRange", range),
      translate(change.clear ? "trendClear" : "trendNoise"),
    );
  });
  const headings = ["resultItem", "trendChange", "resultRange", "trendMeaning"];
  return table(translate(caption), headings, made, nameOf(question, translate(caption)));
}

/** A difference with its sign: of shares in percentage points, of means as it is. */
function changeFormat({ decimals, part }) {
  const places = part === "measure" ? decimals : 1;
  const factor = part === "measure" ? 1 : 100;
  return (difference) =>
    formatNumber(factor * difference, {
      minimumFractionDigits: places,
      maximumFractionDigits: places,
      signDisplay: "exceptZero",
    });
}

// The result as bars with error bars, raw and consistent, with the guarantee as planned and
// achieved.

import { attackerCertainty } from "./certainty.js";
import { againstText, conditionText } from "./conditions.js";
import { element, englishText, ownerText } from "./dom.js";
import { isEnglish } from "./endings.js";
import { formatNumber, formatSmall, translate } from "./language.js";
import { buttons, details, formatValues, row, section, sentence, table } from "./parts.js";
import { levelName } from "./promise_view.js";
import { changes, questionResults, secondTable } from "./question_results.js";

const FILE_TYPES = ["png", "svg", "xlsx", "html", "csv", "json"];

/** Whether there is one question with exactly one answer each, and nothing but its shares. */
const isOneChoice = ({ charts }) =>
  charts.length === 1 && charts[0].rows.every(({ part }) => part === "shares") &&
  ["one", "yes"].includes(charts[0].kind);

export function resultSection(result, actions) {
  if (result.ended !== undefined) return endedSection(result);
  const downloads = FILE_TYPES.map((type) => {
    const click = () => actions.save(`result.${type}`);
    return element("button", { type: "button", click }, type.toUpperCase());
  });
  return section(
    "resultTitle",
    questionResults(result),
    sentence(isOneChoice(result) ? "resultText" : "resultTextSeveral", {}, { class: "quiet" }),
    sentence(isOneChoice(result) ? "resultConsistent" : "resultNearest", {}, { class: "quiet" }),
    secondTable(result),
    changes(result.trend),
    element("h3", {}, translate("downloadTitle")),
    sentence("downloadText", {}, { class: "quiet" }),
    buttons(downloads),
    validity(result),
    guarantee(result),
  );
}

/** Whether every response was proven to be one vote. */
function validity(result) {
  const votes = result.validity;
  if (!votes?.proven) return sentence("adviceUnproven", {}, { class: "warning" });
  const { counted, refused } = votes;
  const name = isOneChoice(result) ? "resultProven" : "resultProvenSheet";
  return sentence(name, formatValues({ counted, refused }));
}

function endedSection({ ended: { code, values, detail }, spent }) {
  return section(
    "resultTitle",
    sentence("resultNone", {}, { class: "warning" }),
    sentence(`ending_${code}`, formatValues(values)),
    endingDetail(code, detail),
    sentence(spent ? "resultSpent" : "resultNotSpent"),
  );
}

function endingDetail(code, detail) {
  if (!detail) return null;
  return isEnglish(code) ? englishText(detail) : ownerText("p", detail);
}

/** What the guarantee means for one person; on request planned and achieved, and for experts. */
function guarantee({ charts, promised, guarantee: { holds }, codes, record, second }) {
  const numbers = (epsilon, delta) => [
    formatNumber(epsilon, { maximumSignificantDigits: 4 }),
    formatSmall(delta),
  ];
  const rows = [
    row(translate("guaranteePlanned"), ...numbers(promised.epsilon, promised.delta)),
    row(
      translate("guaranteeKept"),
      ...numbers(promised.realized_epsilon, promised.realized_delta),
    ),
  ];
  const sure = formatNumber(attackerCertainty(promised.realized_epsilon));
  const meaning = holds
    ? sentence(charts.length > 1 ? "promiseSeveral" : "promise", { sure })
    : sentence(`void_${codes.void}`, {}, { class: "warning" });
  return element(
    "div",
    {},
    element("h3", {}, translate("guaranteeTitle")),
    operatorWarning(record),
    meaning,
    holds && second ? levelLines(second) : null,
    holds ? singleLine(charts) : null,
    sentence("resultAgain", {}, { class: "quiet" }),
    details(
      "guaranteeDetails",
      table(translate("guaranteeCaption"), ["guaranteeWhen", "epsilon", "delta"], rows),
      holds ? exactGuarantee(promised, codes) : null,
    ),
  );
}

/** What each level guarantees; the sentence before is about the weakest. */
function levelLines({ offered }) {
  const format = (epsilon) => formatNumber(epsilon, { maximumSignificantDigits: 4 });
  const points = offered.map(({ name, answer, both }) => {
    const values = { name: levelName(name), epsilon: format(answer), both: format(both) };
    return ownerText("li", translate("levelsGuarantee", values));
  });
  return [sentence("levelsGuaranteeText"), element("ul", {}, points)];
}

/** That one operator ran both servers, or may have; null with two. */
function operatorWarning({ one_operator: isOne, s1_operator: name }) {
  if (!isOne) return null;
  return sentence(name ? "guaranteeOneOperator" : "guaranteeNoOperator", {}, { class: "warning" });
}

/** What a single one of several answers loses at most, if that is less than all of them. */
function singleLine(charts) {
  const groups = new Set(charts.map(({ group }) => group));
  if (groups.size < 2) return null;
  const largest = Math.max(...charts.map(({ epsilon }) => epsilon));
  return sentence("promiseSingle", { sure: formatNumber(attackerCertainty(largest)) });
}

/** The guarantee with its adversary and its condition. */
function exactGuarantee({ realized_epsilon: epsilon, realized_delta: delta }, codes) {
  const values = {
    epsilon: formatNumber(epsilon, { maximumSignificantDigits: 4 }),
    delta: formatSmall(delta),
    against: againstText(codes),
    condition: conditionText(codes.condition),
  };
  return sentence("guaranteeExact", values, { class: "quiet" });
}

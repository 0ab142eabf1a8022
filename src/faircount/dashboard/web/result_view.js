// The result as bars with error bars, raw and consistent, with the guarantee as planned and
// achieved.

import { attackerCertainty } from "./certainty.js";
import { axisOf, chart, drawingRow } from "./chart.js";
import { againstText, conditionText } from "./conditions.js";
import { element, englishText, ownerText } from "./dom.js";
import { isEnglish } from "./endings.js";
import { decimalsFor, formatNumber, formatPercent, formatSmall, translate } from "./language.js";
import { buttons, details, formatValues, row, section, sentence, table } from "./parts.js";

const FILE_TYPES = ["png", "svg", "xlsx", "html", "csv", "json"];

export function resultSection(result, actions) {
  if (result.ended !== undefined) return endedSection(result);
  const downloads = FILE_TYPES.map((type) => {
    const click = () => actions.save(`result.${type}`);
    return element("button", { type: "button", click }, type.toUpperCase());
  });
  return section(
    "resultTitle",
    estimates(result),
    sentence("resultText", {}, { class: "quiet" }),
    sentence("resultConsistent", {}, { class: "quiet" }),
    changes(result.trend),
    element("h3", {}, translate("downloadTitle")),
    sentence("downloadText", {}, { class: "quiet" }),
    buttons(downloads),
    validity(result),
    guarantee(result),
  );
}

/** What has changed since the same people were asked before; null for the first time. */
function changes({ before, changes: items }) {
  if (before === undefined) return null;
  const rows = items.map(({ item, estimate, low, high, clear }) =>
    row(
      ownerText("span", item),
      formatChange(estimate),
      translate("trendRange", { low: formatChange(low), high: formatChange(high) }),
      translate(clear ? "trendClear" : "trendNoise"),
    ),
  );
  const headings = ["resultItem", "trendChange", "resultRange", "trendMeaning"];
  return element(
    "div",
    {},
    element("h3", {}, translate("trendTitle", { before })),
    table(translate("trendCaption"), headings, rows),
  );
}

/** A difference of shares in percentage points, with its sign. */
const formatChange = (difference) =>
  formatNumber(100 * difference, {
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
    signDisplay: "exceptZero",
  });

/** Whether every response was proven to be one vote. */
function validity({ validity: votes }) {
  if (!votes?.proven) return sentence("adviceUnproven", {}, { class: "warning" });
  const { counted, refused } = votes;
  return sentence("resultProven", formatValues({ counted, refused }));
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

function estimates({ estimates: items, consistent, users }) {
  const axis = axisOf(items);
  const decimals = decimalsFor(items);
  const format = (share) => formatPercent(share, decimals);
  const rows = items.flatMap((item, at) => [
    row(
      ownerText("span", item.item),
      translate("percent", { value: format(item.estimate) }),
      translate("range", { low: format(item.low), high: format(item.high) }),
      translate("percent", { value: format(consistent[at]) }),
    ),
    drawingRow(4, chart({ ...item, consistent: consistent[at] }, axis)),
  ]);
  const headings = ["resultItem", "resultShare", "resultRange", "resultConsistentHead"];
  return table(translate("resultCaption", { included: formatNumber(users) }), headings, rows);
}

/** What the guarantee means for one person; on request planned and achieved, and for experts. */
function guarantee({ promised, guarantee: { holds }, codes, record }) {
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
    ? sentence("promise", { sure })
    : sentence(`void_${codes.void}`, {}, { class: "warning" });
  return element(
    "div",
    {},
    element("h3", {}, translate("guaranteeTitle")),
    operatorWarning(record),
    meaning,
    sentence("resultAgain", {}, { class: "quiet" }),
    details(
      "guaranteeDetails",
      table(translate("guaranteeCaption"), ["guaranteeWhen", "epsilon", "delta"], rows),
      holds ? exactGuarantee(promised, codes) : null,
    ),
  );
}

/** That one operator ran both servers, or may have; null with two. */
function operatorWarning({ one_operator: isOne, s1_operator: name }) {
  if (!isOne) return null;
  return sentence(name ? "guaranteeOneOperator" : "guaranteeNoOperator", {}, { class: "warning" });
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

// The published result: a table of estimates with intervals, and a bar for each estimate.

import { bytesText } from "../client/bytes.js";
import { unscaled } from "../client/canonical_json.js";
import { estimates } from "../client/estimates.js";
import { hasOneOperator } from "../client/operators.js";
import { axisOf, chart, drawingRow } from "./chart.js";
import { element, ownerText } from "./dom.js";
import { formatNumber, formatPercent, formatSmall, translate } from "./language.js";
import { operatorNames } from "./operators.js";

/** The section with the result. */
export function resultSection(params, published) {
  const rows = estimates(params, published);
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
  return element(
    "section",
    { class: "result" },
    element("h2", {}, translate("resultTitle")),
    table(rows, axisOf(rows), published.included),
    element("p", { class: "quiet" }, translate("resultText")),
    element("p", { class: "quiet" }, translate(validity, votes)),
    element("p", { class: "quiet" }, translate("resultRealized", privacy)),
    hasOneOperator(params)
      ? ownerText("p", translate("resultOneOperator", operatorNames(params)), { class: "warning" })
      : null,
  );
}

function table(rows, axis, included) {
  const headings = ["resultItem", "resultShare", "resultRange"].map((name) =>
    element("th", { scope: "col" }, translate(name)),
  );
  return element(
    "table",
    {},
    element("caption", {}, translate("resultCaption", { included: formatNumber(included) })),
    element("thead", {}, element("tr", {}, headings)),
    element("tbody", {}, rows.flatMap((row) => [textRow(row), drawingRow(3, chart(row, axis))])),
  );
}

function textRow(row) {
  const range = { low: formatPercent(row.low), high: formatPercent(row.high) };
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, ownerText("span", row.item)),
    element("td", {}, translate("percent", { value: formatPercent(row.estimate) })),
    element("td", {}, translate("range", range)),
  );
}

// The published result: a table of estimates with intervals, and a bar for each estimate.

import { bytesText } from "../client/bytes.js";
import { unscaled } from "../client/canonical_json.js";
import { estimates } from "../client/estimates.js";
import { hasOneOperator } from "../client/operators.js";
import { axisOf, chart, drawingRow } from "./chart.js";
import { element, ownerText } from "./dom.js";
import { decimalsFor, formatNumber, formatPercent, formatSmall, translate } from "./language.js";
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
  const decimals = decimalsFor(rows);
  const rowsOf = (row) => [textRow(row, decimals), drawingRow(3, chart(row, axis))];
  return element(
    "table",
    {},
    element("caption", {}, translate("resultCaption", { included: formatNumber(included) })),
    element("thead", {}, element("tr", {}, headings)),
    element("tbody", {}, rows.flatMap(rowsOf)),
  );
}

function textRow(row, decimals) {
  const [low, high, value] = [row.low, row.high, row.estimate].map((share) =>
    formatPercent(share, decimals),
  );
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, ownerText("span", row.item)),
    element("td", {}, translate("percent", { value })),
    element("td", {}, translate("range", { low, high })),
  );
}

// The published result: a table of estimates with intervals, and a bar for each.

import { bytesText } from "../client/bytes.js";
import { unscaled } from "../client/canonical_json.js";
import { estimates } from "../client/estimates.js";
import { axisOf, chart, drawingRow } from "./chart.js";
import { element, foreign } from "./dom.js";
import { percent, say, small, written } from "./language.js";

/** The section with the result. */
export function resultSection(params, published) {
  const rows = estimates(params, published);
  const kept = {
    epsilon: written(unscaled(bytesText(published.realized_epsilon)), { maximumSignificantDigits: 4 }),
    delta: small(unscaled(bytesText(published.realized_delta))),
  };
  const votes = { included: written(published.included), refused: written(published.refused) };
  return element(
    "section",
    { class: "result" },
    element("h2", {}, say("resultTitle")),
    table(rows, axisOf(rows), published.included),
    element("p", { class: "quiet" }, say("resultWords")),
    element("p", { class: "quiet" }, say(params.proven ? "resultProven" : "resultUnproven", votes)),
    element("p", { class: "quiet" }, say("resultRealized", kept)),
  );
}

function table(rows, axis, included) {
  const heads = ["resultItem", "resultShare", "resultRange"].map((each) => element("th", { scope: "col" }, say(each)));
  return element(
    "table",
    {},
    element("caption", {}, say("resultCaption", { included: written(included) })),
    element("thead", {}, element("tr", {}, heads)),
    element("tbody", {}, rows.flatMap((row) => [line(row), drawingRow(3, chart(row, axis))])),
  );
}

function line(row) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, foreign("span", row.item)),
    element("td", {}, say("percent", { value: percent(row.estimate) })),
    element("td", {}, say("range", { low: percent(row.low), high: percent(row.high) })),
  );
}

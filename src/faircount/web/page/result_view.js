// The published result: a table of estimates with intervals, and a bar for each.

import { bytesText } from "../client/bytes.js";
import { unscaled } from "../client/canonical_json.js";
import { estimates } from "../client/estimates.js";
import { drawn, element, foreign } from "./dom.js";
import { say, written } from "./strings.js";
import { small } from "./survey_view.js";

const percent = (value) => written(100 * value, { maximumFractionDigits: 1, signDisplay: "negative" });

/** The section with the result. */
export function resultSection(params, published) {
  const rows = estimates(params, published);
  const ends = rows.flatMap((row) => [row.estimate, row.high]);
  const axis = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const kept = {
    epsilon: written(unscaled(bytesText(published.realized_epsilon)), { maximumSignificantDigits: 4 }),
    delta: small(unscaled(bytesText(published.realized_delta))),
  };
  return element(
    "section",
    { class: "result" },
    element("h2", {}, say("resultTitle")),
    table(rows, axis, published.included),
    element("p", { class: "quiet" }, say("resultWords")),
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
    element("tbody", {}, rows.map((row) => line(row, axis))),
  );
}

function line(row, axis) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, foreign("span", row.item), chart(row, axis)),
    element("td", {}, say("percent", { value: percent(row.estimate) })),
    element("td", {}, say("range", { low: percent(row.low), high: percent(row.high) })),
  );
}

/** A bar to the estimate, and a line over the interval; the numbers stand beside it. */
function chart({ estimate, low, high }, [least, most]) {
  const at = (value) => (100 * (value - least)) / (most - least || 1);
  const [zero, end] = [at(0), at(estimate)];
  const bar = { class: "bar", x: Math.min(zero, end), width: Math.abs(end - zero), y: 2, height: 8 };
  const upright = (x, kind) => drawn("line", { class: kind, x1: x, x2: x, y1: 3, y2: 9 });
  return drawn(
    "svg",
    { class: "chart", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", bar),
    drawn("line", { class: "zero", x1: zero, x2: zero, y1: 0, y2: 12 }),
    drawn("line", { class: "range", x1: at(low), x2: at(high), y1: 6, y2: 6 }),
    upright(at(low), "range"),
    upright(at(high), "range"),
  );
}

// The result as bars with error bars, raw and consistent; what was promised, and what holds.

import { axisOf, chart, drawingRow } from "./chart.js";
import { element, foreign, quoted } from "./dom.js";
import { ending } from "./endings.js";
import { percent, say, small, written } from "./language.js";
import { buttons, row, section, sentence, table } from "./parts.js";
import { sureness } from "./sureness.js";

const KINDS = ["csv", "json", "png", "svg"];

export function resultOf(result, actions) {
  if (result.ended !== undefined) return ended(result);
  return section(
    "resultTitle",
    estimates(result),
    sentence("resultWords", {}, { class: "quiet" }),
    sentence("resultConsistent", {}, { class: "quiet" }),
    votes(result),
    guarantee(result),
    element("h3", {}, say("downloadTitle")),
    sentence("downloadWords", {}, { class: "quiet" }),
    buttons(KINDS.map((kind) => element("button", { type: "button", click: () => actions.save(`result.${kind}`) }, kind.toUpperCase()))),
  );
}

/** Whether every report was proven to be one vote. */
function votes({ validity }) {
  if (!validity?.proven) return sentence("adviceUnproven", {}, { class: "warning" });
  return sentence("resultProven", { counted: written(validity.counted), refused: written(validity.refused) });
}

function ended({ ended: reason, spent }) {
  return section(
    "resultTitle",
    sentence("resultNone", {}, { class: "warning" }),
    endingOf(reason),
    sentence(spent ? "resultSpent" : "resultNotSpent"),
  );
}

/** Why it ended, in this language where both servers sign such words; others as they were signed. */
function endingOf(reason) {
  const { name, values, words, english } = ending(reason);
  return name ? sentence(name, values) : english ? quoted(words) : foreign("p", words);
}

function estimates({ estimates: rows, consistent, users }) {
  const axis = axisOf(rows);
  const made = rows.flatMap((each, at) => [
    row(
      foreign("span", each.item),
      say("percent", { value: percent(each.estimate) }),
      say("range", { low: percent(each.low), high: percent(each.high) }),
      say("percent", { value: percent(consistent[at]) }),
    ),
    drawingRow(4, chart({ ...each, consistent: consistent[at] }, axis)),
  ]);
  const heads = ["resultItem", "resultShare", "resultRange", "resultConsistentHead"];
  return table(say("resultCaption", { included: written(users) }), heads, made);
}

/** Planned before, and kept in the end, beside each other; then in a sentence. */
function guarantee({ promised, guarantee: { holds }, in_words: words, codes }) {
  const numbers = (epsilon, delta) => [written(epsilon, { maximumSignificantDigits: 4 }), small(delta)];
  const rows = [
    row(say("guaranteePlanned"), ...numbers(promised.epsilon, promised.delta)),
    row(say("guaranteeKept"), ...numbers(promised.realized_epsilon, promised.realized_delta)),
  ];
  return element(
    "div",
    {},
    element("h3", {}, say("guaranteeTitle")),
    table(say("guaranteeCaption"), ["guaranteeWhen", "epsilon", "delta"], rows),
    holds ? sentence("promise", { sure: written(sureness(promised.realized_epsilon)) }) : null,
    holds ? exactly(promised, words, codes) : quoted(words, { class: "warning" }),
    sentence("resultAgain", {}, { class: "quiet" }),
  );
}

/** The exact guarantee, with whom it is against and on which condition. */
function exactly({ realized_epsilon: epsilon, realized_delta: delta }, words, { against, insiders, condition }) {
  if (against === "other" || condition === "other") return quoted(words, { class: "quiet" });
  const said = { epsilon: written(epsilon, { maximumSignificantDigits: 4 }), delta: small(delta) };
  const whom = say(`against_${against}`, { insiders: written(insiders) });
  return sentence("guaranteeExact", { ...said, against: whom, condition: say(`condition_${condition}`) }, { class: "quiet" });
}

// Who decides about protection: the owner, with one epsilon for everybody, or everybody, with a
// choice of privacy levels that nobody else learns.

import { attackerCertainty } from "./certainty.js";
import { element } from "./dom.js";
import { formatNumber, formatPercent, translate } from "./language.js";
import { formatValues, sentence } from "./parts.js";

// Names that a participant's page says in its own languages. The weakest has less than three times
// the strongest epsilon, so that offering it does not cost those who choose the strongest much.
const USUAL = [["very strong", "0.4"], ["strong", "0.7"], ["normal", "1"]];

/** {box, update(values)}: the choice, and the levels, which are shown where they are wanted. */
export function levelFields(typed) {
  const wanted = typed.protection ?? "one";
  const choices = ["one", "levels"].map((value) => {
    const input = element("input", { type: "radio", name: "protection", value });
    input.checked = value === wanted;
    return element("label", { class: "choice" }, input, translate(`protection_${value}`));
  });
  const rows = USUAL.map((usual, at) => levelRow(at + 1, usual, typed));
  const levels = element(
    "fieldset",
    { class: "levels", "aria-describedby": "levels-hint" },
    element("legend", {}, translate("levelsTitle")),
    element("p", { class: "quiet hint", id: "levels-hint" }, translate("levelsHint")),
    rows,
  );
  const legend = element("legend", {}, translate("protectionTitle"));
  const box = element(
    "div",
    {},
    element("fieldset", { class: "choices" }, legend, choices),
    levels,
  );
  const update = ({ protection }) => (levels.hidden = protection !== "levels");
  update({ protection: wanted });
  return { box, update };
}

/** One level: its name and its epsilon, side by side. */
function levelRow(number, [name, epsilon], typed) {
  const shown = { number: formatNumber(number) };
  const field = (part, usual, settings) => {
    const id = `level_${part}_${number}`;
    const input = element("input", { id, name: id, ...settings });
    input.value = typed[id] ?? usual;
    const label = element("label", { for: id }, translate(`level_${part}`, shown));
    return element("div", { class: "field" }, label, input);
  };
  const range = { type: "number", min: "0.01", step: "any" };
  return element(
    "div",
    { class: "level-row" },
    field("name", name, { dir: "auto", maxlength: "40" }),
    field("epsilon", epsilon, range),
  );
}

/** What they would gain, and how one level for all would gain as much. */
function gainLines(gain) {
  if (!gain) return [];
  const { inside, responses, half_width_95: half, equal_epsilon: equal } = gain;
  const epsilon = formatNumber(equal, { maximumSignificantDigits: 2 });
  const counted = { ...formatValues({ inside, responses }), error: formatPercent(half) };
  return [sentence("adviceLevelsAlike", counted), sentence("adviceLevelsOne", { epsilon })];
}

/** What to expect of levels: first that the error is that of the strongest, then what they cost. */
export function levelAdvice({ costly, gain, levels }) {
  const percent = (epsilon) => formatNumber(attackerCertainty(epsilon));
  const [strongest] = levels;
  const cost = { sure: percent(strongest.answer), both: percent(strongest.both) };
  return [
    sentence("adviceLevelsBase"),
    ...gainLines(gain),
    ...(costly ? [sentence("adviceLevelsCostly", cost, { class: "warning" })] : []),
  ];
}

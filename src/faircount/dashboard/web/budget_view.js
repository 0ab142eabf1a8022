// The budget of a population over time: a step for each survey, from what was spent before to what was spent after it.

import { drawingRow } from "./chart.js";
import { drawn, element, foreign } from "./dom.js";
import { moment, say, small, written } from "./language.js";
import { row, section, sentence, table } from "./parts.js";

const amount = (value) => written(value, { maximumSignificantDigits: 4 });

export function budgetOf(budget, population) {
  const { epsilon, delta, spent } = budget;
  const total = { spent: amount(spent.epsilon), epsilon: amount(epsilon), spentDelta: small(spent.delta), delta: small(delta) };
  const most = Math.max(epsilon, ...budget.surveys.map((each) => each.after)) || 1;
  const rows = budget.surveys.flatMap((each) => [
    row(named(each), amount(each.epsilon), amount(each.after), say(`charge_${each.status}`)),
    drawingRow(4, step(each, epsilon, most)),
  ]);
  return section(
    "budgetTitle",
    population ? sentence("budgetShared", { population }) : sentence("budgetOwn", {}, { class: "quiet" }),
    sentence("budgetSpent", total, { class: "figure" }),
    budget.closed ? sentence("budgetClosed", {}, { class: "warning" }) : null,
    rows.length ? table(say("budgetCaption"), ["listName", "epsilon", "budgetAfter", "budgetStatus"], rows) : sentence("budgetUntouched", {}, { class: "quiet" }),
    budget.together ? sentence("budgetTogether", {}, { class: "quiet" }) : null,
  );
}

/** A survey of this folder has a name and a time; one that was made elsewhere only its id. */
function named({ name, survey, opened_at: opened }) {
  const when = opened ? element("span", { class: "quiet when" }, moment(opened, "medium")) : null;
  return element("span", {}, name ? foreign("span", name) : say("budgetElsewhere", { id: survey.slice(0, 8) }), when);
}

/** From before to after, on an axis that ends at the total. The numbers stand beside it. */
function step({ before, after }, total, most) {
  const at = (value) => (100 * value) / most;
  return drawn(
    "svg",
    { class: "chart", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { class: "frame", x: 0, width: at(total), y: 2, height: 8 }),
    drawn("rect", { class: "bar before", x: 0, width: at(before), y: 2, height: 8 }),
    drawn("rect", { class: "bar", x: at(before), width: at(after - before), y: 2, height: 8 }),
    drawn("line", { class: "range", x1: at(total), x2: at(total), y1: 0, y2: 12 }),
  );
}

// The privacy budget of a population: one step per survey, from the total before it to the total
// after.

import { drawingRow } from "./chart.js";
import { element, ownerText, svgElement } from "./dom.js";
import { formatNumber, formatSmall, formatTime, translate } from "./language.js";
import { row, section, sentence, table } from "./parts.js";

const formatAmount = (value) => formatNumber(value, { maximumSignificantDigits: 4 });

export function budgetSection(budget, population) {
  const { epsilon, delta, spent, surveys } = budget;
  const total = {
    spent: formatAmount(spent.epsilon),
    epsilon: formatAmount(epsilon),
    spentDelta: formatSmall(spent.delta),
    delta: formatSmall(delta),
  };
  const scope = population
    ? sentence("budgetShared", { population })
    : sentence("budgetOwn", {}, { class: "quiet" });
  return section(
    "budgetTitle",
    scope,
    sentence("budgetSpent", total, { class: "figure" }),
    budget.closed ? sentence("budgetClosed", {}, { class: "warning" }) : null,
    surveys.length ? steps(budget) : sentence("budgetUntouched", {}, { class: "quiet" }),
    budget.together ? sentence("budgetTogether", {}, { class: "quiet" }) : null,
  );
}

function steps({ epsilon, surveys }) {
  const most = Math.max(epsilon, ...surveys.map((survey) => survey.after)) || 1;
  const rows = surveys.flatMap((survey) => [
    row(
      nameOf(survey),
      formatAmount(survey.epsilon),
      formatAmount(survey.after),
      translate(`charge_${survey.status}`),
    ),
    drawingRow(4, drawStep(survey, epsilon, most)),
  ]);
  const headings = ["listName", "epsilon", "budgetAfter", "budgetStatus"];
  return table(translate("budgetCaption"), headings, rows);
}

/** A survey in this folder has a name and a time; one created elsewhere has only its id. */
function nameOf({ name, survey, opened_at: opened }) {
  const time = opened ? formatTime(opened, "medium") : null;
  return element(
    "span",
    {},
    name ? ownerText("span", name) : translate("budgetElsewhere", { id: survey.slice(0, 8) }),
    time ? element("span", { class: "quiet when" }, time) : null,
  );
}

/**
 * From before to after, on an axis that ends at the whole budget. The numbers are in the row above.
 */
function drawStep({ before, after }, total, most) {
  const position = (value) => (100 * value) / most;
  const bar = (kind, from, to) => {
    const place = { x: position(from), width: position(to - from), y: 2, height: 8 };
    return svgElement("rect", { class: kind, ...place });
  };
  const end = position(total);
  return svgElement(
    "svg",
    { class: "chart", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    bar("frame", 0, total),
    bar("bar before", 0, before),
    bar("bar", before, after),
    svgElement("line", { class: "range", x1: end, x2: end, y1: 0, y2: 12 }),
  );
}

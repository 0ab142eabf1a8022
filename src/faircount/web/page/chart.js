// A bar with an error bar; the numbers stand beside it, so a screen reader passes it over.

import { drawn, element } from "./dom.js";

/** A row with a drawing as wide as the table; what it shows stands in the row above. */
export const drawingRow = (columns, svg) =>
  element("tr", { class: "drawing", "aria-hidden": "true" }, element("td", { colspan: columns }, svg));

/** [least, most] of the axis that all rows of {estimate, high} share. */
export function axisOf(rows) {
  const ends = rows.flatMap((row) => [row.estimate, row.high, row.consistent ?? 0]);
  return [Math.min(0, ...ends), Math.max(0, ...ends)];
}

/** A bar to the estimate, a line over the interval, and a stroke at the consistent share where there is one. */
export function chart({ estimate, low, high, consistent }, [least, most]) {
  const at = (value) => (100 * (value - least)) / (most - least || 1);
  const [zero, end] = [at(0), at(estimate)];
  const bar = { class: "bar", x: Math.min(zero, end), width: Math.abs(end - zero), y: 2, height: 8 };
  const upright = (x, kind = "range", [y1, y2] = [3, 9]) => drawn("line", { class: kind, x1: x, x2: x, y1, y2 });
  return drawn(
    "svg",
    { class: "chart", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", bar),
    upright(zero, "zero", [0, 12]),
    drawn("line", { class: "range", x1: at(low), x2: at(high), y1: 6, y2: 6 }),
    upright(at(low)),
    upright(at(high)),
    consistent === undefined ? null : upright(at(consistent), "consistent", [0, 12]),
  );
}

// A bar with an error bar. The numbers are text beside it, so screen readers skip the drawing.

import { element, svgElement } from "./dom.js";

/** A table row with a drawing as wide as the table; the row above has the numbers. */
export const drawingRow = (columns, svg) =>
  element(
    "tr",
    { class: "drawing", "aria-hidden": "true" },
    element("td", { colspan: columns }, svg),
  );

/** [least, most] of the axis that all rows of {estimate, high} share. */
export function axisOf(rows) {
  const ends = rows.flatMap((row) => [row.estimate, row.high, row.consistent ?? 0]);
  return [Math.min(0, ...ends), Math.max(0, ...ends)];
}

/**
 * A bar to the estimate, a line over the interval, and a tall mark at the consistent share, if any.
 */
export function chart({ estimate, low, high, consistent }, [least, most]) {
  const position = (value) => (100 * (value - least)) / (most - least || 1);
  const zero = position(0);
  const end = position(estimate);
  const bar = { x: Math.min(zero, end), width: Math.abs(end - zero), y: 2, height: 8 };
  const mark = (x, kind = "range", y1 = 3, y2 = 9) =>
    svgElement("line", { class: kind, x1: x, x2: x, y1, y2 });
  return svgElement(
    "svg",
    { class: "chart", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    svgElement("rect", { class: "bar", ...bar }),
    mark(zero, "zero", 0, 12),
    svgElement("line", { class: "range", x1: position(low), x2: position(high), y1: 6, y2: 6 }),
    mark(position(low)),
    mark(position(high)),
    consistent === undefined ? null : mark(position(consistent), "consistent", 0, 12),
  );
}

/** A dot at the estimate and a line over the interval, on the range that answers can have. */
export function meanChart({ estimate, low, high }, [least, most]) {
  // Noise may have put the estimate out of the range.
  const from = Math.min(least, estimate);
  const to = Math.max(most, estimate);
  const position = (value) => 2 + (96 * (value - from)) / (to - from || 1);
  const mark = (x, kind, y1, y2) => svgElement("line", { class: kind, x1: x, x2: x, y1, y2 });
  const end = (value) => mark(position(value), "range", 3, 9);
  const dot = { class: "mean", x: position(estimate) - 0.6, width: 1.2, y: 1, height: 10 };
  return svgElement(
    "svg",
    { class: "chart", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    svgElement("line", { class: "zero", x1: 2, x2: 98, y1: 6, y2: 6 }),
    mark(position(least), "zero", 1, 11),
    mark(position(most), "zero", 1, 11),
    svgElement("line", { class: "range", x1: position(low), x2: position(high), y1: 6, y2: 6 }),
    end(low),
    end(high),
    svgElement("rect", dot),
  );
}

// Exact decimal numbers, as the questions of a survey publish them: text in its shortest form. No
// double is involved, so that 0.1 is a tenth and every program finds the same number of steps.

import { insist } from "./refusal.js";

// Up to 300 digits on either side: estimates are doubles, and sums of such numbers must be, too.
const SHORTEST = /^-?(0|[1-9][0-9]{0,299})(\.[0-9]{0,299}[1-9])?$/;

/** {units, places}: the number is units / 10^places. Any but the shortest form is refused. */
export function parseDecimal(text) {
  const isShortest = typeof text === "string" && SHORTEST.test(text) && text !== "-0";
  insist(isShortest, "malformed", "a number is not a decimal in its shortest form");
  const [whole, fraction = ""] = text.split(".");
  return { units: BigInt(whole + fraction), places: fraction.length };
}

/** The units of several numbers at the same number of places: whole numbers to compute with. */
export function alignDecimals(numbers) {
  const places = Math.max(...numbers.map((number) => number.places));
  return numbers.map((number) => number.units * 10n ** BigInt(places - number.places));
}

/** The nearest double. */
export const toDouble = ({ units, places }) => Number(`${units}e-${places}`);

/** The decimal text of start + count * step, for a whole count. */
export function stepDecimal(start, step, count) {
  const places = Math.max(start.places, step.places);
  const [first, length] = alignDecimals([start, step]);
  return formatDecimal(first + length * BigInt(count), places);
}

/** The shortest text of units / 10^places. */
function formatDecimal(units, places) {
  if (places === 0) return String(units);
  const digits = String(units < 0n ? -units : units).padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  const text = digits.slice(0, -places) + (fraction && `.${fraction}`);
  return units < 0n ? `-${text}` : text;
}

/**
 * The whole number of steps from a start that is nearest to a number, halves upwards; null if it is
 * below 0 or above `most`.
 */
export function countSteps(start, step, most, number) {
  const [first, length, value] = alignDecimals([start, step, number]);
  const offset = value - first;
  if (offset < 0n || offset > length * BigInt(most)) return null;
  return Number((2n * offset + length) / (2n * length));
}

/** The number behind digits that somebody typed, with a point; null if it is none. */
export function readDecimal(text) {
  const found = /^(-?)([0-9]{1,300})(?:\.([0-9]{0,300}))?$/.exec(text);
  if (!found) return null;
  const [, sign, whole, fraction = ""] = found;
  return { units: BigInt(`${sign}${whole}${fraction}`), places: fraction.length };
}

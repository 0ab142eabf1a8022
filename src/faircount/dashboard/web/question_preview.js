// What to expect of one of several questions, while the owner types: its error, and its share of
// epsilon.

import { formatNumber, translate } from "./language.js";
import { problemMessage, sentence } from "./parts.js";

const DIGITS = { maximumSignificantDigits: 3 };

/** What stands beside the question of this number. */
export function previewOf({ problem, questions }, number) {
  if (problem) {
    const isHere = problem.values?.question === number;
    return isHere ? [problemMessage(problem, { class: "warning" })] : [];
  }
  const found = questions?.find((question) => question.number === number);
  return found ? lines(found) : [];
}

function lines({ epsilon, group, is_useless: isUseless, target, ...expected }) {
  const share = { epsilon: formatNumber(epsilon, DIGITS), group: formatNumber(group) };
  const made = [
    sentence("previewError", { error: errorText(expected) }, { class: "expected" }),
    sentence("previewShare", share, { class: "quiet" }),
  ];
  if (isUseless) made.push(sentence("previewUseless", {}, { class: "warning" }));
  if (target !== null && target !== undefined) made.push(targetLine(expected, target));
  return made;
}

/** The 95% error in percentage points, or in the units of a number. */
export const errorText = ({ error, unit }) =>
  unit === "units"
    ? translate("errorUnits", { error: formatNumber(error, DIGITS) })
    : translate("errorPoints", {
        error: formatNumber(error, { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
      });

/** The error that the file of the questionnaire asks for, in percentage points. */
function targetLine({ error, unit }, target) {
  const isMissed = unit === "points" && error > target;
  return sentence("previewTarget", { target: formatNumber(target) }, {
    class: isMissed ? "warning" : "quiet",
  });
}

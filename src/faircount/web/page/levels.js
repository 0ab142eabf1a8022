// Hidden privacy levels on the page: their names, what they mean, and the choice of one.

import { lossesOf } from "../client/levels.js";
import { attackerCertainty, isWeak } from "./certainty.js";
import { element, ownerText } from "./dom.js";
import { formatList, formatNumber, formatSmall, hasText, translate } from "./language.js";
import { say } from "./wording.js";

/** Whether people choose their level. */
export const hasLevels = ({ drawn }) => drawn.levels !== undefined;

/** The name of a level: the owner's words, or those of this page for three common names. */
export function levelName({ drawn }, level) {
  const { name } = drawn.levels.offered[level];
  const known = `level_${name.replaceAll(" ", "_")}`;
  return hasText(known) ? translate(known) : name;
}

/** How sure anybody can become at this level, in percent, of the answer and of both. */
function certainties({ drawn }, level) {
  const { answer, both } = lossesOf(drawn.levels, level);
  const percent = (epsilon) => formatNumber(attackerCertainty(epsilon));
  return { sure: percent(answer), both: percent(both) };
}

const positions = ({ drawn }) => drawn.levels.offered.map((_, level) => level);

/** The choice as a group of fields, null without levels; what was chosen is kept in the draft. */
export function levelGroup(params, draft) {
  if (!hasLevels(params)) return null;
  const choices = positions(params).map((level) => {
    const [name, text] = [`level-${level}-name`, `level-${level}-meaning`];
    const input = element("input", {
      type: "radio",
      name: "level",
      value: level,
      "aria-labelledby": name,
      "aria-describedby": text,
      change: () => (draft.level = level),
    });
    // Protection is not given up by overlooking a question: the strongest level is preselected.
    input.checked = draft.level === level;
    return element(
      "label",
      { class: "choice level" },
      input,
      element(
        "span",
        {},
        ownerText("strong", levelName(params, level), { id: name }),
        element("span", { id: text }, meaning(params, level)),
      ),
    );
  });
  return element(
    "fieldset",
    { class: "question levels", "aria-describedby": "level-hint" },
    element("legend", {}, say(params, "levelTitle")),
    element("p", { class: "quiet", id: "level-hint" }, translate("levelHint")),
    choices,
  );
}

/** What a level means, in three sentences at most. */
function meaning(params, level) {
  const values = certainties(params, level);
  const last = params.drawn.levels.offered.length - 1;
  const between = level === last ? "levelWeakest" : "levelBetween";
  const { delta } = params.real;
  const { answer } = lossesOf(params.drawn.levels, level);
  return [
    say(params, level === 0 ? "levelStrongest" : between, values),
    isWeak({ epsilon: answer, delta }) ? [" ", element("b", {}, translate("levelWeak"))] : null,
    element("span", { class: "quiet" }, ` ${say(params, "levelBoth", values)}`),
  ];
}

/** The promise of every level in everyday sentences, and its numbers. */
export function levelPromise(params, single) {
  const { levels } = params.drawn;
  const losses = positions(params).map((level) => lossesOf(levels, level));
  const format = (epsilon) => formatNumber(epsilon, { maximumSignificantDigits: 4 });
  const numbers = {
    delta: formatSmall(params.real.delta),
    epsilons: formatList(losses.map(({ answer }) => format(answer))),
    both: formatList(losses.map(({ both }) => format(both))),
  };
  const points = positions(params).map((level) => {
    const values = { name: levelName(params, level), ...certainties(params, level) };
    return ownerText("li", say(params, "promiseLevel", values));
  });
  const sure = formatNumber(attackerCertainty(single ?? 0));
  return {
    sentences: [
      element("p", {}, say(params, "promiseLevels")),
      element("ul", {}, points),
      element("p", {}, translate("promiseLevelOthers")),
      single === null ? null : element("p", {}, translate("promiseLevelSingle", { sure })),
    ],
    numbers: ownerText("p", say(params, "promiseLevelNumbers", numbers), { class: "quiet" }),
  };
}

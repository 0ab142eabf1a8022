// What participants will read about the protection of their answers, from their own page's texts.

import { attackerCertainty, isWeak, NEGLIGIBLE_DELTA } from "./certainty.js";
import { element, ownerText } from "./dom.js";
import {
  currentLanguage, formatNumber, formatOdds, translate, translateFrom,
} from "./language.js";
import { SEVERAL } from "./participant_several_strings.js";
import { LANGUAGES as PARTICIPANT } from "./participant_strings.js";

/**
 * The sentences of the participant's page about a promise {epsilon, delta}, as a quotation. Of
 * several questions, `count`, a single answer loses at most `single`.
 */
export function participantsRead(promise) {
  const { epsilon, delta, count = 1, single = epsilon, levels = null } = promise;
  const isDifferent = (name) => count > 1 && Object.hasOwn(SEVERAL[currentLanguage()], name);
  const quoted = (name, values) =>
    translateFrom(isDifferent(name) ? SEVERAL : PARTICIPANT, name, values);
  const quote = (name, values, settings = {}) => ownerText("p", quoted(name, values), settings);
  const sure = { sure: formatNumber(attackerCertainty(single)) };
  const name = single < epsilon ? "promiseSingle" : "promiseSingleSame";
  const odds = { delta: formatOdds(delta) };
  return element(
    "div",
    { class: "participants" },
    element("h3", {}, translate("participantsTitle")),
    element(
      "blockquote",
      {},
      levels ? [quote("promiseLevels", {}), levelList(levels, quoted)] : [
        quote("promise", { sure: formatNumber(attackerCertainty(epsilon)) }),
        count > 1 ? quote(name, sure) : null,
        isWeak(promise) ? quote("promiseWeak", {}, { class: "warning" }) : null,
      ],
      delta > NEGLIGIBLE_DELTA ? quote("promiseDelta", odds) : null,
    ),
  );
}

/** Every privacy level with how sure anybody can become. */
function levelList(levels, quoted) {
  const percent = (epsilon) => formatNumber(attackerCertainty(epsilon));
  const points = levels.map(({ name, answer, both }) => {
    const values = { name: levelName(name), sure: percent(answer), both: percent(both) };
    return ownerText("li", quoted("promiseLevel", values));
  });
  return element("ul", {}, points);
}

/** The name of a level as participants read it: three common ones are translated. */
export function levelName(name) {
  const known = `level_${name.replaceAll(" ", "_")}`;
  const isKnown = Object.hasOwn(PARTICIPANT[currentLanguage()], known);
  return isKnown ? translateFrom(PARTICIPANT, known) : name;
}

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
  const { epsilon, delta, count = 1, single = epsilon } = promise;
  const isDifferent = (name) => count > 1 && Object.hasOwn(SEVERAL[currentLanguage()], name);
  const quote = (name, values, settings = {}) =>
    ownerText("p", translateFrom(isDifferent(name) ? SEVERAL : PARTICIPANT, name, values), settings);
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
      quote("promise", { sure: formatNumber(attackerCertainty(epsilon)) }),
      count > 1 ? quote(name, sure) : null,
      isWeak(promise) ? quote("promiseWeak", {}, { class: "warning" }) : null,
      delta > NEGLIGIBLE_DELTA ? quote("promiseDelta", odds) : null,
    ),
  );
}

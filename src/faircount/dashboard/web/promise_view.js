// What participants will read about the protection of their answers, from their own page's texts.

import { attackerCertainty, isWeak, NEGLIGIBLE_DELTA } from "./certainty.js";
import { element, ownerText } from "./dom.js";
import { formatNumber, formatOdds, translate, translateFrom } from "./language.js";
import { LANGUAGES as PARTICIPANT } from "./participant_strings.js";

/** The sentences of the participant's page about a promise {epsilon, delta}, as a quotation. */
export function participantsRead(promise) {
  const { epsilon, delta } = promise;
  const quote = (name, values, settings = {}) =>
    ownerText("p", translateFrom(PARTICIPANT, name, values), settings);
  const odds = { delta: formatOdds(delta) };
  return element(
    "div",
    { class: "participants" },
    element("h3", {}, translate("participantsTitle")),
    element(
      "blockquote",
      {},
      quote("promise", { sure: formatNumber(attackerCertainty(epsilon)) }),
      isWeak(promise) ? quote("promiseWeak", {}, { class: "warning" }) : null,
      delta > NEGLIGIBLE_DELTA ? quote("promiseDelta", odds) : null,
    ),
  );
}

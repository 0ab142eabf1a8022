// Sentences about a survey. With several questions some of them are worded differently.

import { currentLanguage, translate, translateFrom } from "./language.js";
import { SEVERAL } from "./several_strings.js";

/** Whether a survey has more than one question. */
export const hasSeveral = ({ questionnaire }) => questionnaire.questions.length > 1;

/** The sentence of this name for a survey, with its {values} filled in. */
export function say(params, name, values = {}) {
  const isDifferent = hasSeveral(params) && Object.hasOwn(SEVERAL[currentLanguage()], name);
  return isDifferent ? translateFrom(SEVERAL, name, values) : translate(name, values);
}

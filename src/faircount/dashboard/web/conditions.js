// The adversary and the condition of a guarantee in the owner's language; the program gives codes
// with values.

import { currentLanguage, translate } from "./language.js";
import { formatValues } from "./parts.js";

/** All clauses of a condition, as part of a sentence; an empty list is no condition at all. */
export function conditionText(clauses) {
  if (!clauses.length) return translate("condition_always");
  const texts = clauses.map(({ code, values }) =>
    translate(`condition_${code}`, formatValues(values)),
  );
  return new Intl.ListFormat(currentLanguage(), { type: "conjunction" }).format(texts);
}

/** The adversary of a guarantee, as part of a sentence. */
export const againstText = ({ against, insiders }) =>
  translate(`against_${against}`, formatValues({ insiders }));

// The texts of questions and answers: which ones are allowed, and their translations. The Python
// client has the same rules.

import { insist } from "./refusal.js";

const MAX_CHARACTERS = 1000;
// What Python's str.strip() removes. JavaScript's trim() differs in U+001C to U+001F, U+0085 and
// U+FEFF.
const BLANK =
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const BLANKS_AROUND = new RegExp(`^${BLANK}+|${BLANK}+$`, "g");
// They mean something of their own: see `skip` and `only_if`.
const RESERVED = ["prefer not to say", "does not apply"];

/** A text without the blanks around it and in composed form, as answers are read. */
export const readLabel = (text) => text.replace(BLANKS_AROUND, "").normalize("NFC");

/** Refuse what people cannot read as a text. */
export function checkText(text) {
  const isText = typeof text === "string" && text.replace(BLANKS_AROUND, "") !== "";
  insist(isText, "malformed", "a text is missing");
  insist(Array.from(text).length <= MAX_CHARACTERS, "malformed", "a text is too long");
  insist(text.isWellFormed(), "malformed", "a text has a character that is not valid Unicode");
}

/** Refuse anything but at least two texts that differ for whoever reads them. */
export function checkItems(items) {
  const areItems = Array.isArray(items) && items.length >= 2;
  insist(areItems, "malformed", "a question needs at least two answers");
  items.forEach(checkText);
  const read = new Set(items.map(readLabel));
  // check: page-distinct-items - which of two equal items tells people apart
  insist(read.size === items.length, "malformed", "answers must differ from each other");
  const isFree = !RESERVED.some((label) => read.has(label));
  insist(isFree, "malformed", "an answer has the name of one that a question adds itself");
}

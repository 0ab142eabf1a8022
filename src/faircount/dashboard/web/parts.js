// Small pieces that every view is made of.

import { element, foreign, quoted } from "./dom.js";
import { hasSentence, say, written } from "./language.js";

/** A button that does something; `words` is the name of a sentence. */
export const button = (words, click, settings = {}) => element("button", { type: "button", click, ...settings }, say(words));

export const buttons = (...made) => element("div", { class: "buttons" }, ...made);

/** A sentence by its name. */
export const sentence = (name, values = {}, settings = {}) => foreign("p", say(name, values), settings);

/**
 * Why something was not done, {words, code, values}: the sentence problem_code says all of it; about_code what it is about,
 * before the program's own words; without either the words stand alone.
 */
export function refusal({ words, code, values }, settings = {}) {
  const said = Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, worded(name, value)]));
  if (hasSentence(`problem_${code}`)) return element("div", settings, sentence(`problem_${code}`, said));
  const about = hasSentence(`about_${code}`) ? sentence(`about_${code}`, said) : null;
  return element("div", settings, about, quoted(words));
}

/** A value as the sentence has it: the name of a field as the form has it, a number in this language. */
const worded = (name, value) => (name === "field" ? say(`field_${value}`) : typeof value === "number" ? written(value) : value);

/** What a program refuses, as something to throw. */
export class Refused extends Error {
  constructor(said) {
    super(said.words);
    this.said = said;
  }
}

/** Of anything that was thrown: {words, code, values}. */
export const saidBy = (problem) => problem.said ?? { words: problem.message, code: "", values: {} };

/** A section with a heading. */
export const section = (title, ...content) => element("section", {}, element("h2", {}, say(title)), ...content);

/** A table that can be scrolled by keyboard where it is too wide; heads are names of sentences. */
export function table(caption, heads, rows) {
  const head = element("tr", {}, heads.map((name) => element("th", { scope: "col" }, say(name))));
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, rows));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

export const row = (head, ...cells) =>
  element("tr", {}, element("th", { scope: "row" }, head), cells.map((each) => element("td", {}, each)));

/** A place on the page that is filled again only when what it shows has changed, so that nobody loses their place. */
export function place(fill) {
  const box = element("div");
  let shown = "";
  const bring = (...given) => {
    const now = JSON.stringify(given);
    if (now !== shown) refill(box, [fill(...given)].flat().filter((each) => each !== null));
    shown = now;
  };
  return { box, bring };
}

/** Put something else into the box; whoever was at a button there is at the same one again, or at the heading. */
function refill(box, content) {
  const held = box.contains(document.activeElement) ? document.activeElement.textContent : null;
  box.replaceChildren(...content);
  if (held === null) return;
  const same = [...box.querySelectorAll("button, summary")].find((each) => each.textContent === held);
  (same ?? document.querySelector("h1")).focus({ preventScroll: true });
}

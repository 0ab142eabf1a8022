// Small pieces that every view is made of.

import { element, foreign } from "./dom.js";
import { say } from "./language.js";

/** A button that does something; `words` is the name of a sentence. */
export const button = (words, click, settings = {}) => element("button", { type: "button", click, ...settings }, say(words));

export const buttons = (...made) => element("div", { class: "buttons" }, ...made);

/** A sentence by its name. */
export const sentence = (name, values = {}, settings = {}) => foreign("p", say(name, values), settings);

/** Words of a program or a server, which are in English. */
export const quoted = (words, settings = {}) => element("p", { lang: "en", dir: "auto", ...settings }, words);

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

// The language of a page: which one is spoken, and how its sentences, numbers, times and directions are written.
// The sentences themselves are in one file for each page (strings.js).

import { element } from "./dom.js";

let known = {};
let current = "en";

/** Give the page its sentences: {code: {language, direction, name of a sentence: sentence}}; speak the browser's language. */
export function learn(sentences) {
  known = sentences;
  speak(navigator.languages ?? [navigator.language]);
}

/** Speak the first of these languages that the page knows. */
function speak(wanted) {
  current = wanted.map((each) => each.slice(0, 2)).find((each) => Object.hasOwn(known, each)) ?? "en";
  document.documentElement.lang = current;
  document.documentElement.dir = known[current].direction;
}

/** The language that is spoken, and {code: its own name} of all. */
export const spoken = () => current;
export const languages = () => Object.fromEntries(Object.entries(known).map(([code, { language }]) => [code, language]));

/** Whether there is a sentence of this name. */
export const hasSentence = (name) => Object.hasOwn(known[current], name);

/** A sentence in the current language; a number and its % stay on one line. */
export function say(name, values = {}) {
  const filled = known[current][name].replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
  return filled.replaceAll(" %", "\u00a0%");
}

/** A number as the current language writes it. */
export const written = (value, options = {}) => new Intl.NumberFormat(current, options).format(value);

/** A share as a percentage, without the sign. */
export const percent = (share) => written(100 * share, { maximumFractionDigits: 1, signDisplay: "negative" });

const SMALLEST_STATED = 1e-30; // the generator of all noise is not known to be good to more digits than these

/** A small number with two digits, never rounded down. */
export function small(value) {
  if (value === 0) return "0";
  const [digits, power] = Math.max(value, SMALLEST_STATED).toExponential(12).split("e");
  return `${written(Math.ceil(Number(digits) * 10 - 1e-9) / 10)}e${power}`;
}

/** A day and time, from its standard form. */
export const moment = (text, dateStyle = "long") =>
  new Intl.DateTimeFormat(current, { dateStyle, timeStyle: "short" }).format(new Date(text));

/** Put the title on the page, and a choice of languages above it; `render` shows the same again in another one. */
export function headPage(render) {
  const head = () => {
    document.title = say("title");
    document.querySelector("header").replaceChildren(choice((code) => (speak([code]), head(), render())));
  };
  head();
}

function choice(change) {
  const options = Object.entries(languages()).map(([code, name]) =>
    element("option", { value: code, lang: code, selected: code === current }, name),
  );
  const select = element("select", { id: "language", change: (event) => change(event.target.value) }, options);
  return element("label", {}, `${say("chooseLanguage")} `, select);
}

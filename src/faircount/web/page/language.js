// The language of a page: which one is selected, and how sentences, numbers and times are written
// in it. The sentences themselves are in one file per page (strings.js).

import { element } from "./dom.js";

let known = {};
let current = "en";
let wanted = []; // languages that the reader prefers, the first one most

/**
 * Give the page its sentences, {code: {language, direction, name of a sentence: sentence}}, and
 * select the browser's language.
 */
export function setLanguages(sentences) {
  known = sentences;
  selectLanguage(navigator.languages ?? [navigator.language]);
}

/** Select the first of these languages that the page has; English if it has none of them. */
function selectLanguage(preferred) {
  wanted = preferred;
  const codes = wanted.map((tag) => tag.slice(0, 2));
  current = codes.find((code) => Object.hasOwn(known, code)) ?? "en";
  document.documentElement.lang = current;
  document.documentElement.dir = known[current].direction;
}

/** The code of the selected language. */
export const currentLanguage = () => current;

/** Languages in which the reader wants texts of others: the preferred ones, then the page's own. */
export const wantedLanguages = () => [...wanted, current];

/** {code: name in that language} of all languages. */
export const languages = () =>
  Object.fromEntries(Object.entries(known).map(([code, { language }]) => [code, language]));

/** Whether there is a sentence of this name. */
export const hasText = (name) => Object.hasOwn(known[current], name);

/** The sentence of this name in the selected language, with its {values} filled in. */
export const translate = (name, values = {}) => translateFrom(known, name, values);

/** The same from the sentences of another page, which has the same languages. */
export function translateFrom(sentences, name, values = {}) {
  const filled = sentences[current][name].replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
  return filled.replaceAll(" %", "\u00a0%"); // a number and its percent sign stay on one line
}

/** A number in the notation of the selected language. */
export const formatNumber = (value, options = {}) =>
  new Intl.NumberFormat(current, options).format(value);

/** Several texts as one: "a, b and c". */
export const formatList = (texts) => new Intl.ListFormat(current).format(texts);

/** What stands before the fraction of a number in the selected language. */
export const decimalPoint = () =>
  new Intl.NumberFormat(current).formatToParts(0.5).find((part) => part.type === "decimal").value;

/** A fraction as a percentage, without the percent sign. */
export const formatPercent = (share, decimals = 1) =>
  formatNumber(100 * share, {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
    signDisplay: "negative",
  });

const MAX_DECIMALS = 6;
const EXACT_DECIMALS = 2;

/**
 * Decimal places of all percentages of a table whose rows have intervals {low, high}: as many as
 * the widest one allows, so that shares can be compared and no accuracy is suggested.
 */
export function decimalsFor(rows) {
  const half = Math.max(...rows.map(({ low, high }) => high - low)) / 2;
  if (half <= 0) return 1;
  return Math.min(Math.max(1, -Math.floor(Math.log10(100 * half))), MAX_DECIMALS);
}

/**
 * Decimal places of a mean with an interval {low, high}: one more than its half-width begins at, as
 * in Python, and the same for the estimate and both ends.
 */
export function decimalsForMean({ low, high }) {
  const tenth = (high - low) / 20;
  if (tenth <= 0) return EXACT_DECIMALS;
  return Math.min(Math.max(0, -Math.floor(Math.log10(tenth))), MAX_DECIMALS);
}

// The random generator behind all noise is not known to be good to a smaller probability than this.
const SMALLEST_STATED = 1e-30;

/** A small probability with two digits, rounded up: a promise is never shown better than it is. */
export function formatSmall(value) {
  if (value === 0) return "0";
  const [digits, power] = Math.max(value, SMALLEST_STATED).toExponential(12).split("e");
  return `${formatNumber(Math.ceil(Number(digits) * 10 - 1e-9) / 10)}e${power}`;
}

/** x in "1 in x" for a small probability, rounded so that the probability is not understated. */
export const formatOdds = (probability) =>
  formatNumber(Math.floor(1 / probability), {
    maximumSignificantDigits: 3,
    roundingMode: "floor",
  });

/** Date and time, from ISO 8601. */
export const formatTime = (text, dateStyle = "long") =>
  new Intl.DateTimeFormat(current, { dateStyle, timeStyle: "short" }).format(new Date(text));

/** Set the title and the choice of languages; `render` shows the page again after a change. */
export function setUpHeader(render) {
  const update = () => {
    document.title = translate("title");
    document.querySelector("header").replaceChildren(languageChoice(change));
  };
  const change = (code) => {
    selectLanguage([code]);
    update();
    render();
  };
  update();
}

function languageChoice(change) {
  const options = Object.entries(languages()).map(([code, name]) =>
    element("option", { value: code, lang: code, selected: code === current }, name),
  );
  const listen = (event) => change(event.target.value);
  const select = element("select", { id: "language", change: listen }, options);
  return element("label", {}, `${translate("chooseLanguage")} `, select);
}

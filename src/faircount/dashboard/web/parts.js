// Building blocks of every view.

import { element, englishText, ownerText } from "./dom.js";
import { formatNumber, hasText, translate } from "./language.js";

/** A button; `label` is the name of a text. */
export const button = (label, click, settings = {}) =>
  element("button", { type: "button", click, ...settings }, translate(label));

export const buttons = (...made) => element("div", { class: "buttons" }, ...made);

/** A paragraph with the text of this name. */
export const sentence = (name, values = {}, settings = {}) =>
  ownerText("p", translate(name, values), settings);

/**
 * An error {message, code, values} in the owner's language. The text problem_code says everything;
 * about_code introduces the program's own English message; without either the message stands alone.
 * A server's rejection has a cause: remote_cause. If it is about one of several questions, the
 * number of that question comes first.
 */
export function problemMessage({ message, code, values }, settings = {}) {
  const shown = formatValues(values ?? {}, formatProblemValue);
  if (values?.question !== undefined) {
    const { question: _, ...others } = values;
    const about = sentence("problemQuestion", { question: shown.question });
    return element("div", settings, about, problemMessage({ message, code, values: others }));
  }
  if (code === "remote" && hasText(`remote_${shown.cause}`)) {
    const cause = sentence(`remote_${shown.cause}`, shown);
    return element("div", settings, sentence("remote", shown), cause);
  }
  if (hasText(`problem_${code}`)) {
    return element("div", settings, sentence(`problem_${code}`, shown));
  }
  const about = hasText(`about_${code}`) ? sentence(`about_${code}`, shown) : null;
  return element("div", settings, about, englishText(message));
}

/** The same object with formatted values; by default numbers in the selected language. */
export const formatValues = (values, format = (_, value) => formatIfNumber(value)) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, format(name, value)]));

const formatIfNumber = (value) => (typeof value === "number" ? formatNumber(value) : value);

/** A field by its label in the form, a server by its role. */
function formatProblemValue(name, value) {
  if (name === "field") return translate(`field_${value}`);
  if (name === "server" && /S1|coordinator/i.test(value)) return translate("coordinator");
  if (name === "server" && /S2|aggregator/i.test(value)) return translate("aggregator");
  return formatIfNumber(value);
}

/** An error payload of the dashboard's program, as something to throw. */
export class DashboardError extends Error {
  constructor(payload) {
    super(payload.message);
    this.payload = payload;
  }
}

/** The payload {message, code, values} of anything that was thrown. */
export const payloadOf = (problem) =>
  problem.payload ?? { message: problem.message, code: "", values: {} };

/** A section with a heading. */
export const section = (title, ...content) =>
  element("section", {}, element("h2", {}, translate(title)), ...content);

/** Technical matter that is shown to those who open it; `summary` is the name of a text. */
export const details = (summary, ...content) =>
  element("details", {}, element("summary", {}, translate(summary)), ...content);

/**
 * A table that can be scrolled by keyboard if it is too wide; headings are names of texts. `name`
 * tells it apart where several tables of a page have the same caption.
 */
export function table(caption, headings, rows, name = caption) {
  const cells = headings.map((name) => element("th", { scope: "col" }, translate(name)));
  const made = element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, cells)),
    element("tbody", {}, rows),
  );
  const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": name };
  return element("div", box, made);
}

export const row = (heading, ...cells) =>
  element(
    "tr",
    {},
    element("th", { scope: "row" }, heading),
    cells.map((cell) => element("td", {}, cell)),
  );

/**
 * A part of the page that is filled again only if its values have changed, so that nobody loses the
 * place: {box, update}.
 */
export function updatable(fill) {
  const box = element("div");
  let shown = "";
  const update = (...values) => {
    const now = JSON.stringify(values);
    if (now === shown) return;
    shown = now;
    refill(box, [fill(...values)].flat().filter((child) => child !== null));
  };
  return { box, update };
}

/** Replace the content of the box; a button with the focus keeps it, or the heading gets it. */
function refill(box, content) {
  const focused = box.contains(document.activeElement) ? document.activeElement.textContent : null;
  box.replaceChildren(...content);
  if (focused === null) return;
  const controls = [...box.querySelectorAll("button, summary")];
  const same = controls.find((control) => control.textContent === focused);
  (same ?? document.querySelector("h1")).focus({ preventScroll: true });
}

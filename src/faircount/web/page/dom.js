// Elements from plain values. Text is only ever set as text: nothing in a survey is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const MILLISECONDS_TO_ANNOUNCE = 2000;

/**
 * An element. `settings` has attributes, and functions as listeners under the name of their event.
 */
export const element = (tag, settings = {}, ...children) =>
  build(document.createElement(tag), settings, children);

/** The same for drawings. */
export const svgElement = (tag, settings = {}, ...children) =>
  build(document.createElementNS(SVG, tag), settings, children);

function build(made, settings, children) {
  for (const [name, value] of Object.entries(settings)) {
    const isAbsent = value === false || value === null || value === undefined;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (!isAbsent) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...present(children));
  return made;
}

/** Children in one list, without null and undefined; lists may be nested. */
const present = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined);

/** Text that the survey's owner may have written, in any language and direction. */
export const ownerText = (tag, text, settings = {}) =>
  element(tag, { dir: "auto", ...settings }, String(text));

/** Text of a program or a server, which is in English; the mark tells screen readers so. */
export const englishText = (text, settings = {}) =>
  element("p", { lang: "en", dir: "auto", ...settings }, text);

/** Replace the content of the page, and move the focus to the new heading. */
export function show(...content) {
  const main = document.querySelector("main");
  main.replaceChildren(...present(content));
  const heading = main.querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    announce(heading.textContent);
  }
  window.scrollTo(0, 0);
}

/**
 * Have a screen reader say something. Some readers are silent when a heading gets the focus in
 * place of a button that is gone.
 */
export function announce(text) {
  const region = document.getElementById("announced");
  region.textContent = text;
  const clear = () => region.textContent === text && region.replaceChildren();
  setTimeout(clear, MILLISECONDS_TO_ANNOUNCE);
}

/** Let the browser save something as a file. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// Elements from plain values. Text is only ever set as text: nothing that a survey says is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `settings`: attributes, and functions as listeners under the name of their event. */
export const element = (tag, settings = {}, ...children) => filled(document.createElement(tag), settings, children);

/** The same for drawings. */
export const drawn = (tag, settings = {}, ...children) => filled(document.createElementNS(SVG, tag), settings, children);

function filled(made, settings, children) {
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...present(children));
  return made;
}

/** Children in one list, without those that are not there. */
const present = (children) => children.flat().filter((child) => child !== null && child !== undefined);

/** Words of a survey's owner: in whatever language and direction they are. */
export const foreign = (tag, text, settings = {}) => element(tag, { dir: "auto", ...settings }, String(text));

/** Words of a program or a server, which are in English, and are marked so for whoever has them read aloud. */
export const quoted = (words, settings = {}) => element("p", { lang: "en", dir: "auto", ...settings }, words);

const MILLISECONDS_TO_HEAR = 2000;

/** Put a new content on the page, and the reader's place at its heading. */
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

/** Have a screen reader say something: some say nothing about a heading that takes the place of a button with the focus. */
function announce(words) {
  const region = document.getElementById("announced");
  region.textContent = words;
  setTimeout(() => region.textContent === words && region.replaceChildren(), MILLISECONDS_TO_HEAR);
}

/** Let the browser save something as a file. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A question before something that cannot be undone.

import { element } from "./dom.js";

/** Ask in a dialog; `act` is called after yes. The safe answer comes first. */
export function askFirst({ question, yes, no }, act) {
  const answer = (words, settings, then) =>
    element("button", { type: "button", ...settings, click: () => (dialog.close(), then()) }, words);
  const dialog = element(
    "dialog",
    { "aria-labelledby": "dialog-question", close: () => dialog.remove() },
    element("p", { id: "dialog-question" }, question),
    element("div", { class: "buttons" }, answer(no, { class: "main", autofocus: true }, () => {}), answer(yes, {}, act)),
  );
  document.body.append(dialog);
  dialog.showModal();
}

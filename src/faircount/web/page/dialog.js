// Asks for confirmation before something that cannot be undone.

import { element } from "./dom.js";

/** Ask in a dialog; `act` runs after "yes". The safe choice comes first and has the focus. */
export function confirmFirst({ question, yes, no }, act) {
  const button = (label, settings, then) => {
    const click = () => {
      dialog.close();
      then();
    };
    return element("button", { type: "button", ...settings, click }, label);
  };
  const dialog = element(
    "dialog",
    { "aria-labelledby": "dialog-question", close: () => dialog.remove() },
    element("p", { id: "dialog-question" }, question),
    element(
      "div",
      { class: "buttons" },
      button(no, { class: "main", autofocus: true }, () => {}),
      button(yes, {}, act),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

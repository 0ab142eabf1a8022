// Every survey in the folder with its status.

import { element, ownerText, show } from "./dom.js";
import { translate } from "./language.js";
import { button, buttons, formatValues, problemMessage, sentence, updatable } from "./parts.js";

/** Show the list; returns a function that updates it. */
export function showList(actions) {
  const list = updatable((surveys) => surveyList(surveys, actions));
  const alerts = updatable((surveys) => surveys.flatMap(warnings));
  alerts.box.setAttribute("role", "status");
  list.box.append(sentence("loading", {}, { role: "status" }));
  show(
    element("h1", {}, translate("listTitle")),
    list.box,
    alerts.box,
    buttons(button("newSurvey", actions.create, { class: "main" })),
  );
  return (surveys) => {
    list.update(surveys);
    alerts.update(surveys);
  };
}

function surveyList(surveys, actions) {
  if (!surveys.length) {
    return [sentence("listEmpty"), sentence("listEmptyNext", {}, { class: "quiet" })];
  }
  const cards = surveys.map((survey) => card(survey, actions));
  return element("ul", { class: "cards", "aria-label": translate("listCaption") }, cards);
}

function card(survey, actions) {
  const { name, question, questions, status, last } = survey;
  const { responses, invited } = status ?? last ?? {};
  const isKnown = invited !== undefined;
  const answers = isKnown ? translate("listAnswers", formatValues({ responses, invited })) : null;
  return element(
    "li",
    {},
    ownerText("button", name, { type: "button", class: "name", click: () => actions.open(name) }),
    ownerText("span", question, { class: "grows" }),
    questions.length > 1
      ? element("span", { class: "quiet" }, translate("listQuestions", { count: questions.length }))
      : null,
    element("span", { class: "phase" }, phaseText(survey)),
    element("span", { class: "quiet" }, answers),
  );
}

function phaseText({ status, last, deleted, problem, invited }) {
  if (status) return translate(`phase_${status.phase}`);
  if (deleted) return translate("stateDeleted");
  if (problem && last) return translate("stateLast", { phase: translate(`phase_${last.phase}`) });
  if (problem) return translate("stateUnknown");
  return translate(invited ? "loading" : "stateNotInvited");
}

function warnings({ name, too_few: few, problem }) {
  const made = [];
  if (few) {
    made.push(sentence("listTooFew", { name, ...formatValues(few) }, { class: "warning" }));
  }
  if (problem) {
    const content = [ownerText("p", name), problemMessage(problem)];
    made.push(element("div", { class: "warning" }, content));
  }
  return made;
}

// Every survey in the folder, with where it stands.

import { element, foreign, show } from "./dom.js";
import { say, written } from "./language.js";
import { button, buttons, place, refusal, sentence } from "./parts.js";

/** Show the list; returns a function that brings it up to date. */
export function showList(actions) {
  const list = place((surveys) => listed(surveys, actions));
  const warned = place((surveys) => surveys.flatMap(warnings));
  warned.box.setAttribute("role", "status");
  list.box.append(sentence("loading", {}, { role: "status" }));
  show(element("h1", {}, say("listTitle")), list.box, warned.box, buttons(button("newSurvey", actions.create, { class: "main" })));
  return (surveys) => (list.bring(surveys), warned.bring(surveys));
}

function listed(surveys, actions) {
  if (!surveys.length) return [sentence("listEmpty"), sentence("listEmptyNext", {}, { class: "quiet" })];
  return element("ul", { class: "cards", "aria-label": say("listCaption") }, surveys.map((each) => card(each, actions)));
}

function card(survey, actions) {
  const { name, question, status } = survey;
  const answers = status ? say("listAnswers", { users: written(status.users), people: written(status.people) }) : null;
  return element(
    "li",
    {},
    foreign("button", name, { type: "button", class: "name", click: () => actions.open(name) }),
    foreign("span", question, { class: "grows" }),
    element("span", { class: "state" }, stateOf(survey)),
    element("span", { class: "quiet" }, answers),
  );
}

function stateOf({ status, problem, invited }) {
  if (status) return say(`state_${status.state}`);
  return say(problem ? "stateUnknown" : invited ? "loading" : "stateNotInvited");
}

function warnings({ name, too_few: few, problem }) {
  return [
    few ? sentence("listTooFew", { name, ...few }, { class: "warning" }) : null,
    problem ? element("div", { class: "warning" }, foreign("p", name), refusal(problem)) : null,
  ];
}

// One survey: what is asked, where it stands, what can be done, the result, the budget, the invitations.

import { askFirst } from "./dialog.js";
import { OWNER_ENDED } from "./endings.js";
import { element, foreign, show } from "./dom.js";
import { budgetOf } from "./budget_view.js";
import { invitationsOf } from "./invitations_view.js";
import { say, small, written } from "./language.js";
import { button, buttons, place, refusal, sentence } from "./parts.js";
import { operators, progress } from "./progress_view.js";
import { resultOf } from "./result_view.js";

const DAY = 86400;

/** Show the survey; returns a function that brings what has changed up to date, and leaves the reader's place alone. */
export function showSurvey(name, actions) {
  const about = place(introduction);
  const warning = place(warnings);
  const standing = progress();
  const control = place((status) => (status ? controls(status, actions) : null));
  const result = place((found) => (found ? resultOf(found, actions) : null));
  const budget = place((found, population) => (found ? budgetOf(found, population) : null));
  const invitations = place((survey, over) => invitationsOf(survey, over, actions));
  const places = [about, warning, result, standing, control, budget, invitations].map(({ box }) => box);
  warning.box.setAttribute("role", "alert");
  about.box.append(sentence("loading", {}, { role: "status" }));
  show(buttons(button("toList", actions.back)), foreign("h1", name), ...places);
  return ({ survey, result: found, at_s2: second, budget: spent }) => {
    const { status, too_few: few, problem, ...facts } = survey;
    about.bring(facts);
    warning.bring(few, problem);
    standing.bring(survey, second);
    control.bring(status && { state: status.state, waits_for: status.waits_for, attempt: status.attempt });
    result.bring(found);
    budget.bring(spent, survey.population);
    invitations.bring({ invited: survey.invited, n_max: survey.n_max }, found !== null);
  };
}

function introduction(survey) {
  const numbers = { mechanism: survey.mechanism, epsilon: written(survey.epsilon), delta: small(survey.delta) };
  return [
    foreign("p", survey.question, { class: "answer" }),
    sentence("surveyServers", operators(survey), { class: "quiet" }),
    sentence("surveyPlanned", numbers, { class: "quiet" }),
    sentence(survey.proven ? "adviceProven" : "adviceUnproven", {}, { class: "quiet" }),
  ];
}

function warnings(few, problem) {
  return [
    few ? sentence("tooFew", { expected: written(few.expected), minimum: written(few.minimum) }, { class: "warning" }) : null,
    problem ? sentence("s1Silent", {}, { class: "warning" }) : null,
    problem ? refusal(problem, { class: "quiet" }) : null,
  ];
}

/** What the owner can tell S1 in this state; what cannot be undone is asked first. */
function controls({ state, waits_for: whom, attempt }, actions) {
  const first = (name, act) => () => askFirst({ question: say(`${name}Sure`), yes: say(`${name}Yes`), no: say("no") }, act);
  const made = {
    owner: [button("open", () => actions.tell("open"), { class: "main" })],
    people: [
      button("close", first("close", () => actions.tell("close", { state, attempt }))),
      button("extend", () => actions.tell("extend", { seconds: DAY })),
    ],
  }[whom];
  const abort = whom === "nobody" ? null : button("abort", first("abort", () => actions.tell("abort", { reason: OWNER_ENDED })));
  return made || abort ? buttons(made, abort) : null;
}

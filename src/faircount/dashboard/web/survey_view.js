// One survey: the question, the progress, what the owner can do, the result, the budget,
// invitations.

import { budgetSection } from "./budget_view.js";
import { confirmFirst } from "./dialog.js";
import { ownerText, show } from "./dom.js";
import { invitationsSection } from "./invitations_view.js";
import { formatNumber, formatSmall, translate } from "./language.js";
import { button, buttons, formatValues, problemMessage, sentence, updatable } from "./parts.js";
import { progressSection } from "./progress_view.js";
import { resultSection } from "./result_view.js";

const SECONDS_PER_DAY = 86400;

/** Show the survey; returns a function that updates what has changed and leaves the focus alone. */
export function showSurvey(name, actions) {
  const about = updatable(introduction);
  const alerts = updatable(warnings);
  const result = updatable((found) => (found ? resultSection(found, actions) : null));
  const progress = progressSection();
  const control = updatable((status) => (status ? controls(status, actions) : null));
  const budget = updatable((spent, group) => (spent ? budgetSection(spent, group) : null));
  const invitations = updatable((survey, isOver) => invitationsSection(survey, isOver, actions));
  const parts = [about, alerts, result, progress, control, budget, invitations];
  alerts.box.setAttribute("role", "alert");
  about.box.append(sentence("loading", {}, { role: "status" }));
  show(
    buttons(button("toList", actions.back)),
    ownerText("h1", name),
    ...parts.map(({ box }) => box),
  );
  return ({ survey, result: found, aggregator, budget: spent }) => {
    const { status, too_few: few, problem, ...facts } = survey;
    const { state, waits_for, attempt } = status ?? {};
    about.update(facts);
    alerts.update(few, problem);
    progress.update(survey, aggregator);
    control.update(status && { state, waits_for, attempt });
    result.update(found);
    budget.update(spent, survey.population);
    invitations.update({ invited: survey.invited, n_max: survey.n_max }, found !== null);
  };
}

function introduction(survey) {
  const operators = {
    s1: survey.s1 || translate("noOperator"),
    s2: survey.s2 || translate("noOperator"),
    s1Key: survey.fingerprints[0],
    s2Key: survey.fingerprints[1],
  };
  const numbers = {
    mechanism: survey.mechanism,
    epsilon: formatNumber(survey.epsilon),
    delta: formatSmall(survey.delta),
  };
  return [
    ownerText("p", survey.question, { class: "answer" }),
    sentence("surveyServers", operators, { class: "quiet" }),
    survey.one_operator ? sentence("surveyOneOperator", {}, { class: "warning" }) : null,
    sentence("surveyPlanned", numbers, { class: "quiet" }),
    sentence(survey.proven ? "adviceProven" : "adviceUnproven", {}, { class: "quiet" }),
  ];
}

function warnings(few, problem) {
  return [
    few ? sentence("tooFew", formatValues(few), { class: "warning" }) : null,
    problem ? sentence("coordinatorSilent", {}, { class: "warning" }) : null,
    problem ? problemMessage(problem, { class: "quiet" }) : null,
  ];
}

/** What the owner can request now; a dialog comes before anything that cannot be undone. */
function controls({ state, waits_for: whom, attempt }, actions) {
  if (whom === "nobody") return null;
  const confirmed = (name, request, values) => {
    const texts = {
      question: translate(`${name}Sure`),
      yes: translate(`${name}Yes`),
      no: translate("no"),
    };
    const act = () => actions.request(request, values);
    return button(name, () => confirmFirst(texts, act));
  };
  const extend = () => actions.request("extend", { seconds: SECONDS_PER_DAY });
  const made = {
    owner: [button("open", () => actions.request("open"), { class: "main" })],
    // State and attempt say which phase the owner saw: a later one is not closed by accident.
    people: [confirmed("close", "close", { state, attempt }), button("extend", extend)],
  }[whom];
  return buttons(made, confirmed("abort", "abort", { reason: "" }));
}

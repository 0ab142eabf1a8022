// One survey: the question, the progress, what the owner can do, the result, the budget,
// invitations.

import { budgetSection } from "./budget_view.js";
import { confirmFirst } from "./dialog.js";
import { element, englishText, ownerText, show } from "./dom.js";
import { invitationsSection } from "./invitations_view.js";
import { formatNumber, formatSmall, translate } from "./language.js";
import { mailSection } from "./mail_view.js";
import {
  button, buttons, details, formatValues, problemMessage, section, sentence, updatable,
} from "./parts.js";
import { progressSection } from "./progress_view.js";
import { participantsRead } from "./promise_view.js";
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
  const mail = mailSection(actions.mail);
  const label = updatable((promise) => labelSection(promise, actions));
  const more = updatable((facts) => moreSection(facts, actions));
  const technical = updatable(technicalDetails);
  const parts = [
    about, alerts, result, progress, control, budget, invitations, mail, label, more, technical,
  ];
  alerts.box.setAttribute("role", "alert");
  about.box.append(sentence("loading", {}, { role: "status" }));
  show(
    buttons(button("toList", actions.back)),
    ownerText("h1", name),
    ...parts.map(({ box }) => box),
  );
  return ({ survey, result: found, mail: mails, aggregator, budget: spent }) => {
    const { status, last, too_few: few, problem, ...facts } = survey;
    const { phase, waits_for, attempt } = status ?? {};
    about.update(facts);
    technical.update(facts);
    // A result that the folder keeps needs no server any more.
    alerts.update(few, survey.ended ? null : problem);
    progress.update(survey, aggregator);
    control.update(status && { phase, waits_for, attempt });
    result.update(found);
    budget.update(spent, survey.population);
    const isOver = found !== null;
    const { invited, interrupted, n_max } = survey;
    invitations.update({ invited, interrupted, n_max }, isOver);
    const isAnswerable = !status || ["owner", "people"].includes(status.waits_for);
    mail.update(isOver || !isAnswerable ? null : mails, status);
    label.update(promiseOf(survey));
    more.update({ isOver, deleted: survey.deleted, population: survey.population });
  };
}

/** What participants read about the survey's promise, for all answers and for a single one. */
const promiseOf = ({ epsilon, delta, levels, questions, single_epsilon: single }) => ({
  epsilon, delta, levels, single, count: questions.length,
});

/** What the owner must know first: the question, and what limits the promise. */
function introduction(survey) {
  return [
    ownerText("p", survey.question, { class: "answer" }),
    survey.questions.length > 1 ? questionList(survey.questions) : null,
    survey.one_operator ? sentence("surveyOneOperator", {}, { class: "warning" }) : null,
    survey.deleted ? sentence("surveyDeleted", {}, { class: "warning" }) : null,
  ];
}

const questionList = (questions) =>
  element("ol", { class: "asked" }, questions.map((text) => ownerText("li", text)));

/** Operators, keys and mechanism, for those who ask for them. */
function technicalDetails(survey) {
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
  return details(
    "detailsTitle",
    sentence("surveyServers", operators, { class: "quiet" }),
    sentence("surveyPlanned", numbers, { class: "quiet" }),
    sentence(survey.proven ? provenText(survey) : "adviceUnproven", {}, { class: "quiet" }),
  );
}

const provenText = ({ questions }) =>
  questions.length > 1 ? "adviceProvenSheet" : "adviceProven";

function warnings(few, problem) {
  return [
    few ? sentence("tooFew", formatValues(few), { class: "warning" }) : null,
    problem ? sentence(silenceText(problem), {}, { class: "warning" }) : null,
    problem ? silenceReason(problem) : null,
  ];
}

const isUnreachable = ({ code }) => code === "unreachable";

const silenceText = (problem) => (isUnreachable(problem) ? "coordinatorAway" : "coordinatorSilent");

/** That the coordinator is away was said already; its address and the error are for operators. */
const silenceReason = (problem) =>
  isUnreachable(problem)
    ? details("waitsDetails", englishText(problem.message, { class: "quiet" }))
    : problemMessage(problem, { class: "quiet" });

/** The document that says what the survey promises, to publish or to keep. */
function labelSection(promise, actions) {
  return section(
    "labelTitle",
    participantsRead(promise),
    sentence("labelText", {}, { class: "quiet" }),
    buttons(
      button("labelPage", () => actions.save("label.html")),
      button("labelJson", () => actions.save("label.json")),
      button("labelYaml", () => actions.save("label.yaml")),
    ),
  );
}

/** What comes after a survey, or beside it. */
function moreSection({ isOver, deleted, population }, actions) {
  const texts = {
    question: translate("deleteSure"),
    yes: translate("deleteYes"),
    no: translate("no"),
  };
  const remove = () => confirmFirst(texts, () => actions.request("delete"));
  return section(
    "moreTitle",
    sentence(population ? "moreRepeat" : "moreCopy", {}, { class: "quiet" }),
    buttons(
      population ? button("repeat", actions.repeat) : null,
      button("copy", actions.copy),
      isOver && !deleted ? button("delete", remove) : null,
    ),
  );
}

/** What the owner can request now; a dialog comes before anything that cannot be undone. */
function controls({ phase, waits_for: whom, attempt }, actions) {
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
    // Phase and attempt say which phase the owner saw: a later one is not closed by accident.
    people: [confirmed("close", "close", { phase, attempt }), button("extend", extend)],
  }[whom];
  return buttons(made, confirmed("abort", "abort", { reason: "" }));
}

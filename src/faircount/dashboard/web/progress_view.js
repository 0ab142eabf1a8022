// The progress of a survey: its phases, the number of answers, what happens next, and rejections.

import { element, englishText } from "./dom.js";
import { formatNumber, formatTime, translate } from "./language.js";
import { formatValues, problemMessage, row, section, sentence, table, updatable } from "./parts.js";

/**
 * {box, update}: `update` takes the survey and the aggregator's status, null while it is unknown.
 */
export function progressSection() {
  const phases = updatable((survey) => [phaseList(survey), meter(survey.status)]);
  // Stays on the page while its text changes: screen readers announce it only then.
  const answers = updatable(answerCount);
  const rest = updatable((survey, aggregator) => {
    if (!survey.status) return null;
    return [
      missingAnswers(survey.status),
      withdrawnAnswers(survey.status),
      nextSteps(survey.status, aggregator),
      rejections(survey.status, aggregator),
    ];
  });
  answers.box.setAttribute("role", "status");
  const update = (survey, aggregator) => {
    const { status } = survey;
    const { state, users, people } = status ?? {};
    phases.update(survey);
    answers.update(status && { state, users, people });
    rest.update(survey, aggregator);
  };
  return { box: section("progressTitle", phases.box, answers.box, rest.box), update };
}

/** The phases in order; the current one is marked in words, not by colour alone. */
function phaseList({ phases, status }) {
  const current = status ? status.phase_index : 0;
  const entries = phases.map((phase, at) => {
    const label = translate(phase === "draft" ? "phaseDraft" : `phase_${phase}`);
    const mark = at === current ? element("span", { class: "mark" }, translate("phaseNow")) : null;
    return element("li", phaseSettings(at, current, status), element("span", {}, label), mark);
  });
  const isAborted = status?.phase === "aborted";
  return element(
    "div",
    {},
    element("ol", { class: "phases", "aria-label": translate("phasesLabel") }, entries),
    isAborted ? sentence("phase_aborted", {}, { class: "warning" }) : null,
  );
}

function phaseSettings(at, current, status) {
  if (at === current) return { "aria-current": "step", class: "now" };
  const isDone = at < current || status?.phase === "published";
  return isDone ? { class: "done" } : {};
}

function meter(status) {
  if (!status) return null;
  const most = status.invited || 1;
  const mark = element("span", { class: "minimum" });
  mark.style.insetInlineStart = `${(100 * Math.min(status.minimum, most)) / most}%`;
  const label = translate("answersLabel");
  const bar = element("progress", { max: most, value: status.responses, "aria-label": label });
  return element("div", { class: "meter" }, bar, mark);
}

/** The number of answers; before it, for those who cannot see the phases, the current one. */
function answerCount(status) {
  if (!status) return null;
  const { responses, invited } = status;
  return [
    element("p", { class: "unseen" }, translate(`phase_${status.phase}`)),
    sentence("answers", formatValues({ responses, invited }), { class: "figure" }),
  ];
}

function missingAnswers({ minimum, users }) {
  const missing = Math.max(0, minimum - users);
  const name = missing ? "answersMissing" : "answersEnough";
  return sentence(name, formatValues({ minimum, missing }), { class: "quiet" });
}

/** How many have withdrawn; they are not among the answers. */
function withdrawnAnswers({ withdrawn }) {
  if (!withdrawn) return null;
  return sentence("answersWithdrawn", formatValues({ withdrawn }), { class: "quiet" });
}

/** Whom the survey waits for, and the status at the aggregator. */
function nextSteps(status, aggregator) {
  const values = {
    since: formatTime(status.since),
    closes: status.closes_at ? formatTime(status.closes_at) : "",
  };
  const problem = aggregator?.problem;
  return element(
    "div",
    { class: "waits" },
    element("h3", {}, translate("waitsTitle")),
    sentence(waitingText(status), values),
    attempts(status),
    status.problem ? sentence("waitsProblem", {}, { class: "warning" }) : null,
    status.problem ? englishText(status.problem, { class: "warning" }) : null,
    sentence(aggregatorText(aggregator), {}, { class: problem ? "warning" : "quiet" }),
    problem ? problemMessage(problem, { class: "quiet" }) : null,
  );
}

function waitingText({ waits_for: whom, closes_at: closes, held_since: held }) {
  if (whom === "people" && held) return "waits_held";
  if (whom === "people") return closes ? "waits_people" : "waits_peopleOpen";
  return `waits_${whom}`;
}

function attempts({ tries, tries_again_at: next }) {
  if (tries < 2) return null;
  const values = { tries: formatNumber(tries), when: formatTime(next) };
  return sentence("waitsAgain", values, { class: "quiet" });
}

/** The name of the text about the aggregator's status. */
function aggregatorText(aggregator) {
  if (aggregator === null) return "aggregatorAsked";
  if (aggregator.problem) return "aggregatorSilent";
  const { state } = aggregator;
  if (["published", "aborted"].includes(state)) return `aggregator_${state}`;
  if (["draft", "enrolling"].includes(state)) return "aggregator_waiting";
  const isCounting = ["counting", "unmasking", "aggregated"].includes(state);
  return isCounting ? "aggregator_counting" : "aggregator_list";
}

/** Rejected messages by reason and server. */
function rejections(status, aggregator) {
  const first = status.rejections;
  const second = aggregator?.rejections ?? {};
  const reasons = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  if (!reasons.length) return sentence("refusedNone", {}, { class: "quiet" });
  const rows = reasons.map((name) =>
    row(
      translate(`reason_${name}`),
      formatNumber(first[name] ?? 0),
      formatNumber(second[name] ?? 0),
    ),
  );
  const headings = ["refusedReason", "refusedCoordinator", "refusedAggregator"];
  return table(translate("refusedCaption"), headings, rows);
}

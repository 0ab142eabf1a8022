// The progress of a survey: its phases, the number of answers, what happens next, and rejections.

import { element, englishText } from "./dom.js";
import { formatNumber, formatTime, translate } from "./language.js";
import {
  details, formatValues, problemMessage, row, section, sentence, table, updatable,
} from "./parts.js";

/**
 * {box, update}: `update` takes the survey and the aggregator's status, null while it is unknown.
 */
export function progressSection() {
  const phases = updatable((survey) => [phaseList(survey), meter(survey)]);
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
    const { status, last, invited, problem } = survey;
    const { phase, responses, invited: all } = status ?? {};
    phases.update({ phases: survey.phases, status, last, invited });
    answers.update(status && { phase, responses, invited: all }, last, problem);
    rest.update(survey, aggregator);
  };
  return { box: section("progressTitle", phases.box, answers.box, rest.box), update };
}

/**
 * The phases in order; the current one is marked in words, not by colour alone. While the
 * coordinator cannot be reached, it is the last known one, or none.
 */
function phaseList({ phases, status, last, invited }) {
  const known = status ?? last;
  const atFirst = invited ? null : 0;
  const current = known ? known.phase_index : atFirst;
  const label = translate(status || !invited ? "phaseNow" : "phaseLast");
  const entries = phases.map((phase, at) => {
    const name = translate(phase === "draft" ? "phaseDraft" : `phase_${phase}`);
    const mark = at === current ? element("span", { class: "mark" }, label) : null;
    return element("li", phaseSettings(at, current, known), element("span", {}, name), mark);
  });
  const isAborted = known?.phase === "aborted";
  return element(
    "div",
    {},
    element("ol", { class: "phases", "aria-label": translate("phasesLabel") }, entries),
    isAborted ? sentence("phase_aborted", {}, { class: "warning" }) : null,
  );
}

function phaseSettings(at, current, status) {
  if (at === current) return { "aria-current": "step", class: "now" };
  const isDone = (current !== null && at < current) || status?.phase === "published";
  return isDone ? { class: "done" } : {};
}

function meter({ status }) {
  if (!status) return null;
  const most = status.invited || 1;
  const mark = element("span", { class: "minimum" });
  mark.style.insetInlineStart = `${(100 * Math.min(status.minimum, most)) / most}%`;
  const label = translate("answersLabel");
  const bar = element("progress", { max: most, value: status.responses, "aria-label": label });
  return element("div", { class: "meter" }, bar, mark);
}

/** The number of answers; before it, for those who cannot see the phases, the current one. */
function answerCount(status, last, problem) {
  if (!status) return lastKnown(last, problem);
  const { responses, invited } = status;
  return [
    element("p", { class: "unseen" }, translate(`phase_${status.phase}`)),
    sentence("answers", formatValues({ responses, invited }), { class: "figure" }),
  ];
}

/** What the coordinator said before it could not be reached any more. */
function lastKnown(last, problem) {
  if (!problem) return null;
  if (!last) return sentence("lastNothing", {}, { class: "quiet" });
  const { responses, invited } = last;
  const values = {
    phase: translate(`phase_${last.phase}`),
    when: formatTime(last.at),
    ...formatValues({ responses, invited }),
  };
  return sentence("lastKnown", values);
}

function missingAnswers({ minimum, responses }) {
  const missing = Math.max(0, minimum - responses);
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
    since: status.waiting_since ? formatTime(status.waiting_since) : "",
    closes: status.closes_at ? formatTime(status.closes_at) : "",
  };
  return element(
    "div",
    { class: "waits" },
    element("h3", {}, translate("waitsTitle")),
    sentence(waitingText(status), values),
    waitingDetails(status),
    ...aggregatorLines(status.waits_for, aggregator),
  );
}

/** What the coordinator knows about an aggregator that does not respond; null if it does. */
function waitingDetails(status) {
  if (!status.problem) return attempts(status);
  return details(
    "waitsDetails",
    attempts(status),
    sentence("waitsProblem", {}, { class: "quiet" }),
    englishText(status.problem, { class: "quiet" }),
  );
}

/** The status at the aggregator; that it is away is said once, with what that means now. */
function aggregatorLines(whom, aggregator) {
  const problem = aggregator?.problem;
  if (!problem) return [sentence(aggregatorText(aggregator), {}, { class: "quiet" })];
  if (problem.code === "unreachable") {
    const isSaid = !["people", "owner"].includes(whom);
    return isSaid ? [] : [sentence(`aggregatorAway_${whom}`, {}, { class: "warning" })];
  }
  return [
    sentence("aggregatorSilent", {}, { class: "warning" }),
    problemMessage(problem, { class: "quiet" }),
  ];
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
  const { phase } = aggregator;
  if (["published", "aborted"].includes(phase)) return `aggregator_${phase}`;
  if (["draft", "enrolling"].includes(phase)) return "aggregator_waiting";
  const isCounting = ["counting", "unmasking", "aggregated"].includes(phase);
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

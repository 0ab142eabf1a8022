// Where a survey stands: its phases, how many have answered, whom it waits for and why, and what was refused.

import { element, quoted } from "./dom.js";
import { moment, say, written } from "./language.js";
import { place, refusal, row, section, sentence, table } from "./parts.js";

/** S1 and S2, with who runs them. */
export const operators = ({ s1, s2 }) => ({
  s1: s1 ? say("serverOf", { server: "S1", who: s1 }) : "S1",
  s2: s2 ? say("serverOf", { server: "S2", who: s2 }) : "S2",
});

/** A place for all of it: `bring` takes the survey and what S2 says, or null while it says nothing. */
export function progress() {
  const steps = place((survey) => [phases(survey), survey.status ? meter(survey.status) : null]);
  const told = place(answered); // stays on the page while its words change: only then a screen reader says them
  const rest = place((survey, second) => (survey.status ? [missing(survey.status), waits(survey, second), refused(survey.status, second)] : null));
  told.box.setAttribute("role", "status");
  const bring = (survey, second) => {
    steps.bring(survey);
    told.bring(survey.status && { state: survey.status.state, users: survey.status.users, people: survey.status.people });
    rest.bring(survey, second);
  };
  return { box: section("progressTitle", steps.box, told.box, rest.box), bring };
}

/** The phases in their order; the one of now is marked in words, not by colour alone. */
function phases({ phases: all, status }) {
  const at = status ? status.phase : 0;
  const made = all.map((state, place) => {
    const mark = place === at ? { "aria-current": "step", class: "now" } : place < at || status?.state === "published" ? { class: "done" } : {};
    const words = place === at ? element("span", { class: "mark" }, say("phaseNow")) : null;
    return element("li", mark, element("span", {}, say(state === "draft" ? "phaseDraft" : `state_${state}`)), words);
  });
  const ended = status?.state === "aborted" ? sentence("state_aborted", {}, { class: "warning" }) : null;
  return element("div", {}, element("ol", { class: "phases", "aria-label": say("phasesLabel") }, made), ended);
}

function meter(status) {
  const most = status.people || 1;
  const mark = element("span", { class: "minimum" });
  mark.style.insetInlineStart = `${(100 * Math.min(status.minimum, most)) / most}%`;
  const bar = element("progress", { max: most, value: status.users, "aria-label": say("answersLabel") });
  return element("div", { class: "meter" }, bar, mark);
}

/** How many have answered; who cannot see the phases hears the one of now before it. */
function answered(status) {
  if (!status) return null;
  const state = element("p", { class: "unseen" }, say(`state_${status.state}`));
  return [state, sentence("answers", { users: written(status.users), people: written(status.people) }, { class: "figure" })];
}

function missing({ minimum, users }) {
  const left = Math.max(0, minimum - users);
  const counts = { minimum: written(minimum), missing: written(left) };
  return sentence(left ? "answersMissing" : "answersEnough", counts, { class: "quiet" });
}

/** Whom it waits for, at S1 and at S2. */
function waits(survey, second) {
  const { status } = survey;
  const names = operators(survey);
  const values = { ...names, since: moment(status.since), closes: status.closes_at ? moment(status.closes_at) : "" };
  const people = status.closes_at ? "waits_people" : "waits_peopleOpen";
  return element(
    "div",
    { class: "waits" },
    element("h3", {}, say("waitsTitle")),
    sentence(status.waits_for === "people" ? people : `waits_${status.waits_for}`, values),
    tries(status),
    status.problem ? sentence("waitsProblem", names, { class: "warning" }) : null,
    status.problem ? quoted(status.problem, { class: "warning" }) : null,
    sentence(atS2(second), names, { class: second?.problem ? "warning" : "quiet" }),
    second?.problem ? refusal(second.problem, { class: "quiet" }) : null,
  );
}

function tries(status) {
  if (status.tries < 2) return null;
  return sentence("waitsAgain", { tries: written(status.tries), when: moment(status.tries_again_at) }, { class: "quiet" });
}

/** The name of the sentence on where S2 stands. */
function atS2(second) {
  if (second === null || second.problem) return second === null ? "s2Asked" : "s2Silent";
  const { state } = second;
  if (["published", "aborted"].includes(state)) return `s2_${state}`;
  if (["draft", "enrolling"].includes(state)) return "s2_waiting";
  return ["claimed", "recovering", "opened"].includes(state) ? "s2_counting" : "s2_list";
}

/** Refused messages, by reason and server. */
function refused(status, second) {
  const [first, other] = [status.rejections, second?.rejections ?? {}];
  const reasons = [...new Set([...Object.keys(first), ...Object.keys(other)])];
  if (!reasons.length) return sentence("refusedNone", {}, { class: "quiet" });
  const rows = reasons.map((name) => row(say(`reason_${name}`), written(first[name] ?? 0), written(other[name] ?? 0)));
  return table(say("refusedCaption"), ["refusedReason", "refusedS1", "refusedS2"], rows);
}

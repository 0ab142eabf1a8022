// Where a survey stands: its phases, how many have answered, whom it waits for and why, and what was refused.

import { element, quoted } from "./dom.js";
import { moment, say, written } from "./language.js";
import { refusal, row, section, sentence, table } from "./parts.js";

/** S1 and S2, with who runs them. */
export const operators = ({ s1, s2 }) => ({
  s1: s1 ? say("serverOf", { server: "S1", who: s1 }) : "S1",
  s2: s2 ? say("serverOf", { server: "S2", who: s2 }) : "S2",
});

/** All of it; `second` is what S2 says, or null while it says nothing. */
export function progressOf(survey, second) {
  const { status } = survey;
  return section(
    "progressTitle",
    phases(survey),
    status ? answers(survey) : null,
    status ? waits(survey, second) : null,
    status ? refused(status, second) : null,
  );
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

function answers({ status }) {
  const counts = { users: written(status.users), people: written(status.people), minimum: written(status.minimum) };
  const most = status.people || 1;
  const mark = element("span", { class: "minimum" });
  mark.style.insetInlineStart = `${(100 * Math.min(status.minimum, most)) / most}%`;
  const missing = Math.max(0, status.minimum - status.users);
  const bar = element("progress", { max: most, value: status.users, "aria-label": say("answersLabel") });
  return element(
    "div",
    {},
    element("div", { class: "meter" }, bar, mark),
    sentence("answers", counts, { class: "figure", role: "status" }),
    sentence(missing ? "answersMissing" : "answersEnough", { ...counts, missing: written(missing) }, { class: "quiet" }),
  );
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

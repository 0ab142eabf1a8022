// A new survey: the form, with the planner's advice beside it while it is filled in.

import { chart } from "./chart.js";
import { element, foreign, quoted, show } from "./dom.js";
import { languages, percent, say, small, spoken, written } from "./language.js";
import { button, buttons, refusal, saidBy, sentence } from "./parts.js";

const MILLISECONDS_OF_REST = 400;

// Title of a group: name of a field -> settings. Labels and hints are sentences: field_name, and hint_name where there is one.
const GROUPS = {
  groupQuestion: {
    question: { required: true },
    items: { rows: "5", required: true },
  },
  groupOwner: { owner: {}, purpose: {}, contact: {} },
  groupPeople: {
    users: { type: "number", min: "2", value: "300" },
    absent: { type: "number", min: "0", max: "0.9", step: "any" },
    people: { rows: "3" },
    hours: { type: "number", min: "1", value: "72" },
    invitation_language: { languages: true },
  },
  groupPrivacy: {
    epsilon: { type: "number", min: "0.01", step: "any", value: "1" },
    delta: { type: "number", min: "0", step: "any", value: "0.000001" },
  },
  groupBudget: {
    population: {},
    budget_epsilon: { type: "number", min: "0.01", step: "any", value: "3" },
    budget_delta: { type: "number", min: "0", step: "any", value: "0.000003" },
  },
  groupName: { name: { required: true, pattern: "[\\p{L}\\p{N}_\\-]{1,60}" } },
};
const SHARED = ["budget_epsilon", "budget_delta"]; // asked for where the people have a name
const HINTS = ["items", "absent", "people", "epsilon", "delta", "population", "name"];

/** `typed` has what was typed before, where the same form is shown in another language. */
export function showCreation(typed, actions) {
  const told = element("div", { role: "status" }, sentence("adviceFirst", {}, { class: "quiet" }));
  const details = element("div");
  const aside = element("section", { class: "advice" }, element("h2", {}, say("adviceTitle")), told, details);
  const problem = element("div", { role: "alert" });
  const form = element(
    "form",
    { class: "beside", input: () => (changed(), later()), submit: (event) => (event.preventDefault(), make()) },
    element("div", {}, Object.entries(GROUPS).map(([title, fields]) => group(title, fields, typed))),
    aside,
    element("div", {}, problem, buttons(element("button", { class: "main", type: "submit" }, say("create")), button("back", actions.back))),
  );
  const changed = () => {
    const values = valuesOf(form);
    actions.keep(values);
    form.querySelectorAll("[data-shared]").forEach((each) => (each.hidden = !values.population.trim()));
  };
  const busy = (yes) => form.querySelectorAll("button").forEach((each) => (each.disabled = yes));
  const make = async () => {
    busy(true);
    problem.replaceChildren(sentence("creating"));
    await actions.make(valuesOf(form)).catch((refused) => problem.replaceChildren(refusal(saidBy(refused), { class: "warning" })));
    busy(false);
  };
  const later = newest(() => actions.advise(valuesOf(form)), (found) => (told.replaceChildren(...headlines(found)), details.replaceChildren(...adviceOf(found))));
  show(element("h1", {}, say("newSurvey")), form);
  changed();
  if (typed.items) later();
}

const valuesOf = (form) => Object.fromEntries(new FormData(form));

function group(title, fields, typed) {
  const made = Object.entries(fields).map(([name, settings]) => field(name, settings, typed[name] ?? settings.value ?? ""));
  return element("fieldset", { class: "group" }, element("legend", {}, say(title)), made);
}

function field(name, { value: _, ...settings }, value) {
  if (settings.languages) return choiceOfLanguage(name, value || spoken());
  const hint = HINTS.includes(name) ? element("p", { id: `${name}-hint`, class: "quiet hint" }, say(`hint_${name}`)) : null;
  const about = hint ? { "aria-describedby": `${name}-hint` } : {};
  const input = element("rows" in settings ? "textarea" : "input", { id: name, name, dir: "auto", ...about, ...settings });
  input.value = value;
  const shared = SHARED.includes(name) ? { "data-shared": true } : {};
  return element("div", { class: "field", ...shared }, element("label", { for: name }, say(`field_${name}`)), input, hint);
}

/** A language to choose: the page's own, until another one is chosen. */
function choiceOfLanguage(name, chosen) {
  const choices = Object.entries(languages()).map(([code, words]) =>
    element("label", { class: "choice", lang: code }, element("input", { type: "radio", name, value: code, checked: code === chosen }), words),
  );
  return element("fieldset", { class: "choices" }, element("legend", {}, say(`field_${name}`)), choices);
}

/** A function that asks after a rest, one question at a time; the newest values are asked for again when an answer is there. */
function newest(ask, tell) {
  let [timer, busy, stale] = [null, false, false];
  const run = async () => {
    stale = busy;
    if (busy) return;
    busy = true;
    const found = await ask().catch((problem) => ({ refused: saidBy(problem) }));
    busy = false;
    tell(found);
    if (stale) run();
  };
  return () => (clearTimeout(timer), (timer = setTimeout(run, MILLISECONDS_OF_REST)));
}

/** What a screen reader says by itself: the error, or why there is none, and what warns. */
function headlines(found) {
  if (found.refused) return [refusal(found.refused, { class: "warning" })];
  const warnings = [["adviceUnproven", !found.proven], ["adviceNot", !found.worthwhile], ["weakEpsilon", found.weak_epsilon], ["weakDelta", found.weak_delta]];
  return [
    foreign("p", say("adviceError", { error: percent(found.half_width_95) }), { class: "figure" }),
    ...warnings.filter(([, holds]) => holds).map(([name]) => sentence(name, {}, { class: "warning" })),
  ];
}

/** The rest, to be read at leisure. */
function adviceOf(found) {
  if (found.refused) return budgetLines(found);
  const values = { ...found, needed: written(found.needed), invited: written(found.invited) };
  return [
    sentence("adviceWords", values),
    condition(found),
    found.proven ? sentence("adviceProven", {}, { class: "quiet" }) : null,
    ...budgetLines(found),
    sentence("adviceExample", {}, { class: "quiet" }),
    example(found),
  ].filter((each) => each !== null);
}

/** On which condition the promise holds. */
function condition({ condition: words, condition_code: code }) {
  if (code !== "other") return sentence("adviceCondition", { condition: say(`condition_${code}`) }, { class: "quiet" });
  return element("div", { class: "quiet" }, sentence("adviceConditionOther"), quoted(words));
}

/** All answers equally frequent, each with the error to expect. */
function example({ items, half_width_95: half }) {
  const share = 1 / items.length;
  const bar = { estimate: share, low: Math.max(0, share - half), high: Math.min(1, share + half) };
  const axis = [0, Math.min(1, 1.3 * bar.high)];
  const words = say("adviceBar", { share: percent(share), low: percent(bar.low), high: percent(bar.high) });
  return element(
    "ul",
    { class: "bars" },
    items.map((item) => element("li", {}, foreign("span", item), element("span", { class: "quiet" }, ` ${words}`), chart(bar, axis))),
  );
}

function budgetLines({ budget }) {
  if (!budget) return [];
  const { epsilon, delta, spent } = budget;
  const values = { epsilon: written(epsilon), delta: small(delta), spent: written(spent.epsilon), left: written(Math.max(0, epsilon - spent.epsilon)) };
  return [sentence("budgetKnown", values)];
}

// A new survey: the form, with the planner's advice beside it while the owner types.

import { isWeak } from "./certainty.js";
import { chart } from "./chart.js";
import { conditionText } from "./conditions.js";
import { element, ownerText, show } from "./dom.js";
import {
  currentLanguage, formatNumber, formatPercent, formatSmall, languages, translate,
} from "./language.js";
import { button, buttons, formatValues, payloadOf, problemMessage, sentence } from "./parts.js";
import { levelAdvice, levelFields } from "./level_fields.js";
import { peopleSource } from "./people_source.js";
import { participantsRead } from "./promise_view.js";
import { questionBuilder } from "./question_builder.js";
import { errorText } from "./question_preview.js";
import { timeField } from "./time_field.js";

const MILLISECONDS_OF_REST = 400;
// Chances of reaching the minimum, as the planner says them in English.
const ALMOST_CERTAIN = 0.999;
const LIKELY = 0.99;

// Title of a group: name of a field -> settings. Labels and hints are the texts field_name and
// hint_name.
const GROUPS = {
  groupQuestion: {},
  groupOwner: { owner: {}, purpose: {}, contact: {} },
  groupPeople: {
    users: { type: "number", min: "2", value: "300" },
    response_rate: { type: "number", min: "1", max: "100", step: "any" },
    minimum: {},
    people: { rows: "3" },
    time: { time: true },
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
const BUDGET_FIELDS = ["budget_epsilon", "budget_delta"]; // shown once the group has a name
const PEOPLE_FIELDS = ["users", "people"]; // hidden once there is a table of people
const HINTS = ["response_rate", "minimum", "people", "epsilon", "delta", "population", "name"];

/** `typed` has the values typed before, if the same form is shown in another language. */
export function showCreation(typed, actions) {
  const headline = element("div", { role: "status" });
  headline.append(sentence("adviceFirst", {}, { class: "quiet" }));
  const details = element("div");
  const problem = element("div", { role: "alert" });
  const anyway = anywayField(typed.anyway);
  const groups = Object.entries(GROUPS).map(([title, fields]) => fieldGroup(title, fields, typed));
  let chosen = typed.chosen ?? null;
  const source = peopleSource(chosen, actions.describePeople, (now) => {
    chosen = now;
    onInput();
  });
  const builder = questionBuilder(typed, actions.readQuestions, onInput);
  const levels = levelFields(typed);
  const groupNamed = (name) => groups[Object.keys(GROUPS).indexOf(name)];
  groupNamed("groupPeople").querySelector("legend").after(source.box);
  groupNamed("groupQuestion").append(builder.box);
  groupNamed("groupPrivacy").querySelector("legend").after(levels.box);
  const form = element(
    "form",
    { class: "beside", input: onInput, submit: onSubmit },
    element("div", {}, groups),
    element(
      "section",
      // Long advice scrolls beside the form, also for those who only have a keyboard.
      { class: "advice", tabindex: "0", "aria-labelledby": "advice-title" },
      element("h2", { id: "advice-title" }, translate("adviceTitle")),
      headline,
      details,
    ),
    element(
      "div",
      {},
      anyway,
      problem,
      buttons(
        element("button", { class: "main", type: "submit" }, translate("create")),
        button("back", actions.back),
      ),
    ),
  );
  const valuesOf = () => ({
    ...Object.fromEntries(new FormData(form)),
    ...source.values(),
    ...builder.values(),
  });
  const askPlanner = debounce(
    askForAdvice,
    (advice) => {
      headline.replaceChildren(...headlines(advice));
      builder.showAdvice(advice);
      // Offered only where the planner advises against the survey.
      anyway.hidden = advice.worthwhile !== false;
      details.replaceChildren(...adviceDetails(advice));
    },
  );

  /** The planner's advice; it needs the number of people only, once the table is readable. */
  async function askForAdvice() {
    const problem = source.problem();
    return problem ? { problem } : actions.advise({ ...valuesOf(), sheet: undefined });
  }

  function storeValues() {
    const values = valuesOf();
    actions.keep({ ...values, chosen });
    const hasGroup = values.population.trim() !== "";
    form.querySelectorAll("[data-budget]").forEach((field) => (field.hidden = !hasGroup));
    form.querySelectorAll("[data-people]").forEach((field) => (field.hidden = source.isUsed()));
    levels.update(values);
    // Levels have epsilons of their own.
    form.querySelector("[data-one]").hidden = values.protection === "levels";
  }

  function onInput() {
    storeValues();
    askPlanner();
  }

  async function onSubmit(event) {
    event.preventDefault();
    setDisabled(true);
    problem.replaceChildren(sentence("creating"));
    try {
      await actions.create(valuesOf());
    } catch (error) {
      problem.replaceChildren(problemMessage(payloadOf(error), { class: "warning" }));
    }
    setDisabled(false);
  }

  function setDisabled(disabled) {
    form.querySelectorAll("button").forEach((control) => (control.disabled = disabled));
  }

  show(element("h1", {}, translate("newSurvey")), form);
  storeValues();
  if (builder.hasAnswers()) askPlanner();
}

function fieldGroup(title, fields, typed) {
  const made = Object.entries(fields).map(([name, settings]) =>
    settings.time ? timeField(typed) : field(name, settings, typed[name] ?? settings.value ?? ""),
  );
  return element("fieldset", { class: "group" }, element("legend", {}, translate(title)), made);
}

function field(name, { value: _, ...settings }, value) {
  if (settings.languages) return languageField(name, value || currentLanguage());
  const hintId = `${name}-hint`;
  const hint = HINTS.includes(name)
    ? element("p", { id: hintId, class: "quiet hint" }, translate(`hint_${name}`))
    : null;
  const described = hint ? { "aria-describedby": hintId } : {};
  const tag = "rows" in settings ? "textarea" : "input";
  const input = element(tag, { id: name, name, dir: "auto", ...described, ...settings });
  input.value = value;
  return element(
    "div",
    {
      class: "field",
      "data-budget": BUDGET_FIELDS.includes(name),
      "data-people": PEOPLE_FIELDS.includes(name),
      "data-one": name === "epsilon",
    },
    element("label", { for: name }, translate(`field_${name}`)),
    input,
    hint,
  );
}

/** A choice of language: the page's own, until the owner chooses another one. */
function languageField(name, chosen) {
  const choices = Object.entries(languages()).map(([code, label]) => {
    const settings = { type: "radio", name, value: code, checked: code === chosen };
    return element("label", { class: "choice", lang: code }, element("input", settings), label);
  });
  const legend = element("legend", {}, translate(`field_${name}`));
  return element("fieldset", { class: "choices" }, legend, choices);
}

/** Consent to a survey that the planner advises against. */
function anywayField(checked) {
  const box = element("input", { type: "checkbox", name: "anyway", value: "yes" });
  box.checked = checked === "yes";
  return element("label", { class: "choice", hidden: true }, box, translate("adviceAnyway"));
}

/**
 * A function that calls `ask` after a pause, one request at a time, and passes the answer to
 * `tell`. If it is called during a request, the newest values are asked for afterwards.
 */
function debounce(ask, tell) {
  let timer = null;
  let isBusy = false;
  let isStale = false;
  const run = async () => {
    isStale = isBusy;
    if (isBusy) return;
    isBusy = true;
    const found = await ask().catch((problem) => ({ problem: payloadOf(problem) }));
    isBusy = false;
    tell(found);
    if (isStale) run();
  };
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, MILLISECONDS_OF_REST);
  };
}

/** What a screen reader announces: the error of the result, or why there is none, and warnings. */
function headlines(advice) {
  if (advice.problem) return [problemMessage(advice.problem, { class: "warning" })];
  const overspent = advice.budget_problem;
  const warnings = [
    advice.proven ? null : "adviceUnproven",
    advice.informative ? null : notText(advice),
    // A weak level is a warning of its own: not everybody has to choose it.
    isWeak(advice) && !advice.levels ? "adviceWeak" : null,
  ];
  const shown = warnings.filter((name) => name !== null);
  return [
    errorHeadline(advice),
    ...(advice.levels ? levelAdvice(advice) : []),
    ...(overspent ? [problemMessage(overspent, { class: "warning" })] : []),
    ...shown.map((name) => sentence(name, {}, { class: "warning" })),
    ...chanceLines(advice),
  ];
}

const notText = ({ questions }) => (questions.length > 1 ? "adviceNotSeveral" : "adviceNot");

/** The error of the only question; of several the largest one, as each stands beside its question. */
function errorHeadline({ questions, half_width_95: half }) {
  const [first, ...others] = questions;
  if (!others.length && first.unit === "points") {
    return sentence("adviceError", { error: formatPercent(half) }, { class: "figure" });
  }
  if (!others.length) {
    return sentence("previewError", { error: errorText(first) }, { class: "figure" });
  }
  const shares = questions.filter(({ unit }) => unit === "points");
  const worst = (shares.length ? shares : questions).reduce((one, other) =>
    other.error > one.error ? other : one,
  );
  const values = { error: errorText(worst), number: formatNumber(worst.number) };
  return sentence("adviceLargest", values, { class: "figure" });
}

/** Whether the minimum will be reached at the expected response rate; nothing without one. */
function chanceLines({ expected, invited, minimum, chance_of_minimum: chance }) {
  if (expected === null) return [];
  // Never 100: that would be said as certain.
  const percent = Math.min(99, Math.round(100 * chance));
  const values = formatValues({ chance: percent, expected, invited, minimum });
  if (expected < minimum) return [sentence("adviceTooFew", values, { class: "warning" })];
  if (chance > ALMOST_CERTAIN) return [sentence("adviceSure", values)];
  return [sentence("adviceChance", values, { class: chance < LIKELY ? "warning" : null })];
}

function adviceDetails(advice) {
  if (advice.problem) return budgetLines(advice);
  const { mechanism, minimum, responses, invited, items } = advice;
  const condition = conditionText(advice.condition);
  const about = { mechanism, ...formatValues({ responses, invited }) };
  return [
    sentence(items.length ? "adviceText" : "adviceTextSeveral", about),
    ...(advice.questions.length > 1 ? [sentence("adviceGroups", {}, { class: "quiet" })] : []),
    minimumLine(advice, formatValues({ minimum })),
    ...(advice.users_make_noise ? [sentence("adviceAllowance", {}, { class: "quiet" })] : []),
    sentence("adviceCondition", { condition }, { class: "quiet" }),
    ...(advice.proven ? [sentence(provenText(items), {}, { class: "quiet" })] : []),
    ...budgetLines(advice),
    participantsRead({ ...advice, ...sharesOf(advice) }),
    ...(items.length ? [sentence("adviceExample", {}, { class: "quiet" })] : []),
    ...(items.length ? [exampleResult(advice)] : []),
  ];
}

/** The error with the minimum number of responses: of a single choice, or how much larger it is. */
function minimumLine({ items, responses, half_width_95_at_minimum: half, minimum }, values) {
  if (items.length) return sentence("adviceMinimum", { error: formatPercent(half), ...values });
  // An owner's own minimum is the number for which the errors are stated.
  if (minimum >= responses) return sentence("adviceMinimumSame", values);
  const times = formatNumber(responses / minimum, { maximumSignificantDigits: 2 });
  return sentence("adviceMinimumSeveral", { times, ...values });
}

const provenText = (items) => (items.length ? "adviceProven" : "adviceProvenSheet");

/** How many questions there are, and what a single answer loses at most. */
const sharesOf = ({ questions }) => ({
  count: questions.length,
  single: Math.max(...questions.map(({ epsilon }) => epsilon)),
});

/** A result with equally frequent answers, each with the expected error. */
function exampleResult({ items, half_width_95: half }) {
  const share = 1 / items.length;
  const bar = { estimate: share, low: Math.max(0, share - half), high: Math.min(1, share + half) };
  const axis = [0, Math.min(1, 1.3 * bar.high)];
  const text = translate("adviceBar", {
    share: formatPercent(share),
    low: formatPercent(bar.low),
    high: formatPercent(bar.high),
  });
  const bars = items.map((item) => {
    const numbers = element("span", { class: "quiet" }, ` ${text}`);
    return element("li", {}, ownerText("span", item), numbers, chart(bar, axis));
  });
  return element("ul", { class: "bars" }, bars);
}

function budgetLines({ budget }) {
  if (!budget) return [];
  const { epsilon, delta, spent } = budget;
  const values = {
    epsilon: formatNumber(epsilon),
    delta: formatSmall(delta),
    spent: formatNumber(spent.epsilon),
    left: formatNumber(Math.max(0, epsilon - spent.epsilon)),
  };
  return [sentence("budgetKnown", values)];
}

// A new survey: the form, with the planner's advice beside it while the owner types.

import { chart } from "./chart.js";
import { conditionText } from "./conditions.js";
import { element, ownerText, show } from "./dom.js";
import {
  currentLanguage, formatNumber, formatPercent, formatSmall, languages, translate,
} from "./language.js";
import { button, buttons, formatValues, payloadOf, problemMessage, sentence } from "./parts.js";

const MILLISECONDS_OF_REST = 400;

// Title of a group: name of a field -> settings. Labels and hints are the texts field_name and
// hint_name.
const GROUPS = {
  groupQuestion: {
    question: { required: true },
    items: { rows: "5", required: true },
  },
  groupOwner: { owner: {}, purpose: {}, contact: {} },
  groupPeople: {
    users: { type: "number", min: "2", value: "300" },
    minimum: {},
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
const BUDGET_FIELDS = ["budget_epsilon", "budget_delta"]; // shown once the group has a name
const HINTS = ["items", "minimum", "people", "epsilon", "delta", "population", "name"];

/** `typed` has the values typed before, if the same form is shown in another language. */
export function showCreation(typed, actions) {
  const headline = element("div", { role: "status" });
  headline.append(sentence("adviceFirst", {}, { class: "quiet" }));
  const details = element("div");
  const problem = element("div", { role: "alert" });
  const groups = Object.entries(GROUPS).map(([title, fields]) => fieldGroup(title, fields, typed));
  const form = element(
    "form",
    { class: "beside", input: onInput, submit: onSubmit },
    element("div", {}, groups),
    element(
      "section",
      { class: "advice" },
      element("h2", {}, translate("adviceTitle")),
      headline,
      details,
    ),
    element(
      "div",
      {},
      problem,
      buttons(
        element("button", { class: "main", type: "submit" }, translate("create")),
        button("back", actions.back),
      ),
    ),
  );
  const valuesOf = () => Object.fromEntries(new FormData(form));
  const askPlanner = debounce(
    () => actions.advise(valuesOf()),
    (advice) => {
      headline.replaceChildren(...headlines(advice));
      details.replaceChildren(...adviceDetails(advice));
    },
  );

  function storeValues() {
    const values = valuesOf();
    actions.keep(values);
    const hasGroup = values.population.trim() !== "";
    form.querySelectorAll("[data-budget]").forEach((field) => (field.hidden = !hasGroup));
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
  if (typed.items) askPlanner();
}

function fieldGroup(title, fields, typed) {
  const made = Object.entries(fields).map(([name, settings]) =>
    field(name, settings, typed[name] ?? settings.value ?? ""),
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
    { class: "field", "data-budget": BUDGET_FIELDS.includes(name) },
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
  const warnings = [
    advice.proven ? null : "adviceUnproven",
    advice.worthwhile ? null : "adviceNot",
    advice.weak_epsilon ? "weakEpsilon" : null,
    advice.weak_delta ? "weakDelta" : null,
  ];
  const shown = warnings.filter((name) => name !== null);
  const error = formatPercent(advice.half_width_95);
  return [
    sentence("adviceError", { error }, { class: "figure" }),
    ...shown.map((name) => sentence(name, {}, { class: "warning" })),
  ];
}

function adviceDetails(advice) {
  if (advice.problem) return budgetLines(advice);
  const { mechanism, minimum, responses, invited } = advice;
  const error = formatPercent(advice.half_width_95_at_minimum);
  const condition = conditionText(advice.condition);
  return [
    sentence("adviceText", { mechanism, ...formatValues({ responses, invited }) }),
    sentence("adviceMinimum", { error, ...formatValues({ minimum }) }),
    ...(advice.users_make_noise ? [sentence("adviceAllowance", {}, { class: "quiet" })] : []),
    sentence("adviceCondition", { condition }, { class: "quiet" }),
    ...(advice.proven ? [sentence("adviceProven", {}, { class: "quiet" })] : []),
    ...budgetLines(advice),
    sentence("adviceExample", {}, { class: "quiet" }),
    exampleResult(advice),
  ];
}

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

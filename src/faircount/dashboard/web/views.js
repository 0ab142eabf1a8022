// What the dashboard shows.

import { axisOf, chart } from "./chart.js";
import { element, foreign, show } from "./dom.js";

const percent = (value) => `${(100 * value).toLocaleString("en", { maximumFractionDigits: 1, signDisplay: "negative" })}\u00a0%`;
const small = (value) => (value === 0 ? "0" : value.toExponential(1));
const button = (words, click, settings = {}) => element("button", { type: "button", click, ...settings }, words);
const line = (words, settings = {}) => foreign("p", words, settings);

export function showProblem(words, back) {
  show(element("h1", {}, "That did not work"), line(words, { role: "alert", class: "warning" }), button("Your surveys", back));
}

export function showList(surveys, actions) {
  const rows = surveys.map((survey) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, button(survey.name, () => actions.open(survey.name))),
      foreign("td", survey.question),
      element("td", {}, stateOf(survey)),
      element("td", {}, survey.status ? `${survey.status.users} of ${survey.status.people}` : ""),
    ),
  );
  const heads = ["Survey", "Question", "State", "Answers"].map((each) => element("th", { scope: "col" }, each));
  show(
    element("h1", {}, "Your surveys"),
    surveys.length ? table("Surveys in this folder", heads, rows) : line("There is no survey in this folder yet."),
    surveys.filter((each) => each.warning).map((each) => line(`${each.name}: ${each.warning}`, { class: "warning" })),
    element("div", { class: "buttons" }, button("New survey", actions.create, { class: "main" })),
  );
}

const stateOf = (survey) => survey.status?.state ?? (survey.invited ? "not reachable" : "not invited");

const table = (caption, heads, rows) =>
  element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, heads)), element("tbody", {}, rows)),
  );

const FIELDS = [
  ["name", "Name of the survey (letters and digits)", { value: "", required: true, pattern: "[\\p{L}\\p{N}_\\-]{1,60}" }],
  ["question", "Question", { value: "", required: true }],
  ["owner", "Who asks", { value: "" }],
  ["purpose", "What the result is for", { value: "" }],
  ["contact", "Where people can ask back", { value: "" }],
  ["population", "People who share a budget over several surveys", { value: "" }],
  ["users", "People invited", { type: "number", min: "2", value: "300" }],
  ["epsilon", "Epsilon: how much one answer may show", { type: "number", min: "0.01", step: "any", value: "1" }],
  ["delta", "Delta: chance that more may be seen", { type: "number", min: "0", step: "any", value: "0.000001" }],
  ["absent", "Share of the invited who may be missing", { type: "number", min: "0", max: "0.9", step: "any", value: "0.2" }],
  ["hours", "Hours that it is open", { type: "number", min: "1", value: "72" }],
];

/** The form, with the planner's advice beside it while it is filled in. */
export function showCreation(actions) {
  const aside = element("section", { class: "advice", "aria-live": "polite", "aria-label": "What to expect" });
  const items = element("textarea", { id: "items", name: "items", rows: "5", required: true });
  const inputs = FIELDS.map(([name, words, settings]) => field(name, words, element("input", { id: name, name, ...settings })));
  const form = element(
    "form",
    { input: () => later(), submit: (event) => (event.preventDefault(), make()) },
    inputs.slice(0, 2),
    field("items", "Answers, one a line", items),
    inputs.slice(2),
    element("div", { class: "buttons" }, element("button", { class: "main", type: "submit" }, "Create and invite"), button("Back", actions.back)),
  );
  const make = () => {
    form.querySelectorAll("button").forEach((each) => (each.disabled = true));
    form.append(element("p", { role: "status" }, "Keys and invitations are being made …"));
    actions.make(valuesOf(form));
  };
  let [timer, busy, stale] = [null, false, false];
  const later = () => (clearTimeout(timer), (timer = setTimeout(advise, 500)));
  const advise = async () => {
    stale = busy; // one question at a time: the newest values are asked for when the answer is there
    if (busy) return;
    busy = true;
    const found = await actions.advise(valuesOf(form)).catch((problem) => ({ refused: problem.message }));
    busy = false;
    aside.replaceChildren(...adviceOf(found));
    if (stale) advise();
  };
  show(element("h1", {}, "New survey"), element("div", { class: "beside" }, form, aside));
  advise();
}

const valuesOf = (form) => Object.fromEntries(new FormData(form));
const field = (name, words, input) => element("div", { class: "field" }, element("label", { for: name }, words), input);

function adviceOf(found) {
  if (found.refused) return [element("h2", {}, "What to expect"), line(found.refused, { class: "warning" })];
  const rows = found.example.map(({ item, share, half }) => ({ item, estimate: share, low: Math.max(0, share - half), high: share + half }));
  return [
    element("h2", {}, "What to expect"),
    line(found.words),
    found.worthwhile ? null : line("Do not run this: the error is larger than an average answer's share.", { class: "warning" }),
    found.cautions.map((words) => line(words, { class: "warning" })),
    line("If all answers were equally frequent, the result could look like this:", { class: "quiet" }),
    element("ul", { class: "bars" }, rows.map((row) => element("li", {}, foreign("span", row.item), chart(row, axisOf(rows))))),
  ].flat().filter((each) => each !== null);
}

/** One survey: progress, what it waits for, what can be done, and the result. */
export function showSurvey(survey, result, budget, actions) {
  const { status } = survey;
  show(
    element("h1", {}, survey.name),
    line(survey.question),
    line(`${survey.mechanism}, epsilon ${survey.epsilon}, delta ${small(survey.delta)}; at least ${survey.minimum} of ${survey.n_max} people must answer`, { class: "quiet" }),
    survey.warning ? line(survey.warning, { class: "warning", role: "alert" }) : null,
    status ? progress(status, survey.minimum) : null,
    status ? controls(status, actions) : null,
    result ? resultOf(result, actions) : null,
    budget ? budgetOf(budget) : null,
    element("h2", {}, "Invitations"),
    element(
      "div",
      { class: "buttons" },
      button("Table of invitations (CSV)", () => actions.save("invitations.csv")),
      button("Invitations to print, with QR codes", () => actions.save("invitations.html")),
      button("Your surveys", actions.back),
    ),
  );
}

function progress(status, minimum) {
  const refused = Object.entries(status.rejections).map(([reason, count]) => element("li", {}, `${reason}: ${count}`));
  const words = `${status.users} of ${status.people} people have answered; ${minimum} must`;
  return element(
    "section",
    {},
    element("h2", {}, `State: ${status.state}`),
    element("progress", { max: status.people || 1, value: status.users, "aria-label": words }),
    line(words),
    line(`It waits for ${status.waits_for}. Next: ${status.next}.`),
    status.problem ? line(`Problem with the second server: ${status.problem}`, { class: "warning" }) : null,
    refused.length ? element("div", {}, line("Messages that were refused:"), element("ul", {}, refused)) : null,
  );
}

// State -> [words, wish, what goes with it, question to confirm it]
const CONTROLS = {
  draft: [["Open", "open", {}, null]],
  submitting: [
    ["Close now", "close", { state: "submitting" }, "Close the survey now? Nobody can answer any more."],
    ["One day more", "extend", { seconds: 86400 }, null],
    ["End without a result", "abort", { reason: "the owner" }, "End the survey without a result? This cannot be undone."],
  ],
};

function controls(status, actions) {
  const made = (CONTROLS[status.state] ?? []).map(([words, what, given, question]) =>
    button(words, () => (question === null || confirm(question) ? actions.tell(what, given) : null)),
  );
  return made.length ? element("div", { class: "buttons" }, made) : null;
}

function resultOf(result, actions) {
  if (result.ended !== undefined) return line(`There is no result: ${result.ended}`, { class: "warning" });
  const rows = result.estimates.map((row, at) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, foreign("span", row.item), chart(row, axisOf(result.estimates))),
      element("td", {}, percent(row.estimate)),
      element("td", {}, `${percent(row.low)} to ${percent(row.high)}`),
      element("td", {}, percent(result.consistent[at])),
    ),
  );
  const heads = ["Answer", "Estimate", "95% interval", "Consistent"].map((each) => element("th", { scope: "col" }, each));
  const { epsilon, delta, realized_epsilon: kept, realized_delta: left } = result.promised;
  return element(
    "section",
    {},
    element("h2", {}, "Result"),
    table(`Shares of the ${result.users} people counted`, heads, rows),
    line(`Promised: epsilon ${epsilon}, delta ${small(delta)}. Kept: epsilon ${kept}, delta ${small(left)}.`),
    line(`Consistent: ${result.about_consistent}.`, { class: "quiet" }),
    line(`Again: ${result.again}.`, { class: "quiet" }),
    element("div", { class: "buttons" }, ["csv", "json", "png", "svg"].map((kind) => button(kind.toUpperCase(), () => actions.save(`result.${kind}`)))),
  );
}

function budgetOf(budget) {
  const heads = ["Survey", "Epsilon", "Delta", "Status"].map((each) => element("th", { scope: "col" }, each));
  const rows = budget.surveys.map((each) =>
    element("tr", {}, element("th", { scope: "row" }, each.survey.slice(0, 8)), element("td", {}, each.epsilon), element("td", {}, small(each.delta)), element("td", {}, each.status)),
  );
  const spent = `Spent: epsilon ${budget.spent.epsilon} of ${budget.epsilon}, delta ${small(budget.spent.delta)} of ${small(budget.delta)}`;
  return element("section", {}, element("h2", {}, "Budget of these people"), line(spent), table("Surveys of this population", heads, rows));
}

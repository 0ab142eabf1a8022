// The owner's dashboard. The key stands after # in the address and goes with every call; nobody but this machine is called.

import { saveFile, show, element } from "./dom.js";
import { showCreation } from "./form_view.js";
import { headPage, learn, say } from "./language.js";
import { showList } from "./list_view.js";
import { button, quoted } from "./parts.js";
import { LANGUAGES } from "./strings.js";
import { showSurvey } from "./survey_view.js";

const SECONDS_BETWEEN_LOOKS = 3;
const OVER = ["published", "aborted"];
const key = location.hash.slice(1);

let render = () => {}; // shows the same again, in another language
let turn = 0; // grows with every new view, so that what was begun for another one stops

/** The answer of the dashboard's own server: JSON, or bytes of a file. What it refuses is thrown in its words. */
async function call(method, path, given) {
  const headers = { Authorization: `Bearer ${key}` };
  const body = given === undefined ? undefined : JSON.stringify(given);
  const answer = await fetch(`/api/${path}`, { method, headers, body }).catch(() => null);
  if (answer === null) throw new Error(say("notRunning"));
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail ?? `status ${answer.status}`);
  return answer.headers.get("content-type").includes("json") ? answer.json() : answer.blob();
}

async function attempt(action) {
  try {
    await action();
  } catch (problem) {
    showProblem(problem.message);
  }
}

function showProblem(words) {
  turn += 1;
  render = () =>
    show(
      element("h1", {}, say("problemTitle")),
      quoted(words, { role: "alert", class: "warning" }),
      element("div", { class: "buttons" }, button("toList", () => go({ view: "list" }), { class: "main" })),
    );
  render();
}

const VIEWS = { list, create, survey: ({ name }) => follow(name) };

/** Show a view, and remember it for the browser's way back. */
function go(to) {
  history.pushState(to, "");
  return VIEWS[to.view](to);
}

/** All surveys, brought up to date as long as they are looked at. */
function list() {
  const mine = (turn += 1);
  let surveys = null;
  const bring = async () => {
    const before = JSON.stringify(surveys);
    surveys = (await call("GET", "surveys")).surveys;
    if (turn === mine && JSON.stringify(surveys) !== before) render();
    if (turn === mine) setTimeout(() => turn === mine && attempt(bring), 1000 * SECONDS_BETWEEN_LOOKS);
  };
  render = () => showList(surveys, { open: (name) => go({ view: "survey", name }), create: () => go({ view: "create" }) });
  render();
  return attempt(bring);
}

function create() {
  turn += 1;
  let typed = {};
  render = () =>
    showCreation(typed, {
      keep: (values) => (typed = values),
      advise: (wished) => call("POST", "advice", wished),
      make: async (wished) => go({ view: "survey", name: (await call("POST", "surveys", wished)).name }),
      back: () => go({ view: "list" }),
    });
  render();
}

/** Show a survey, and bring it up to date until it is over. */
function follow(name) {
  const mine = (turn += 1);
  const path = `surveys/${name}`;
  let [news, bring, timer] = [null, () => {}, null];
  const actions = {
    tell: (what, given = {}) => attempt(async () => (await call("POST", `${path}/${what}`, given), await look())),
    save: (kind) => attempt(async () => saveFile(await call("GET", `${path}/files/${kind}`), `${name}-${kind}`)),
    people: async () => (await call("GET", `${path}/people`)).people,
    invitation: (at) => call("GET", `${path}/people/${at}`),
    back: () => go({ view: "list" }),
  };
  render = () => ((bring = showSurvey(name, actions)), news ? bring(news) : null);

  async function look() {
    clearTimeout(timer);
    const survey = await call("GET", path);
    const over = OVER.includes(survey.status?.state);
    const budget = survey.invited ? await call("GET", `${path}/budget`).catch(() => null) : null;
    const result = over ? await call("GET", `${path}/result`) : null;
    if (turn !== mine) return;
    news = { survey, result, budget };
    bring(news);
    if (!over) timer = setTimeout(() => turn === mine && attempt(look), 1000 * SECONDS_BETWEEN_LOOKS);
  }

  render();
  return attempt(look);
}

learn(LANGUAGES);
headPage(() => render());
addEventListener("popstate", ({ state }) => VIEWS[state?.view ?? "list"](state ?? {}));
list();

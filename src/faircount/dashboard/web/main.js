// The owner's dashboard. The key stands after # in the address and goes with every call; nobody but this machine is called.

import { saveFile, show, element } from "./dom.js";
import { showCreation } from "./form_view.js";
import { headPage, learn, say } from "./language.js";
import { showList } from "./list_view.js";
import { button, refusal, Refused, saidBy } from "./parts.js";
import { LANGUAGES } from "./strings.js";
import { showSurvey } from "./survey_view.js";

const SECONDS_BETWEEN_LOOKS = 3;
const OVER = ["published", "aborted"];
const key = location.hash.slice(1);

let render = () => {}; // shows the same again, in another language
let turn = 0; // grows with every new view, so that what was begun for another one stops

/** The answer of the dashboard's own server: JSON, or bytes of a file. What it refuses is thrown. */
async function call(method, path, given) {
  const headers = { Authorization: `Bearer ${key}` };
  const body = given === undefined ? undefined : JSON.stringify(given);
  const answer = await fetch(`/api/${path}`, { method, headers, body }).catch(() => null);
  if (answer === null) throw new Refused({ words: "", code: "notRunning" });
  if (!answer.ok) throw new Refused(await answer.json().catch(() => ({ words: `status ${answer.status}` })));
  return answer.headers.get("content-type").includes("json") ? answer.json() : answer.blob();
}

async function attempt(action) {
  try {
    await action();
  } catch (problem) {
    showProblem(saidBy(problem));
  }
}

function showProblem(said) {
  turn += 1;
  render = () =>
    show(
      element("h1", {}, say("problemTitle")),
      refusal(said, { role: "alert", class: "warning" }),
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
  let [surveys, bring] = [null, () => {}];
  const actions = { open: (name) => go({ view: "survey", name }), create: () => go({ view: "create" }) };
  render = () => ((bring = showList(actions)), surveys ? bring(surveys) : null);
  const look = async () => {
    ({ surveys } = await call("GET", "surveys"));
    if (turn !== mine) return;
    bring(surveys);
    setTimeout(() => turn === mine && attempt(look), 1000 * SECONDS_BETWEEN_LOOKS);
  };
  render();
  return attempt(look);
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
  let [news, second, bring, timer] = [null, { at_s2: null, budget: null }, () => {}, null];
  const actions = {
    tell: (what, given = {}) => attempt(async () => (await call("POST", `${path}/${what}`, given), await look())),
    save: (kind) => attempt(async () => saveFile(await call("GET", `${path}/files/${kind}`), `${name}-${kind}`)),
    people: async () => (await call("GET", `${path}/people`)).people,
    invitation: (at) => call("GET", `${path}/people/${at}`),
    back: () => go({ view: "list" }),
  };
  const tell = () => (news && turn === mine ? bring({ ...news, ...second }) : null);
  const isOver = () => OVER.includes(news?.survey.status?.state);
  const later = (action) => setTimeout(() => turn === mine && attempt(action), 1000 * SECONDS_BETWEEN_LOOKS);
  render = () => ((bring = showSurvey(name, actions)), tell());

  async function look() {
    clearTimeout(timer);
    const survey = await call("GET", path);
    news = { survey, result: news?.result ?? null };
    if (isOver()) news.result = await call("GET", `${path}/result`);
    tell();
    if (turn === mine && !isOver()) timer = later(look);
  }

  /** What S2 says is asked for apart: one server that is slow holds up nothing that the other one tells. */
  async function lookAtSecond() {
    const last = isOver();
    if (news?.survey.invited) second = await call("GET", `${path}/second`);
    tell();
    if (turn === mine && !last) later(lookAtSecond);
  }

  render();
  return attempt(async () => (await look(), await lookAtSecond()));
}

learn(LANGUAGES);
headPage(() => render());
addEventListener("popstate", ({ state }) => VIEWS[state?.view ?? "list"](state ?? {}));
list();

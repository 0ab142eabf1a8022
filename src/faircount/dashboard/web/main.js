// The owner's dashboard. The key follows the # in the address and goes with every request; the page
// contacts only this computer.

import { element, saveFile, show } from "./dom.js";
import { showCreation } from "./form_view.js";
import { setLanguages, setUpHeader, translate } from "./language.js";
import { showList } from "./list_view.js";
import { button, DashboardError, payloadOf, problemMessage } from "./parts.js";
import { LANGUAGES } from "./strings.js";
import { showSurvey } from "./survey_view.js";

const MILLISECONDS_BETWEEN_LOOKS = 3000;
const FINAL_PHASES = ["published", "aborted"];
const key = location.hash.slice(1);

let render = () => {}; // shows the current view again, for example in another language
let turn = 0; // grows with every new view, so that work started for an earlier one stops

/** The response of the dashboard's program: JSON, or the bytes of a file. Errors are thrown. */
async function call(method, path, values) {
  const headers = { Authorization: `Bearer ${key}` };
  const body = values === undefined ? undefined : JSON.stringify(values);
  const response = await fetch(`/api/${path}`, { method, headers, body }).catch(() => null);
  if (response === null) throw new DashboardError({ message: "", code: "notRunning" });
  if (!response.ok) {
    const unknown = { message: `status ${response.status}` };
    throw new DashboardError(await response.json().catch(() => unknown));
  }
  const isJson = response.headers.get("content-type").includes("json");
  return isJson ? response.json() : response.blob();
}

async function attempt(action) {
  try {
    await action();
  } catch (problem) {
    showProblem(payloadOf(problem));
  }
}

function showProblem(payload) {
  turn += 1;
  const toList = () => go({ view: "list" });
  render = () =>
    show(
      element("h1", {}, translate("problemTitle")),
      problemMessage(payload, { role: "alert", class: "warning" }),
      element("div", { class: "buttons" }, button("toList", toList, { class: "main" })),
    );
  render();
}

const VIEWS = { list, create, survey: ({ name }) => follow(name) };

/** Show a view, and remember it for the browser's back button. */
function go(to) {
  history.pushState(to, "");
  return VIEWS[to.view](to);
}

/** All surveys, updated while the list is shown. */
function list() {
  const mine = (turn += 1);
  let surveys = null;
  let update = () => {};
  const actions = {
    open: (name) => go({ view: "survey", name }),
    create: () => go({ view: "create" }),
  };
  const look = async () => {
    ({ surveys } = await call("GET", "surveys"));
    if (turn !== mine) return;
    update(surveys);
    setTimeout(() => turn === mine && attempt(look), MILLISECONDS_BETWEEN_LOOKS);
  };
  render = () => {
    update = showList(actions);
    if (surveys) update(surveys);
  };
  render();
  return attempt(look);
}

function create() {
  turn += 1;
  let typed = {};
  const actions = {
    keep: (values) => (typed = values),
    advise: (values) => call("POST", "advice", values),
    create: async (values) => {
      const { name } = await call("POST", "surveys", values);
      go({ view: "survey", name });
    },
    back: () => go({ view: "list" }),
  };
  render = () => showCreation(typed, actions);
  render();
}

/** Show a survey, and update it until it is over. */
function follow(name) {
  const mine = (turn += 1);
  const path = `surveys/${name}`;
  let survey = null;
  let result = null;
  let second = { aggregator: null, budget: null };
  let update = () => {};
  let timer = null;

  const actions = {
    request: (what, values = {}) =>
      attempt(async () => {
        await call("POST", `${path}/${what}`, values);
        await look();
      }),
    save: (kind) =>
      attempt(async () => {
        saveFile(await call("GET", `${path}/files/${kind}`), `${name}-${kind}`);
      }),
    people: async () => (await call("GET", `${path}/people`)).people,
    invitation: (position) => call("GET", `${path}/people/${position}`),
    back: () => go({ view: "list" }),
  };
  const isOver = () => FINAL_PHASES.includes(survey?.status?.phase);
  const later = (action) =>
    setTimeout(() => turn === mine && attempt(action), MILLISECONDS_BETWEEN_LOOKS);
  const display = () => {
    if (survey && turn === mine) update({ survey, result, ...second });
  };
  render = () => {
    update = showSurvey(name, actions);
    display();
  };

  async function look() {
    clearTimeout(timer);
    survey = await call("GET", path);
    if (isOver()) result = await call("GET", `${path}/result`);
    display();
    if (turn === mine && !isOver()) timer = later(look);
  }

  /**
   * The aggregator is asked separately, so that a slow one does not delay the coordinator's news.
   */
  async function lookAtAggregator() {
    const isLast = isOver();
    if (survey?.invited) second = await call("GET", `${path}/aggregator`);
    display();
    if (turn === mine && !isLast) later(lookAtAggregator);
  }

  render();
  return attempt(async () => {
    await look();
    await lookAtAggregator();
  });
}

setLanguages(LANGUAGES);
setUpHeader(() => render());
addEventListener("popstate", ({ state }) => VIEWS[state?.view ?? "list"](state ?? {}));
list();

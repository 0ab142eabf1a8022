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

/** The form of a new survey; with `copy` it begins as that survey. */
async function create({ copy = "" }) {
  const mine = (turn += 1);
  let typed = {};
  if (copy) await attempt(async () => (typed = await call("GET", `surveys/${copy}/form`)));
  if (turn !== mine) return;
  const actions = {
    keep: (values) => (typed = values),
    advise: (values) => call("POST", "advice", values),
    readQuestions: (values) => call("POST", "questions", values),
    describePeople: (values) => call("POST", "people", values),
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
  let mail = null;
  let second = { aggregator: null, budget: null };
  let update = () => {};
  let timer = null;
  let mailTimer = null;

  const actions = {
    request: (what, values = {}) =>
      attempt(async () => {
        await call("POST", `${path}/${what}`, values);
        await look();
        await lookAtMail();
      }),
    save: (kind) =>
      attempt(async () => {
        saveFile(await call("GET", `${path}/files/${kind}`), `${name}-${kind}`);
      }),
    mail: async (values) => {
      const found = await call("POST", `${path}/mail`, values);
      await lookAtMail();
      return found;
    },
    repeat: () =>
      attempt(async () => {
        const { name: next } = await call("POST", `${path}/repeat`);
        go({ view: "survey", name: next });
      }),
    copy: () => go({ view: "create", copy: name }),
    reissue: (position) => call("POST", `${path}/people/${position}/reissue`),
    people: async () => (await call("GET", `${path}/people`)).people,
    invitation: (position) => call("GET", `${path}/people/${position}`),
    back: () => go({ view: "list" }),
  };
  const isOver = () =>
    survey?.deleted || survey?.ended || FINAL_PHASES.includes(survey?.status?.phase);
  const later = (action) =>
    setTimeout(() => turn === mine && attempt(action), MILLISECONDS_BETWEEN_LOOKS);
  const display = () => {
    if (survey && turn === mine) update({ survey, result, mail, ...second });
  };
  render = () => {
    update = showSurvey(name, actions);
    display();
  };

  async function look() {
    clearTimeout(timer);
    survey = await call("GET", path);
    if (isOver()) {
      const found = await call("GET", `${path}/result`);
      const trend = found.ended ? {} : await call("GET", `${path}/trend`);
      result = { ...found, trend };
    }
    display();
    if (turn === mine && !isOver()) timer = later(look);
  }

  /**
   * The aggregator is asked separately, so that a slow one does not delay the coordinator's news.
   */
  async function lookAtAggregator() {
    const isLast = isOver();
    const isKnown = survey?.invited && !survey.deleted;
    if (isKnown) second = await call("GET", `${path}/aggregator`);
    display();
    if (turn === mine && !isLast) later(lookAtAggregator);
  }

  /** Looked at again only while mails are sent. */
  async function lookAtMail() {
    if (!survey?.invited || isOver()) return;
    mail = await call("GET", `${path}/mail`);
    display();
    clearTimeout(mailTimer);
    if (mail.job?.state === "running" && turn === mine) mailTimer = later(lookAtMail);
  }

  render();
  return attempt(async () => {
    await look();
    await lookAtMail();
    await lookAtAggregator();
  });
}

setLanguages(LANGUAGES);
setUpHeader(() => render());
addEventListener("popstate", ({ state }) => VIEWS[state?.view ?? "list"](state ?? {}));
list();

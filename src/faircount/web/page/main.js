// The participant's page: from an invitation to an answer, and to the result. Nothing is sent before a person has chosen
// and confirmed: until then only parameters and status are read, which say nothing about the person.

import { readCode } from "../client/code.js";
import { systemRandom } from "../client/random.js";
import { Refusal } from "../client/refusal.js";
import { submission } from "../client/submission.js";
import { checkBrowser } from "./browser_check.js";
import { element, foreign, quoted, show } from "./dom.js";
import { hasSentence, headPage, learn, say } from "./language.js";
import { lastWordOf, statusOf, Unreachable } from "./network.js";
import {
  believedEnd, invitedParameters, isOver, keep, parametersOfRecord, recordId, visit, withdraw,
} from "./participation.js";
import { resultSection } from "./result_view.js";
import { showStanding } from "./standing_view.js";
import { load, loadAll, remove } from "./store.js";
import { LANGUAGES } from "./strings.js";
import { showConfirmation, showQuestion } from "./survey_view.js";

const OPEN = ["draft", "submitting"];
const SECONDS_BETWEEN_LOOKS = 5;
const LONGEST_PAUSE = 60;

let render = () => {}; // shows the same again, in another language
let turn = 0; // grows with every new page, so that what was begun for another one stops

/** Do something; what refuses it is shown. */
async function attempt(action) {
  try {
    await action();
  } catch (problem) {
    showRefusal(problem);
  }
}

function showRefusal(problem) {
  const code = problem instanceof Unreachable ? "unreachable" : problem instanceof Refusal ? problem.code : "other";
  const other = !hasSentence(`refusal_${code}`);
  render = () =>
    show(
      element("h1", {}, say("refusalTitle")),
      element(
        "div",
        { class: "warning", role: "alert", "data-refusal": code },
        element("p", {}, say(other ? "refusal_other" : `refusal_${code}`)),
        other || code === "other" ? quoted(problem.message) : null,
      ),
      element("p", {}, say("refusalNothing")),
      element("div", { class: "buttons" }, element("button", { type: "button", click: () => begin() }, say("again"))),
    );
  render();
}

/** Begin with the address of the page. */
function begin() {
  const mine = (turn += 1);
  return attempt(async () => {
    await checkBrowser();
    if (turn !== mine) return;
    if (location.hash.length > 1) await openInvitation(decodeURIComponent(location.hash.slice(1)));
    else await showEntry();
  });
}

/** Without an invitation: a field for the code, and what was answered here. */
async function showEntry() {
  const mine = turn;
  const parts = await Promise.all((await loadAll()).map(async (record) => [record, await parametersOfRecord(record)]));
  if (turn !== mine) return;
  render = () => {
    const field = element("textarea", { id: "code", rows: "4", autocomplete: "off", spellcheck: "false", dir: "ltr" });
    const open = (event) => (event.preventDefault(), attempt(() => openInvitation(field.value)));
    const earlier = parts.map(([record, params]) =>
      foreign("button", say("earlierButton", { question: params.question }), { type: "button", click: () => attempt(() => follow(record.id)) }),
    );
    show(
      element("h1", {}, say("pasteTitle")),
      element("p", {}, say("pasteWords")),
      element(
        "form",
        { submit: open },
        element("label", { for: "code" }, say("pasteLabel")),
        field,
        element("button", { class: "main", type: "submit" }, say("pasteButton")),
      ),
      ...(earlier.length ? [element("h2", {}, say("earlierTitle")), element("div", { class: "buttons" }, earlier)] : []),
    );
  };
  render();
}

async function openInvitation(text) {
  const mine = (turn += 1);
  const code = await readCode(text);
  const record = await load(recordId(code.survey, code.invitation.user));
  if (record) return follow(record.id);
  render = () => show(element("h1", {}, say("loading")));
  render();
  const params = await invitedParameters(new URL(".", document.baseURI).href, code);
  const status = await statusOf(params);
  if (turn !== mine) return;
  if (status && !OPEN.includes(status.state)) return showClosed(params);
  askQuestion(params, code.invitation);
}

/** Somebody who comes too late may still read the result. */
async function showClosed(params) {
  const signed = await lastWordOf(params);
  const said = signed?.name === "Signed" ? await believedEnd(params, signed) : null;
  render = () =>
    show(
      element("h1", {}, say("closedTitle")),
      foreign("p", params.question, { class: "quiet" }),
      element("p", {}, say("closedWords")),
      said?.name === "Published" ? resultSection(params, said) : null,
    );
  render();
}

function askQuestion(params, invitation) {
  let chosen = null;
  render = () => showQuestion(params, chosen, (at) => (chosen = at), (at) => attempt(() => confirm(at)));
  render();

  async function confirm(answer) {
    const made = await submission(params, invitation, answer, systemRandom);
    render = () => showConfirmation(params, answer, made, () => attempt(() => send(made)), back);
    render();
  }

  function back() {
    askQuestion(params, invitation);
  }

  async function send(made) {
    const record = await written(() => keep(params, invitation, made));
    history.replaceState(null, "", location.pathname); // the token has done its work
    await follow(record.id);
  }
}

async function written(action) {
  try {
    return await action();
  } catch (problem) {
    throw new Refusal("storage", problem.message);
  }
}

/** Follow a record until its survey is over: send what waits, look how things stand, again and again. */
async function follow(id) {
  const mine = (turn += 1);
  let record = await load(id);
  const params = await parametersOfRecord(record);
  let news = { status: null, unreachable: false, early: false };
  let [bring, shown, pause, timer] = [() => {}, "", 1, null];
  let again = ["sent", "withdrawn"].includes(record.stage); // on an earlier visit

  const actions = {
    check: async () => (await look(), isOver(record)),
    withdraw: () => attempt(async () => ((record = await reached(() => withdraw(id)) ?? (await load(id))), display())),
    forget: () => attempt(async () => (await remove(id), (turn += 1), showEntry())),
  };
  render = async () => (bring = await showStanding(record, params, news, actions));

  async function display() {
    const now = JSON.stringify([record.stage, record.disbelieved, record.tooLate, news.unreachable, news.early]);
    if (now !== shown) {
      shown = now;
      await render();
    } else bring(news.status);
  }

  /** The outcome of a call, or null where S1 cannot be reached. */
  async function reached(action) {
    try {
      const found = await action();
      news = { ...news, unreachable: false };
      return found;
    } catch (problem) {
      if (!(problem instanceof Unreachable)) throw problem;
      news = { ...news, unreachable: true };
      return null;
    }
  }

  async function look() {
    clearTimeout(timer);
    record = (await reached(() => visit(id, again))) ?? (await load(id));
    again = news.unreachable && again;
    const status = (await statusOf(params).catch(() => null)) ?? news.status; // told for interest alone
    news = { ...news, status, early: record.stage === "waiting" && status?.state === "draft" };
    if (turn !== mine) return;
    await display();
    pause = record.stage === "sent" ? SECONDS_BETWEEN_LOOKS : Math.min(2 * pause, LONGEST_PAUSE);
    if (!isOver(record)) timer = setTimeout(wake, 1000 * pause * (1 + systemRandom(1)[0] / 256));
  }

  const wake = () => (turn === mine ? attempt(look) : null);
  const hurry = () => ((pause = 1), document.visibilityState === "visible" && !isOver(record) ? wake() : null);
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  await display();
  await look();
}

learn(LANGUAGES);
headPage(() => render());
addEventListener("hashchange", () => begin());
begin();

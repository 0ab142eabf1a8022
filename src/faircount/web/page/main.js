// The participant's page: from an invitation to a response, and to the result. Nothing is sent
// before the participant has chosen and confirmed; until then the page only fetches parameters and
// status, which say nothing about the participant.

import { readCode } from "../client/code.js";
import { systemRandom } from "../client/random.js";
import { Refusal } from "../client/refusal.js";
import { makeReport } from "../client/report.js";
import { checkBrowser } from "./browser_check.js";
import { showConfirmation } from "./confirmation_view.js";
import { element, englishText, ownerText, show } from "./dom.js";
import { hasText, setLanguages, setUpHeader, translate } from "./language.js";
import { fetchFinalStatement, fetchStatus, Unreachable } from "./network.js";
import { serverAddress } from "./origin.js";
import {
  invitedParameters, isOver, parametersOfRecord, recordId, storeReport, verifyOutcome, visit,
  withdraw,
} from "./participation.js";
import { showParticipationStatus } from "./participation_status_view.js";
import { emptyDraft } from "./question_form.js";
import { resetQuestionLanguage, surveyName } from "./question_words.js";
import { resultSection } from "./result_view.js";
import { load, loadAll, remove } from "./store.js";
import { LANGUAGES } from "./strings.js";
import { showQuestions } from "./survey_view.js";
import { say } from "./wording.js";

const OPEN_PHASES = ["draft", "submitting"];
const SECONDS_BETWEEN_VISITS = 5;
const LONGEST_PAUSE = 60;

let render = () => {}; // shows the current view again, for example in another language
let turn = 0; // grows with every new view, so that work started for an earlier one stops

/** Run an action; an error is shown in place of the view. */
async function attempt(action) {
  try {
    await action();
  } catch (problem) {
    showRefusal(problem);
  }
}

function refusalCode(problem) {
  if (problem instanceof Unreachable) return "unreachable";
  return problem instanceof Refusal ? problem.code : "other";
}

function showRefusal(problem) {
  const code = refusalCode(problem);
  const isExplained = code !== "other" && hasText(`refusal_${code}`);
  render = () =>
    show(
      element("h1", {}, translate("refusalTitle")),
      element(
        "div",
        { class: "warning", role: "alert", "data-refusal": code },
        element("p", {}, translate(isExplained ? `refusal_${code}` : "refusal_other")),
        isExplained ? null : englishText(problem.message),
      ),
      element("p", {}, translate("refusalNothing")),
      element(
        "div",
        { class: "buttons" },
        element("button", { type: "button", click: () => begin() }, translate("again")),
      ),
    );
  render();
}

/** Start with the address of the page: the invitation's code follows the #. */
function begin() {
  const mine = (turn += 1);
  return attempt(async () => {
    await checkBrowser();
    if (turn !== mine) return;
    if (location.hash.length > 1) {
      return openInvitation(decodeURIComponent(location.hash.slice(1)));
    }
    // After a reload the participant sees the survey again that this tab has shown.
    const id = history.state?.record;
    return id && (await load(id)) ? follow(id) : showEntry();
  });
}

/** Without an invitation: a field for the code, and the surveys answered on this device. */
async function showEntry() {
  const mine = turn;
  const records = await loadAll();
  const surveys = await Promise.all(records.map(parametersOfRecord));
  if (turn !== mine) return;
  render = () => {
    const settings = { rows: "4", autocomplete: "off", spellcheck: "false", dir: "ltr" };
    const field = element("textarea", { id: "code", ...settings });
    const open = (event) => {
      event.preventDefault();
      attempt(() => openInvitation(field.value));
    };
    show(
      element("h1", {}, translate("pasteTitle")),
      element("p", {}, translate("pasteText")),
      element(
        "form",
        { submit: open },
        element("label", { for: "code" }, translate("pasteLabel")),
        field,
        element("button", { class: "main", type: "submit" }, translate("pasteButton")),
      ),
      ...earlierSurveys(records, surveys),
    );
  };
  render();
}

function earlierSurveys(records, surveys) {
  if (!records.length) return [];
  const entries = records.map(({ id, stage }, at) => {
    const label = translate("earlierButton", { question: surveyName(surveys[at]) });
    const click = () => attempt(() => follow(id));
    return element(
      "li",
      {},
      ownerText("button", label, { type: "button", click }),
      element("p", { class: "quiet" }, say(surveys[at], `${stage}Title`)),
    );
  });
  return [
    element("h2", {}, translate("earlierTitle")),
    element("ul", { class: "earlier" }, entries),
  ];
}

async function openInvitation(text) {
  const mine = (turn += 1);
  const code = await readCode(text);
  // A survey answered here before is never asked again: a second report would be a second draw.
  const record = await load(recordId(code.survey, code.invitation.user));
  if (record) return follow(record.id);
  render = () => show(element("h1", {}, translate("loading")));
  render();
  const params = await invitedParameters(serverAddress(), code);
  resetQuestionLanguage();
  const status = await fetchStatus(params);
  if (turn !== mine) return;
  if (status && !OPEN_PHASES.includes(status.phase)) return showClosed(params);
  askQuestions(params, code.invitation);
}

/** Participants who come too late may still read the result. */
async function showClosed(params) {
  const signed = await fetchFinalStatement(params);
  const outcome = signed?.name === "Signed" ? await verifyOutcome(params, signed) : null;
  render = () =>
    show(
      element("h1", {}, translate("closedTitle")),
      ownerText("p", surveyName(params), { class: "quiet" }),
      element("p", {}, translate("closedText")),
      outcome?.name === "Published" ? resultSection(params, outcome) : null,
    );
  render();
}

function askQuestions(params, invitation, draft = emptyDraft()) {
  const proceed = (sheet, level) => attempt(() => confirm(sheet, level));
  render = () => showQuestions(params, draft, proceed, () => render());
  render();

  async function confirm(sheet, level) {
    // Everything random is drawn here, once: what is shown is what is stored and sent.
    const report = await makeReport(params, invitation, sheet, systemRandom, level);
    const back = () => askQuestions(params, invitation, draft);
    const sendReport = () => attempt(() => send(report));
    const answer = { sheet, level };
    render = () => showConfirmation(params, answer, report, sendReport, back);
    render();
  }

  async function send(report) {
    let record;
    try {
      record = await storeReport(params, invitation, report);
    } catch (problem) {
      // Not stored means not sent: a reload would draw the noise a second time.
      throw new Refusal("storage", problem.message);
    }
    // The token is not needed any more; the record's id is no secret and survives a reload.
    history.replaceState({ record: record.id }, "", location.pathname);
    await follow(record.id);
  }
}

/** Follow a participation until its survey is over: send what waits, and ask for the outcome. */
async function follow(id) {
  const mine = (turn += 1);
  let record = await load(id);
  const params = await parametersOfRecord(record);
  let news = { status: null, unreachable: false, early: false };
  let updateProgress = () => {};
  let shown = "";
  let pause = 1;
  let timer = null;
  // What was acknowledged on an earlier visit is sent once more, in case the server was restored.
  let resend = ["sent", "withdrawn"].includes(record.stage);

  const actions = {
    check: async () => {
      await look();
      return isOver(record);
    },
    withdraw: () =>
      attempt(async () => {
        record = (await reach(() => withdraw(id))) ?? (await load(id));
        await display();
      }),
    forget: () =>
      attempt(async () => {
        await remove(id);
        history.replaceState(null, "", location.pathname);
        turn += 1;
        await showEntry();
      }),
  };
  render = async () => {
    updateProgress = await showParticipationStatus(record, params, news, actions);
  };

  /** Show the view again only if it has changed, so that nobody loses the place on the page. */
  async function display() {
    const { stage, unverified, tooLate, notices, takenOver } = record;
    const told = [notices, takenOver];
    const now = JSON.stringify([stage, unverified, tooLate, told, news.unreachable, news.early]);
    if (now === shown) return updateProgress(news.status);
    shown = now;
    await render();
  }

  /** The result of an action, or null if the coordinator cannot be reached. */
  async function reach(action) {
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
    record = (await reach(() => visit(id, resend))) ?? (await load(id));
    resend = news.unreachable && resend;
    // The status is for information only: nothing depends on it, so an error is ignored.
    const status = (await fetchStatus(params).catch(() => null)) ?? news.status;
    news = { ...news, status, early: record.stage === "waiting" && status?.phase === "draft" };
    if (turn !== mine) return;
    await display();
    if (isOver(record)) return;
    const isSent = record.stage === "sent";
    pause = isSent ? SECONDS_BETWEEN_VISITS : Math.min(2 * pause, LONGEST_PAUSE);
    // Random, so that thousands of pages do not come back at the same moment after an outage.
    timer = setTimeout(wake, 1000 * pause * (1 + systemRandom(1)[0] / 256));
  }

  const wake = () => (turn === mine ? attempt(look) : null);
  const hurry = () => {
    pause = 1;
    if (document.visibilityState === "visible" && !isOver(record)) wake();
  };
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  await display();
  await look();
}

setLanguages(LANGUAGES);
setUpHeader(() => render());
addEventListener("hashchange", () => begin());
begin();

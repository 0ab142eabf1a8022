// After a person has answered: where things stand, and what can still be done.

import { bytesText } from "../client/bytes.js";
import { askFirst } from "./dialog.js";
import { element, foreign, quoted, saveFile, show } from "./dom.js";
import { ending } from "./endings.js";
import { moment, say, written } from "./language.js";
import { isOver, outcomeOf, receiptOf } from "./participation.js";
import { resultSection } from "./result_view.js";

const CONFLICT = 2;
const REFUSALS = { 2: "refusedConflict", 3: "refusedUnknown", 5: "refusedLate", 13: "refusedLate" };

/**
 * Show a record. `news`: {status, unreachable, early}; `actions`: {check, withdraw, forget}. Returns a function that
 * brings only the progress up to date.
 */
export async function showStanding(record, params, news, actions) {
  const outcome = await outcomeOf(record, params);
  const progress = element("div", { role: "status" });
  show(
    element("h1", {}, say(titleOf(record, news))),
    foreign("p", params.question, { class: "quiet" }),
    sentences(record, news).map((words) => foreign("p", words)),
    servers(record, outcome),
    record.disbelieved ? warning(say("disbelieved", { times: written(record.disbelieved) })) : null,
    progress,
    outcome?.name === "Published" ? resultSection(params, outcome) : null,
    buttons(record, params, actions),
    element("p", { class: "quiet" }, say("kept")),
    params.contact ? foreign("p", say("contact", { contact: params.contact }), { class: "quiet" }) : null,
  );
  const bring = (status) => progress.replaceChildren(...progressOf(record, status));
  bring(news.status);
  return bring;
}

const warning = (words) => element("p", { class: "warning", role: "alert" }, words);

function titleOf(record, news) {
  if (record.stage === "waiting" && !news.unreachable && !news.early && !record.disbelieved) return "sendingTitle";
  return `${record.stage}Title`;
}

/** Why the survey ended or the answer was refused, where servers tell it: in this language, or marked as English. */
function servers({ stage, reason, words }, outcome) {
  if (stage === "refused" && !REFUSALS[reason]) return quoted(words);
  if (stage !== "ended" || !outcome) return null;
  const why = ending(bytesText(outcome.reason));
  const told = why.name ? element("p", {}, say(why.name, why.values)) : why.english ? quoted(why.words) : foreign("p", why.words);
  return [element("p", {}, say("endedWords")), told];
}

function sentences(record, news) {
  const { stage } = record;
  if (stage === "waiting") return news.unreachable ? [say("waitingWords")] : news.early ? [say("earlyWords")] : [];
  if (stage === "leaving") return news.unreachable ? [say("leavingWords")] : [];
  if (stage === "refused") return [say(REFUSALS[record.reason] ?? "refusedOther")];
  if (stage === "ended") return [];
  if (record.forgotten) return [say("forgottenWords")];
  const late = record.tooLate ? [say("tooLateWords")] : [];
  return [say(`${stage}Words`), ...late];
}

function progressOf(record, status) {
  if (!status || isOver(record) || !Number.isInteger(status.users)) return [];
  const counts = { users: written(status.users), people: written(status.people) };
  const open = ["draft", "submitting"].includes(status.state);
  const label = say(open ? "progress" : "progressClosed", counts);
  return [
    element("h2", {}, say("progressTitle")),
    element("p", {}, label),
    element("progress", { max: status.people, value: status.users, "aria-label": label }),
    open && status.closes_at ? element("p", {}, say("closes", { when: moment(status.closes_at) })) : null,
  ].filter((each) => each !== null);
}

function buttons(record, params, actions) {
  const button = (words, click) => element("button", { type: "button", click }, say(words));
  const said = element("p", { role: "status" });
  const check = async () => (said.textContent = (await actions.check()) ? "" : say("checkedNothing"));
  return element(
    "div",
    {},
    element(
      "div",
      { class: "buttons" },
      record.stage === "sent" ? button("checkButton", check) : null,
      record.acknowledgements.length ? button("receiptButton", () => saveReceipt(record, params)) : null,
      ["waiting", "sent"].includes(record.stage) ? button("withdrawButton", () => askWithdrawal(actions)) : null,
      button("forgetButton", actions.forget),
    ),
    said,
    record.acknowledgements.length ? element("p", { class: "quiet" }, say("receiptWords")) : null,
    isOver(record) && record.reason !== CONFLICT ? null : element("p", { class: "quiet" }, say("forgetWords")),
  );
}

function askWithdrawal(actions) {
  askFirst({ question: say("withdrawSure"), yes: say("withdrawYes"), no: say("withdrawNo") }, actions.withdraw);
}

function saveReceipt(record, params) {
  const text = `${JSON.stringify(receiptOf(record, params), null, 1)}\n`;
  saveFile(new Blob([text], { type: "application/json" }), "faircount-receipt.json");
}

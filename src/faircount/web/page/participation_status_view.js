// After a participant has answered: the status of the participation, and what can still be done.

import { bytesText } from "../client/bytes.js";
import { confirmFirst } from "./dialog.js";
import { element, englishText, ownerText, saveFile, show } from "./dom.js";
import { describeEnding, isEnglish } from "./endings.js";
import { formatNumber, formatTime, translate } from "./language.js";
import { hasLevels } from "./levels.js";
import { operatorNames } from "./operators.js";
import { INVITATION_USED, isOver, outcomeOf, receiptOf } from "./participation.js";
import { surveyName } from "./question_words.js";
import { resultSection } from "./result_view.js";
import { say } from "./wording.js";

const CONFLICT = 2;
// By the protocol's number of the reason; for any other number the server's own text is shown.
const REJECTIONS = {
  1: "refusedMalformed",
  2: "refusedConflict",
  3: "refusedUnknown",
  4: "refusedUnsigned",
  5: "refusedLate",
  7: "refusedFull",
  8: "refusedDigest",
  13: "refusedLate",
  [INVITATION_USED]: "refusedUsed",
  15: "refusedReplaced",
};
// By the bit with which the coordinator tells what else happened with the invitation.
const NOTICES = { 1: "noticeOtherDevice", 2: "noticeReissue" };

/**
 * Show a record. `news`: {status, unreachable, early}; `actions`: {check, withdraw, forget}.
 * Returns a function that updates the progress only.
 */
export async function showParticipationStatus(record, params, news, actions) {
  const outcome = await outcomeOf(record, params);
  const progress = element("div", { role: "status" });
  show(
    element("h1", {}, say(params, titleOf(record, news))),
    ownerText("p", surveyName(params), { class: "quiet" }),
    sentences(record, news).map((name) => element("p", {}, say(params, name))),
    reasons(record, params, outcome),
    noticeWarnings(record, params),
    record.unverified ? unverifiedWarning(record) : null,
    progress,
    outcome?.name === "Published" ? resultSection(params, outcome) : null,
    buttons(record, params, actions),
    element("p", { class: "quiet" }, say(params, keptBy(record)), alsoNotKept(params)),
    contact(params),
  );
  const update = (status) => progress.replaceChildren(...progressOf(record, status));
  update(news.status);
  return update;
}

const alsoNotKept = (params) => (hasLevels(params) ? ` ${translate("keptNoLevel")}` : null);
const keptBy = ({ stage }) => (stage === "withdrawn" ? "keptWithdrawal" : "kept");

function unverifiedWarning({ unverified }) {
  const text = translate("unverified", { times: formatNumber(unverified) });
  return element("p", { class: "warning", role: "alert" }, text);
}

function noticeWarnings({ notices, takenOver }, params) {
  const names = Object.keys(NOTICES).filter((bit) => notices & bit).map((bit) => NOTICES[bit]);
  // check: page-taken-over - a restored server takes the owner's device for the first one
  if (takenOver) names.push("refusedUsed");
  return names.map((name) =>
    element("p", { class: "warning", role: "alert" }, say(params, name)),
  );
}

function contact({ contact: address }) {
  if (!address) return null;
  return ownerText("p", translate("contact", { contact: address }), { class: "quiet" });
}

function titleOf({ stage, unverified }, { unreachable, early }) {
  const isSending = stage === "waiting" && !unreachable && !early && !unverified;
  return isSending ? "sendingTitle" : `${stage}Title`;
}

/** Why the survey ended or the report was rejected: in this language, or marked as English. */
function reasons({ stage, reason, detail }, params, outcome) {
  if (stage === "refused" && !REJECTIONS[reason]) return englishText(detail);
  if (stage !== "ended" || !outcome) return null;
  const { code, values } = describeEnding(outcome);
  const numbers = Object.entries(values).map(([name, value]) => [name, formatNumber(value)]);
  const shown = { ...operatorNames(params), ...Object.fromEntries(numbers) };
  return [
    element("p", {}, translate("endedText")),
    ownerText("p", translate(`ending_${code}`, shown)),
    endingDetail(code, bytesText(outcome.detail)),
  ];
}

function endingDetail(code, text) {
  if (!text) return null;
  return isEnglish(code) ? englishText(text) : ownerText("p", text);
}

/** The names of the sentences that say where things stand. */
function sentences(record, { unreachable, early }) {
  const { stage } = record;
  if (stage === "waiting" && unreachable) return ["waitingText"];
  if (stage === "waiting") return early ? ["earlyText"] : [];
  if (stage === "withdrawing") return unreachable ? ["withdrawingText"] : [];
  if (stage === "refused") return [REJECTIONS[record.reason] ?? "refusedOther"];
  if (stage === "ended") return [];
  if (record.withdrawalLost) return ["withdrawalLost"];
  return record.tooLate ? [`${stage}Text`, "tooLateText"] : [`${stage}Text`];
}

function progressOf(record, status) {
  if (!status || isOver(record) || !Number.isInteger(status.responses)) return [];
  const counts = { responses: formatNumber(status.responses), invited: formatNumber(status.invited) };
  const isOpen = ["draft", "submitting"].includes(status.phase);
  const label = translate(isOpen ? "progress" : "progressClosed", counts);
  const content = [
    element("h2", {}, translate("progressTitle")),
    element("p", {}, label),
    element("progress", { max: status.invited, value: status.responses, "aria-label": label }),
  ];
  if (isOpen && status.closes_at) {
    const when = formatTime(status.closes_at);
    content.push(element("p", {}, translate("closes", { when })));
  }
  return content;
}

function buttons(record, params, actions) {
  const button = (name, click) => element("button", { type: "button", click }, say(params, name));
  const hasReceipt = record.acknowledgements.length > 0;
  const canWithdraw = ["waiting", "sent"].includes(record.stage);
  // After a conflict the answer of another device may still be counted.
  const canStillMatter = !isOver(record) || [CONFLICT, INVITATION_USED].includes(record.reason);
  const checked = element("p", { role: "status" });
  const check = async () => {
    const isKnown = await actions.check();
    checked.textContent = isKnown ? "" : translate("checkedNothing");
  };
  return element(
    "div",
    {},
    element(
      "div",
      { class: "buttons" },
      record.stage === "sent" ? button("checkButton", check) : null,
      hasReceipt ? button("receiptButton", () => saveReceipt(record, params)) : null,
      canWithdraw ? button("withdrawButton", () => confirmWithdrawal(params, actions)) : null,
      button("forgetButton", () => confirmRemoval(actions)),
    ),
    checked,
    hasReceipt ? element("p", { class: "quiet" }, say(params, "receiptText")) : null,
    canStillMatter ? element("p", { class: "quiet" }, say(params, "forgetText")) : null,
  );
}

function confirmWithdrawal(params, actions) {
  const texts = {
    question: say(params, "withdrawSure"),
    yes: say(params, "withdrawYes"),
    no: say(params, "withdrawNo"),
  };
  confirmFirst(texts, actions.withdraw);
}

function confirmRemoval(actions) {
  const texts = {
    question: translate("forgetSure"),
    yes: translate("forgetYes"),
    no: translate("forgetNo"),
  };
  confirmFirst(texts, actions.forget);
}

function saveReceipt(record, params) {
  const text = `${JSON.stringify(receiptOf(record, params), null, 1)}\n`;
  saveFile(new Blob([text], { type: "application/json" }), "faircount-receipt.json");
}

// Before anything is sent: the answers and the privacy level, what happens to them, and the bytes
// that would leave the device.

import { hex } from "../client/bytes.js";
import { element, ownerText, show } from "./dom.js";
import { formatNumber, translate } from "./language.js";
import { hasLevels, levelName } from "./levels.js";
import { operatorNames } from "./operators.js";
import { answerLines, questionText, wordsElement, wordsOf } from "./question_words.js";
import { hasSeveral, say } from "./wording.js";

/** The answers and what happens to them, in words; the bytes that would leave on request. */
export function showConfirmation(params, { sheet, level }, report, onSend, onBack) {
  const sendOnce = () => {
    send.disabled = true;
    onSend();
  };
  const settings = { class: "main", type: "button", click: sendOnce };
  const send = element("button", settings, translate("send"));
  const back = element("button", { type: "button", click: onBack }, translate("back"));
  const names = operatorNames(params);
  show(
    element("h1", {}, say(params, "confirmTitle")),
    element("p", {}, say(params, "confirmAnswer")),
    answersOf(params, sheet),
    levelOf(params, level),
    element("p", {}, say(params, params.proven ? "confirmProven" : "confirmText")),
    element("p", {}, say(params, "confirmOnce")),
    ownerText("p", translate("confirmOwner", { owner: params.owner || translate("noName") })),
    element("div", { class: "buttons" }, send, back),
    element(
      "details",
      {},
      element("summary", {}, translate("confirmBytes")),
      bytesBox("confirmShare", names, report.share),
      bytesBox("confirmEncryptedShare", names, report.encryptedShare),
    ),
  );
}

/** One answer by itself, or every question with its answer. */
function answersOf(params, sheet) {
  const lines = sheet.map((_, number) => answerLines(params, sheet, number));
  if (!hasSeveral(params)) return lines[0].map((line) => ownerText("p", line, { class: "answer" }));
  const words = wordsOf(params);
  const entries = lines.map((texts, number) => [
    wordsElement("dt", questionText(params, number), words),
    texts.map((text) => ownerText("dd", text)),
  ]);
  return element("dl", { class: "answers" }, entries);
}

/** The chosen privacy level, where there are levels. */
function levelOf(params, level) {
  if (!hasLevels(params)) return null;
  return [
    element("p", {}, translate("confirmLevel")),
    ownerText("p", levelName(params, level), { class: "answer" }),
  ];
}

function bytesBox(title, names, bytes) {
  const heading = translate(title, { ...names, bytes: formatNumber(bytes.length) });
  const text = hex(bytes).replace(/(.{8})/g, "$1 ").trim();
  const box = { class: "bytes", dir: "ltr", tabindex: "0", role: "group", "aria-label": heading };
  return element("div", {}, ownerText("h2", heading), element("div", box, text));
}

// Questions and answers in words: in the language that the participant reads, of those in which the
// owner wrote them. Positions mean the same in all languages, so nothing that is sent depends on
// it.

import { stepDecimal } from "../client/decimals.js";
import { isAsked, languagesOf, textsIn } from "../client/questionnaire.js";
import { element, ownerText } from "./dom.js";
import { formatNumber, languages, translate, wantedLanguages } from "./language.js";
import { hasSeveral } from "./wording.js";

let chosen = null; // the language that the participant chose for the questions

/** {language, title, questions}: the texts of a survey in the language to show them in. */
export function wordsOf({ questionnaire }) {
  const offered = languagesOf(questionnaire);
  const wanted = [chosen, ...wantedLanguages()];
  const found = wanted.map((code) => matchLanguage(code, offered)).find((code) => code !== null);
  const language = found ?? questionnaire.language;
  return { language, ...textsIn(questionnaire, language) };
}

/** The one of the offered languages that somebody who wants this one can read; null if none. */
function matchLanguage(wanted, offered) {
  if (wanted === null) return null;
  const tag = wanted.toLowerCase();
  const isAlike = (code) => code.split("-")[0] === tag.split("-")[0];
  return offered.find((code) => code === tag) ?? offered.find(isAlike) ?? null;
}

/**
 * A choice of the language of the questions; null where the language of the page decides it, or
 * where there is only one.
 */
export function languageOfQuestions(params, onChange) {
  const offered = languagesOf(params.questionnaire);
  const isDecided = offered.length < 2 || offered.every((code) => Object.hasOwn(languages(), code));
  if (isDecided) return null;
  const { language } = wordsOf(params);
  const options = offered.map((code) =>
    element("option", { value: code, lang: code, selected: code === language }, nameOf(code)),
  );
  const change = (event) => {
    chosen = event.target.value;
    onChange();
  };
  const select = element("select", { id: "question-language", change }, options);
  return element(
    "p",
    {},
    element("label", { for: "question-language" }, `${translate("questionLanguage")} `),
    select,
  );
}

/** The name of a language in that language. */
const nameOf = (code) => new Intl.DisplayNames([code], { type: "language" }).of(code);

/** Forget a language that was chosen for another survey. */
export const resetQuestionLanguage = () => (chosen = null);

/** An element with the owner's text, marked with its language for screen readers. */
export const wordsElement = (tag, text, { language }, settings = {}) =>
  ownerText(tag, text, { lang: language || null, ...settings });

/** What a survey is called in one line: its title, or its first question. */
export function surveyName(params) {
  const { title, questions } = wordsOf(params);
  return title || [questions[0].text].flat()[0];
}

/** The text of a question; a table has two. With several questions their numbers stand in front. */
export function questionText(params, number) {
  const text = [wordsOf(params).questions[number].text].flat().join(" / ");
  return hasSeveral(params) ? `${number + 1}. ${text}` : text;
}

/** The labels of all positions: the choices, then "does not apply" and "prefer not to say". */
export function answerLabels(params, number) {
  const question = params.questionnaire.questions[number];
  const labels = choiceLabels(question, wordsOf(params).questions[number]);
  if (question.form !== "choice") return labels;
  if (question.only_if !== null) labels.push(translate("doesNotApply"));
  if (question.skip) labels.push(translate("preferNotToSay"));
  return labels;
}

function choiceLabels({ bands, kind }, { columns, items, rows }) {
  if (bands) return bands.slice(1).map((end, at) => bandLabel(bands, at));
  if (kind === "table") {
    return rows.flatMap((row) => columns.map((column) => `${row} / ${column}`));
  }
  return [...(items ?? [])];
}

function bandLabel(bands, at) {
  const [low, high] = [bands[at], bands[at + 1]].map(formatExact);
  return translate(at === bands.length - 2 ? "lastBand" : "band", { low, high });
}

/** An exact decimal in the notation of the selected language. */
export const formatExact = (text) => formatNumber(text, { maximumFractionDigits: 20 });

/** What people without an answer are called where one cell counts all of them. */
export function missingLabel({ only_if: branch, skip }) {
  if (branch === null) return translate("preferNotToSay");
  return translate(skip ? "noAnswer" : "doesNotApply");
}

/** The lines in which an answer of a sheet is shown. */
export function answerLines(params, sheet, number) {
  const question = params.questionnaire.questions[number];
  const answer = sheet[number];
  const labels = answerLabels(params, number);
  if (!isAsked(params.questionnaire, sheet, number)) return [translate("doesNotApply")];
  if (answer === null) return [translate("preferNotToSay")];
  if (question.form === "several") {
    return answer.length ? answer.map((position) => labels[position]) : [translate("noneOfThese")];
  }
  if (question.kind === "table") {
    const { columns, rows } = wordsOf(params).questions[number];
    return [rows[Math.floor(answer / columns.length)], columns[answer % columns.length]];
  }
  if (labels.length) return [labels[answer]];
  return [formatExact(stepDecimal(question.origin, question.unit, answer))];
}

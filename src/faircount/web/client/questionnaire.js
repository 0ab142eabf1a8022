// Several questions about the same people. A sheet is one person's answers: a canonical answer per
// question, in their order.

import { leastModulus, shiftWeights, weightedSum } from "./blocks.js";
import { readQuestion } from "./questions.js";
import { checkItems, checkText, readLabel } from "./question_texts.js";
import { insist, Refusal } from "./refusal.js";
import { hasExactly, isCount } from "./shapes.js";

const MAX_QUESTIONS = 100;
const LANGUAGE = /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$/; // such as "de" or "pt-br"

/**
 * The questionnaire in published parameters: {title, language, questions, translations, bits,
 * cells, constraints, openings, leastModulus}, with `bitsFrom` and `cellsFrom` in every question.
 */
export function readQuestionnaire({ title, language, questions, translations }) {
  checkTitle(title);
  insist(language === "" || isLanguage(language), "malformed", "the language is unknown");
  const isList = Array.isArray(questions);
  const isFull = isList && questions.length >= 1 && questions.length <= MAX_QUESTIONS;
  insist(isFull, "malformed", `a survey has 1 to ${MAX_QUESTIONS} questions`);
  let bits = 0;
  let cells = 0;
  const read = questions.map((plain) => {
    const question = { ...readQuestion(plain), bitsFrom: bits, cellsFrom: cells };
    bits += question.bits;
    cells += question.openings.length;
    return question;
  });
  read.forEach((question, number) => checkBranch(question, number, read));
  checkTranslations(translations, language, read);
  const constraints = read.filter((question) => question.constraint).map(placedConstraint);
  return {
    title,
    language,
    questions: read,
    translations,
    bits,
    cells,
    constraints,
    openings: read.flatMap(({ openings, bitsFrom }) =>
      openings.map((weights) => shiftWeights(weights, bitsFrom)),
    ),
    leastModulus: Math.max(2, ...constraints.map(leastModulus)),
  };
}

const placedConstraint = ({ constraint, bitsFrom }) =>
  ({ weights: shiftWeights(constraint.weights, bitsFrom), value: constraint.value });

const isLanguage = (value) => typeof value === "string" && LANGUAGE.test(value);

function checkTitle(title) {
  if (title !== "") checkText(title);
}

/** Refuse a question that depends on something else than answers to an earlier one. */
function checkBranch({ only_if: branch }, number, questions) {
  if (branch === null) return;
  insist(hasExactly(branch, ["question", "items"]), "malformed", "only_if has two fields");
  const { question: earlier, items } = branch;
  const isEarlier = isCount(earlier) && earlier < number;
  insist(isEarlier, "malformed", "a question depends on an earlier one");
  const { answers, choices, form, kind } = questions[earlier];
  const isChoice = form === "choice" && kind !== "table";
  insist(isChoice, "malformed", "a question depends on one with exactly one answer");
  const isList = Array.isArray(items) && items.length >= 1;
  const areChoices = isList && items.every((item) => isCount(item) && item < choices);
  const ascends = areChoices && items.every((item, at) => at === 0 || items[at - 1] < item);
  insist(ascends, "malformed", "only_if names answers of the earlier question, ascending");
  const leavesOut = items.length < answers;
  insist(leavesOut, "malformed", "only_if names all answers, and asks everybody");
}

/** Refuse translations that are not the same questions in other words. */
function checkTranslations(translations, language, questions) {
  const isObject = hasExactly(translations, Object.keys(translations ?? {}));
  insist(isObject, "malformed", "translations have one entry per language");
  for (const [code, translation] of Object.entries(translations)) {
    const isOther = isLanguage(code) && language !== "" && code !== language;
    insist(isOther, "malformed", "every language of a survey is named once");
    const isComplete = hasExactly(translation, ["title", "questions"]);
    insist(isComplete, "malformed", "a translation has a title and questions");
    checkTitle(translation.title);
    const { questions: texts } = translation;
    const isList = Array.isArray(texts) && texts.length === questions.length;
    insist(isList, "malformed", "a translation has all questions");
    texts.forEach((text, number) => checkTranslated(text, questions[number]));
  }
  const others = Object.values(translations);
  if (others.length === 0) return;
  questions.forEach((question, number) => {
    checkPositions([question, ...others.map((own) => own.questions[number])]);
  });
}

/** Refuse a text that stands for one answer in one language and for another one in the next. */
function checkPositions(languages) {
  for (const name of ["items", "rows", "columns"]) {
    const positions = new Map();
    for (const texts of languages) {
      (texts[name] ?? []).forEach((text, at) => {
        const label = readLabel(text);
        const isSame = (positions.get(label) ?? at) === at;
        // check: page-moved-translation - "no" counts as yes for the readers of a translation
        insist(isSame, "malformed", "an answer stands at another place in another language");
        positions.set(label, at);
      });
    }
  }
}

function checkTranslated(texts, question) {
  const lists = ["items", "rows", "columns"].filter((name) => name in question);
  insist(hasExactly(texts, ["text", ...lists]), "malformed", "a translation has other texts");
  if (question.kind === "table") {
    const areTexts = Array.isArray(texts.text) && texts.text.length === 2;
    insist(areTexts, "malformed", "a table has two texts");
    texts.text.forEach(checkText);
  } else {
    checkText(texts.text);
  }
  for (const name of lists) {
    checkItems(texts[name]);
    const isAsLong = texts[name].length === question[name].length;
    insist(isAsLong, "malformed", "a translation has another number of answers");
  }
}

/** The languages in which the questions can be read; the original is the first. */
export const languagesOf = ({ language, translations }) =>
  [language, ...Object.keys(translations)];

/** Title and texts of all questions in one of these languages. */
export function textsIn({ title, language, questions, translations }, code) {
  if (code === language) return { title, questions };
  return translations[code];
}

/** Whether the answers so far lead to this question. */
export function isAsked(questionnaire, sheet, number) {
  const { only_if: branch } = questionnaire.questions[number];
  if (branch === null) return true;
  const { question: earlier, items } = branch;
  return isAsked(questionnaire, sheet, earlier) && items.includes(sheet[earlier]);
}

/** The canonical answers of a sheet; anything but one valid answer per question is refused. */
export function checkSheet({ questions }, sheet) {
  const isWhole = Array.isArray(sheet) && sheet.length === questions.length;
  insist(isWhole, "answer", `a sheet has ${questions.length} answers, one per question`);
  return questions.map((question, number) => {
    try {
      return question.checkAnswer(sheet[number]);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      throw new Refusal(problem.code, `question ${number + 1}: ${problem.message}`);
    }
  });
}

/** The bits of a sheet. */
export function encodeSheet(questionnaire, sheet) {
  const answers = checkSheet(questionnaire, sheet);
  return questionnaire.questions.flatMap((question, number) => question.encode(answers[number]));
}

/** The cells of a sheet's bits. */
export const openCells = ({ openings }, bits) =>
  openings.map((weights) => weightedSum(weights, bits));

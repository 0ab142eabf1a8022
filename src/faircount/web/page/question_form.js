// The questions of a survey as a form, a group of fields for each. What was entered is kept in a
// draft, so that it survives a change of the language and a step back. Questions that depend on an
// earlier answer appear when it is given.
//
//   draft: {answers, typed, level}: the canonical answers so far, undefined where there is none,
//          what was typed for numbers, and the position of the privacy level

import { countSteps, readDecimal, stepDecimal } from "../client/decimals.js";
import { isAsked } from "../client/questionnaire.js";
import { announce, element } from "./dom.js";
import { decimalPoint, formatNumber, translate } from "./language.js";
import { levelGroup } from "./levels.js";
import {
  answerLabels, formatExact, languageOfQuestions, questionText, wordsElement, wordsOf,
} from "./question_words.js";
import { hasSeveral } from "./wording.js";

/** A draft without any answer. */
export const emptyDraft = () => ({ answers: [], typed: [], level: 0 });

/** The form; `onContinue(sheet, level)` gets the answers once every question has one. */
export function questionForm(params, draft, onContinue, render) {
  const { questions } = params.questionnaire;
  const update = () => showAsked(params, draft, groups);
  const groups = questions.map((_, number) => questionGroup(params, draft, number, update));
  const submit = (event) => {
    event.preventDefault();
    const missing = groups.filter((group) => !group.field.hidden && !group.isAnswered());
    missing.forEach((group, at) => group.complain(at === 0));
    if (missing.length) missing[0].focus();
    else onContinue(completeSheet(params, draft), draft.level);
  };
  showAsked(params, draft, groups, true);
  return element(
    "form",
    { novalidate: true, submit },
    languageOfQuestions(params, render),
    groups.map((group) => group.field),
    levelGroup(params, draft),
    element(
      "div",
      { class: "buttons" },
      element("button", { class: "main", type: "submit" }, translate("continue")),
    ),
  );
}

/** Show the questions to which the answers so far lead, and hide the others. */
function showAsked(params, draft, groups, isFirst = false) {
  const appeared = groups.filter(({ field }, number) => {
    const wasHidden = field.hidden;
    field.hidden = !isAsked(params.questionnaire, draft.answers, number);
    return wasHidden && !field.hidden;
  });
  // Who cannot see the page would otherwise not know that there is more to answer.
  if (appeared.length && !isFirst) announce(translate("questionAppeared"));
}

/** The draft as a sheet: questions that are not asked have the answer "does not apply". */
function completeSheet({ questionnaire }, { answers }) {
  return questionnaire.questions.map((question, number) =>
    isAsked(questionnaire, answers, number) ? answers[number] : question.notApplicable,
  );
}

/** One question: {field, isAnswered, complain, focus}. */
function questionGroup(params, draft, number, update) {
  const question = params.questionnaire.questions[number];
  const words = wordsOf(params);
  const texts = words.questions[number];
  const name = `question-${number}`;
  const problem = element("div");
  const change = (answer) => {
    draft.answers[number] = answer;
    if (answer !== undefined) tell("", false);
    update();
  };
  const place = { params, draft, number, question, words, texts, name, change };
  const { content, hint, missing } = controlsOf(question)(place);
  const field = element(
    "fieldset",
    { class: "question", "aria-describedby": `${name}-hint` },
    legendOf(params, number, words),
    element("p", { class: "quiet", id: `${name}-hint` }, hint),
    content,
    problem,
  );
  const inputs = () => [...field.querySelectorAll("input, select")];
  const tell = (text, isFirst) => {
    // One alert is enough: the others are read where they stand. A new element each time, because
    // some readers are silent when an alert that was there before changes.
    const settings = { id: `${name}-problem`, class: "warning", role: isFirst ? "alert" : null };
    problem.replaceChildren(...(text ? [element("p", settings, text)] : []));
    for (const input of inputs()) {
      if (text) input.setAttribute("aria-describedby", settings.id);
      else input.removeAttribute("aria-describedby");
    }
  };
  return {
    field,
    isAnswered: () => draft.answers[number] !== undefined,
    complain: (isFirst) => tell(missing(), isFirst),
    focus: () => inputs().find((input) => !input.disabled).focus(),
  };
}

function legendOf(params, number, words) {
  const settings = { id: `question-${number}-legend` };
  const isTable = params.questionnaire.questions[number].kind === "table";
  if (!isTable) return wordsElement("legend", questionText(params, number), words, settings);
  // The owner's two questions stand at the two lists.
  const title = translate("tableTitle");
  return element("legend", settings, hasSeveral(params) ? `${number + 1}. ${title}` : title);
}

function controlsOf({ form, items, kind }) {
  if (kind === "table") return tableControls;
  if (form === "several") return severalControls;
  return form === "sum" && !items ? numberControls : choiceControls;
}

/** A radio button or a checkbox with its label. */
function option(settings, label, isChecked) {
  const input = element("input", settings);
  input.checked = isChecked;
  return { input, row: element("label", { class: "choice" }, input, label) };
}

/** One answer of several: also the points of a scale, and bands. */
function choiceControls({ params, draft, number, question, words, name, change }) {
  const labels = answerLabels(params, number);
  const count = question.form === "choice" ? question.choices : labels.length;
  const answers = labels.slice(0, count).map((label, at) => {
    return [at, wordsElement("span", label, words)];
  });
  // "Does not apply" is the answer of those who do not see the question.
  const skipped = question.form === "choice" ? question.answers - 1 : null;
  if (question.skip) answers.push([skipped, element("span", {}, translate("preferNotToSay"))]);
  const content = answers.map(([answer, label], at) => {
    const settings = { type: "radio", name, value: at, change: () => change(answer) };
    return option(settings, label, draft.answers[number] === answer).row;
  });
  return { content, hint: translate("choose"), missing: () => translate("chooseFirst") };
}

/** Any or at most so many of several items; "none of these" says that nothing was forgotten. */
function severalControls({ params, draft, number, question, words, name, change }) {
  const labels = answerLabels(params, number);
  const { limit } = question;
  const isLimited = limit < labels.length;
  const before = draft.answers[number];
  const items = labels.map((label, at) => {
    const settings = { type: "checkbox", name, change: () => chooseItems() };
    return option(settings, wordsElement("span", label, words), before?.includes(at) ?? false);
  });
  const others = [["noneOfThese", []], ...(question.skip ? [["preferNotToSay", null]] : [])];
  const alone = others.map(([text, answer]) => {
    const settings = { type: "checkbox", name, change: (event) => chooseAlone(event, answer) };
    const isChecked = answer === null ? before === null : before?.length === 0;
    return option(settings, element("span", {}, translate(text)), isChecked);
  });
  const counter = element("p", { class: "quiet", role: "status" });
  const update = () => {
    const count = items.filter(({ input }) => input.checked).length;
    for (const { input } of items) input.disabled = count >= limit && !input.checked;
    if (!isLimited) return;
    const counts = { count: formatNumber(count), limit: formatNumber(limit) };
    counter.textContent = translate(count < limit ? "chosenCount" : "chosenAll", counts);
  };
  const chooseItems = () => {
    const chosen = items.flatMap(({ input }, at) => (input.checked ? [at] : []));
    for (const { input } of alone) input.checked = false;
    update();
    change(chosen.length ? chosen : undefined);
  };
  const chooseAlone = ({ target }, answer) => {
    for (const { input } of [...items, ...alone]) input.checked &&= input === target;
    update();
    change(target.checked ? answer : undefined);
  };
  update();
  const hint = isLimited
    ? translate("chooseAtMost", { limit: formatNumber(limit) })
    : translate("chooseAny");
  const content = [...items.map(({ row }) => row), ...alone.map(({ row }) => row)];
  if (isLimited) content.push(counter);
  return { content, hint, missing: () => translate("chooseSomeFirst") };
}

/** A number in a range; it is rounded to the nearest step. */
function numberControls({ draft, number, question, name, change }) {
  const { largest, origin, step, unit } = question;
  const isWhole = unit.places === 0 && origin.places === 0;
  const range = {
    low: formatExact(stepDecimal(origin, unit, 0)),
    high: formatExact(stepDecimal(origin, unit, largest)),
    step: formatExact(step),
  };
  const enter = () => {
    draft.typed[number] = field.value;
    if (skip) skip.input.checked = false;
    const read = readDecimal(withPoint(field.value));
    const steps = read && countSteps(origin, unit, largest, read);
    change(steps ?? undefined);
  };
  const hint = translate(step === "1" ? "numberHint" : "numberStepHint", range);
  const field = element("input", {
    type: "text",
    inputmode: isWhole ? "numeric" : "decimal",
    class: "number",
    autocomplete: "off",
    "aria-labelledby": `${name}-legend`,
    input: enter,
  });
  field.value = draft.typed[number] ?? "";
  const chooseSkip = ({ target }) => {
    field.value = "";
    draft.typed[number] = "";
    change(target.checked ? null : undefined);
  };
  const skip = question.skip
    ? option(
      { type: "checkbox", name, change: chooseSkip },
      element("span", {}, translate("preferNotToSay")),
      draft.answers[number] === null,
    )
    : null;
  const content = [element("p", {}, field), skip?.row];
  return { content, hint, missing: () => translate("numberFirst", range) };
}

/**
 * Typed digits with a point before the fraction. A point or a comma that is not the one of this
 * language separates thousands if three digits follow it.
 */
function withPoint(text) {
  const point = decimalPoint();
  const other = point === "." ? "," : ".";
  const compact = text.replace(/[\s'’]/g, "").replace("−", "-");
  const isGrouped = new RegExp(`^-?\\d{1,3}(\\${other}\\d{3})+(\\${point}\\d*)?$`).test(compact);
  const digits = isGrouped ? compact.replaceAll(other, "") : compact;
  return digits.replace(",", ".");
}

/** Two questions whose answers are counted together: a list to choose from for each. */
function tableControls({ draft, number, words, texts, name, change }) {
  const { columns, rows } = texts;
  const before = draft.answers[number];
  const first = before === undefined ? "" : Math.floor(before / columns.length);
  const second = before === undefined ? "" : before % columns.length;
  const lists = [[texts.text[0], rows, first], [texts.text[1], columns, second]];
  const choose = () => {
    const [row, column] = selects.map((select) => select.value);
    const isComplete = row !== "" && column !== "";
    change(isComplete ? Number(row) * columns.length + Number(column) : undefined);
  };
  const selects = lists.map(([, entries, at], place) => {
    const options = entries.map((entry, position) =>
      wordsElement("option", entry, words, { value: position, selected: position === at }),
    );
    const none = element("option", { value: "", selected: at === "" }, translate("chooseOption"));
    return element("select", { id: `${name}-${place}`, change: choose }, none, options);
  });
  const content = lists.map(([text], place) =>
    element(
      "p",
      { class: "listed" },
      wordsElement("label", text, words, { for: `${name}-${place}` }),
      selects[place],
    ),
  );
  return { content, hint: translate("chooseBoth"), missing: () => translate("chooseBothFirst") };
}

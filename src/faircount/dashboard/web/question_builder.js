// The questions of a new survey. One question is a text and its answers, as simple as that; with
// several each has a kind, may be asked only of some people, and can be moved and removed.

import { announce, element } from "./dom.js";
import { formatNumber, translate, translateFrom } from "./language.js";
import { LANGUAGES as PARTICIPANT } from "./participant_strings.js";
import { button, buttons, payloadOf, problemMessage, sentence } from "./parts.js";
import { base64Of } from "./people_source.js";
import { previewOf } from "./question_preview.js";

// Kind -> name of a field: settings. Labels and hints are the texts field_name and hint_name.
const LINES = { rows: "5", required: true };
const NUMBER = { type: "number", step: "any", required: true };
const ASKED = { question: { required: true } };
const CHOICE = { ...ASKED, items: LINES };
const KINDS = {
  one: CHOICE,
  yes: { ...ASKED, items: { ...LINES, rows: "2" } },
  any: CHOICE,
  most: { ...CHOICE, most: { type: "number", min: "1", required: true } },
  scale: CHOICE,
  mean: CHOICE,
  number: { ...ASKED, low: NUMBER, high: NUMBER, step: { ...NUMBER, required: false } },
  bands: { ...ASKED, bands: LINES },
  table: {
    question: { required: true, label: "rows_text" },
    rows: { ...LINES, rows: "3" },
    columns_text: { required: true },
    columns: { ...LINES, rows: "3" },
  },
};
const HINTS = ["items", "most", "step", "bands"];
const WITH_ONE_ANSWER = ["one", "yes", "scale", "bands"]; // another question may depend on them

let lastKey = 0; // tells questions apart while they are moved

/**
 * {box, values, showAdvice}: `values()` belong to the form, `typed` has the values typed before, and
 * `onChange()` is called when they change. `readFile(values)` has a file read by the program.
 */
export function questionBuilder(typed, readFile, onChange) {
  let state = stateOf(typed);
  let advice = {};
  const list = element("div", { input: (event) => event.stopPropagation() });
  const others = element("div");
  const problem = element("div", { role: "alert" });
  const file = element("input", {
    type: "file", id: "toml", accept: ".toml", "aria-describedby": "toml-hint", change: load,
  });
  const add = button("questionAdd", () => {
    const made = newQuestion();
    change({ questions: [...state.questions, made] }, `question-${made.key}`);
  });
  const box = element(
    "div",
    { class: "builder" },
    list,
    buttons(add),
    element(
      "details",
      {},
      element("summary", {}, translate("fileTitle")),
      element("label", { for: "toml" }, translate("fileLabel")),
      file,
      element("p", { id: "toml-hint", class: "quiet hint" }, translate("fileHint")),
      problem,
    ),
    others,
  );

  /** Take over something that changes which fields there are; the focus goes to this id. */
  function change(values, focus) {
    state = { ...state, ...values };
    render();
    document.getElementById(focus)?.focus();
    onChange();
  }

  /** Take over what is typed into a field: the fields stay, and only answers to choose follow. */
  function edit(question, name, value) {
    question[name] = value;
    cards.forEach((card) => card.refresh());
    onChange();
  }

  let cards = [];
  function render() {
    const { questions, titles } = state;
    cards = questions.map((question, place) => questionCard(question, place, context()));
    const title = questions.length > 1 ? titleField() : null;
    list.replaceChildren(...[title, ...cards.map((card) => card.box)].filter(Boolean));
    others.replaceChildren(...languageLines(Object.keys(titles), forgetLanguages));
    showAdvice(advice);
  }

  const context = () => ({ questions: state.questions, edit, change, move, remove });

  function titleField() {
    const input = (event) => {
      state.title = event.target.value;
      onChange();
    };
    return field("title", "title", { input }, state.title);
  }

  function move(place, step) {
    const questions = [...state.questions];
    const [moved] = questions.splice(place, 1);
    questions.splice(place + step, 0, moved);
    change({ questions }, `${step < 0 ? "up" : "down"}-${moved.key}`);
    // At the end of the list that button cannot be used any more.
    if (document.activeElement?.disabled || document.activeElement === document.body) {
      document.getElementById(`${step < 0 ? "down" : "up"}-${moved.key}`).focus();
    }
    const numbers = { from: place + 1, to: place + step + 1 };
    announce(translate("questionMoved", numbers));
  }

  function remove(place) {
    const gone = state.questions[place].key;
    const questions = state.questions.filter(({ key }) => key !== gone);
    // Whoever was asked depending on it is asked like everybody.
    questions.filter((other) => other.branch === gone).forEach(forgetBranch);
    const next = questions[Math.min(place, questions.length - 1)];
    change({ questions }, `question-${next.key}`);
    announce(translate("questionRemoved", { number: place + 1 }));
  }

  function forgetLanguages() {
    state.questions.forEach((question) => delete question.translation);
    change({ titles: {}, language: "" }, "toml");
  }

  async function load() {
    const [picked] = file.files;
    if (!picked) return;
    problem.replaceChildren();
    try {
      const found = await readFile({ file: { name: picked.name, data: await base64Of(picked) } });
      change(stateOf(found), "toml");
      const count = formatNumber(state.questions.length);
      problem.replaceChildren(sentence("fileLoaded", { file: picked.name, count }));
    } catch (error) {
      problem.replaceChildren(problemMessage(payloadOf(error), { class: "warning" }));
    }
    file.value = ""; // the same file may be chosen again, once it is corrected
  }

  /** Show beside every question what the planner, or whoever refuses it, says about it. */
  function showAdvice(found) {
    advice = found;
    cards.forEach((card, place) => card.showPreview(previewOf(found, place + 1)));
  }

  render();
  return {
    box,
    showAdvice,
    hasAnswers: () => state.questions.some(({ items, low, bands, rows }) =>
      Boolean(items || low || bands || rows)),
    values: () => ({
      questions: state.questions.map((question) => toValues(question, state.questions)),
      title: state.title,
      language: state.language,
      titles: state.titles,
    }),
  };
}

const newQuestion = (fields = {}) => ({ key: (lastKey += 1), kind: "one", branch: null, ...fields });

const forgetBranch = (question) => Object.assign(question, { branch: null, branchItems: [] });

/** The questions of a form, each with a key; a question names another one by that key. */
function stateOf({ questions, title, language, titles }) {
  const made = (questions ?? [{}]).map(({ only_if: _, text, ...fields }) =>
    newQuestion({ ...fields, question: text ?? "" }),
  );
  (questions ?? []).forEach(({ only_if: branch }, place) => {
    const items = branch ? [...branch.items] : [];
    const key = branch ? made[branch.question].key : null;
    Object.assign(made[place], { branch: key, branchItems: items });
  });
  return { questions: made, title: title ?? "", language: language ?? "", titles: titles ?? {} };
}

/** A question as the program reads it. */
function toValues({ key: _, branch, branchItems, question: text, ...fields }, questions) {
  const place = questions.findIndex(({ key }) => key === branch);
  const onlyIf = branch === null ? null : { question: place, items: branchItems };
  return { ...fields, text, only_if: onlyIf };
}

/** {box, refresh, showPreview} of one question; alone it has neither a frame nor buttons. */
function questionCard(question, place, { questions, edit, change, move, remove }) {
  const { key, kind } = question;
  const isAlone = questions.length === 1;
  const id = (name) => `${name}-${key}`;
  const fields = Object.entries(KINDS[kind]).map(([name, { label, ...settings }]) => {
    const input = (event) => edit(question, name, event.target.value);
    const shown = { ...settings, input };
    return field(name, id(name), shown, question[name] ?? "", label ?? name);
  });
  const kinds = kindField(question, id("kind"), change);
  const skip = kind === "table" ? null : tick(question, id("skip"), edit);
  const preview = element("div", { class: "preview" });
  const showPreview = (content) => preview.replaceChildren(...content);
  if (isAlone) {
    const isPlain = kind === "one" && !question.skip;
    const more = element(
      "details",
      { open: !isPlain },
      element("summary", {}, translate("questionOther")),
      kinds,
      skip,
    );
    return { box: element("div", {}, fields, more), refresh: () => {}, showPreview: () => {} };
  }
  const branch = element("div");
  const refresh = () => {
    if (!branch.contains(document.activeElement)) {
      branch.replaceChildren(...branchFields(question, place, { questions, edit, change }));
    }
  };
  refresh();
  const number = place + 1;
  const act = (name, action, disabled) => {
    const label = translate(`${name}Label`, { number });
    const settings = { id: id(name), "aria-label": label, disabled, class: "small" };
    return button(`question_${name}`, action, settings);
  };
  const box = element(
    "fieldset",
    { class: "card" },
    element("legend", {}, translate("questionNumber", { number })),
    kinds,
    fields,
    skip,
    branch,
    preview,
    buttons(
      act("up", () => move(place, -1), place === 0),
      act("down", () => move(place, 1), number === questions.length),
      act("remove", () => remove(place), false),
    ),
  );
  return { box, refresh, showPreview };
}

function kindField(question, id, change) {
  const choose = ({ target }) => {
    question.kind = target.value;
    // Both answers of a yes/no question can be worded otherwise; the second one is counted.
    if (question.kind === "yes" && !question.items) question.items = translate("yesItems");
    if (question.kind === "table") {
      question.skip = false;
      forgetBranch(question);
    }
    change({}, id);
  };
  const options = Object.keys(KINDS).map((name) =>
    element("option", { value: name, selected: name === question.kind }, translate(`kind_${name}`)),
  );
  return element(
    "div",
    { class: "field" },
    element("label", { for: id }, translate("field_kind")),
    element("select", { id, change: choose }, options),
  );
}

/** Whether "prefer not to say" is offered. */
function tick(question, id, edit) {
  const change = ({ target }) => edit(question, "skip", target.checked);
  const box = element("input", { type: "checkbox", id, checked: question.skip === true, change });
  return element("label", { class: "choice" }, box, translate("field_skip"));
}

/** Of whom a question is asked: of everybody, or of those with certain answers to an earlier one. */
function branchFields(question, place, { questions, edit, change }) {
  const isPossible = (other, at) =>
    other.key === question.branch || (at < place && WITH_ONE_ANSWER.includes(other.kind));
  const possible = questions.filter(isPossible);
  if (question.kind === "table" || !possible.length) return [];
  const id = `branch-${question.key}`;
  const choose = ({ target }) => {
    const chosen = target.value ? Number(target.value) : null;
    Object.assign(question, { branch: chosen, branchItems: [] });
    change({}, id);
  };
  const options = possible.map((other) => {
    const number = questions.indexOf(other) + 1;
    const text = translate("branchQuestion", { number, text: other.question || "…" });
    const selected = other.key === question.branch;
    return element("option", { value: other.key, selected }, text);
  });
  const everybody = element("option", { value: "" }, translate("branchNone"));
  const select = element("select", { id, change: choose }, everybody, options);
  const chosen = possible.find(({ key }) => key === question.branch);
  return [
    element(
      "div",
      { class: "field" },
      element("label", { for: id }, translate("field_branch")),
      select,
    ),
    ...(chosen ? [branchItems(question, chosen, edit)] : []),
  ];
}

function branchItems(question, chosen, edit) {
  const toggle = (position) => ({ target }) => {
    const kept = question.branchItems.filter((other) => other !== position);
    const items = target.checked ? [...kept, position] : kept;
    edit(question, "branchItems", items.sort((one, other) => one - other));
  };
  const ticks = answersOf(chosen).map((answer, position) => {
    const checked = question.branchItems.includes(position);
    const box = element("input", { type: "checkbox", checked, change: toggle(position) });
    return element("label", { class: "choice", dir: "auto" }, box, answer);
  });
  const legend = element("legend", {}, translate("branchItems"));
  return element("fieldset", { class: "choices" }, legend, ticks);
}

/** The answers to choose from, as the program counts them: without empty lines and repetitions. */
function answersOf({ kind, items, bands }) {
  const lines = ((kind === "bands" ? bands : items) ?? "").split("\n").map((line) => line.trim());
  const written = [...new Set(lines.filter((line) => line !== ""))];
  if (kind !== "bands") return written;
  return written.slice(1).map((high, at) => {
    const name = at === written.length - 2 ? "lastBand" : "band";
    return translateFrom(PARTICIPANT, name, { low: written[at], high });
  });
}

function field(name, id, settings, value, label = name) {
  const hintId = `${id}-hint`;
  const hint = HINTS.includes(name)
    ? element("p", { id: hintId, class: "quiet hint" }, translate(`hint_${name}`))
    : null;
  const described = hint ? { "aria-describedby": hintId } : {};
  const tag = "rows" in settings ? "textarea" : "input";
  const input = element(tag, { id, dir: "auto", ...described, ...settings });
  input.value = value;
  const caption = element("label", { for: id }, translate(`field_${label}`));
  return element("div", { class: "field" }, caption, input, hint);
}

/** Which other languages the texts of a file have; they can be removed, and not changed here. */
function languageLines(languages, remove) {
  if (!languages.length) return [];
  const listed = languages.join(", ");
  return [
    sentence("otherLanguages", { languages: listed }, { class: "quiet" }),
    button("otherLanguagesRemove", remove),
  ];
}

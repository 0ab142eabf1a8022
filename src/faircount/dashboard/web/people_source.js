// Where the people of a new survey come from, if the owner does not type them: a table that is read
// on this computer, or an earlier survey.

import { element, ownerText } from "./dom.js";
import { formatNumber, translate } from "./language.js";
import { button, payloadOf, problemMessage, sentence } from "./parts.js";

const ACCEPTED = ".csv,.tsv,.txt,.xlsx,.xlsm";

/**
 * {box, values, isUsed, problem}: `values()` belong to the form, `chosen` is what was chosen before,
 * `onChange(chosen)` is called when it changes. `ask(values)` has the table read by the program.
 */
export function peopleSource(chosen, ask, onChange) {
  const found = element("div", { role: "status" });
  const file = element("input", {
    type: "file", id: "sheet", accept: ACCEPTED, "aria-describedby": "sheet-hint", change: read,
  });
  const field = element(
    "div",
    { class: "field" },
    element("label", { for: "sheet" }, translate("sheetLabel")),
    file,
    element("p", { id: "sheet-hint", class: "quiet hint" }, translate("sheetHint")),
  );

  async function read() {
    const [picked] = file.files;
    if (!picked) return;
    await look({ sheet: { name: picked.name, data: await base64Of(picked) }, address_column: "" });
  }

  /** Have the program read the table, and show what it found. */
  async function look(asked) {
    let about;
    try {
      about = await ask(asked);
    } catch (problem) {
      about = { columns: [], problem: payloadOf(problem) };
    }
    change({ ...asked, about });
  }

  function change(next) {
    chosen = next;
    display();
    onChange(chosen);
  }

  function remove() {
    file.value = "";
    change(null);
    file.focus();
  }

  function display() {
    field.hidden = chosen?.people_from !== undefined;
    found.replaceChildren(...(chosen ? description() : []));
  }

  function description() {
    const { people_from: survey, about } = chosen;
    const removal = button(survey ? "sheetOthers" : "sheetRemove", remove);
    if (survey) {
      const values = { survey, count: formatNumber(about.count) };
      return [sentence("sheetFrom", values), removal];
    }
    const columns = about.columns.length ? [columnChoice(about)] : [];
    if (about.problem) {
      return [problemMessage(about.problem, { class: "warning" }), ...columns, removal];
    }
    const first = about.first.join(", ");
    return [
      sentence("sheetFound", { count: formatNumber(about.count), file: chosen.sheet.name }),
      ...columns,
      ownerText("p", translate("sheetFirst", { first }), { class: "quiet" }),
      ...(about.guessed_encoding ? [sentence("sheetEncoding", {}, { class: "warning" })] : []),
      removal,
    ];
  }

  function columnChoice({ columns, column }) {
    const choose = ({ target }) => look({ ...chosen, address_column: target.value });
    const selected = chosen.address_column || column;
    const blank = selected ? [] : [element("option", { value: "" }, translate("sheetChoose"))];
    const options = columns.map((title) =>
      element("option", { value: title, selected: title === selected }, title),
    );
    return element(
      "div",
      { class: "field" },
      element("label", { for: "address-column" }, translate("sheetColumn")),
      element("select", { id: "address-column", change: choose }, blank, options),
    );
  }

  display();
  return {
    box: element("div", { class: "source" }, field, found),
    problem: () => chosen?.about.problem ?? null,
    isUsed: () => chosen !== null,
    values: () => valuesOf(chosen),
  };
}

/** What the form sends about the people. */
function valuesOf(chosen) {
  if (chosen === null) return {};
  const { about, ...values } = chosen;
  return { ...values, users: String(about.count ?? 0), people: "" };
}

/** The bytes of a file in base64. */
export function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.split(",")[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

// How long people can answer: for days or hours from the opening, or until a date and time.

import { element } from "./dom.js";
import { formatTime, translate } from "./language.js";

const MILLISECONDS_PER_UNIT = { days: 86_400_000, hours: 3_600_000 };

/**
 * The fields of the form: open_for with unit, or closes, an ISO time that is empty for a duration.
 * `typed` has the values typed before.
 */
export function timeField(typed) {
  const isUntil = typed.until === "time";
  const choice = (value, checked) =>
    element("input", { type: "radio", name: "until", id: `until-${value}`, value, checked });
  const amount = element("input", { type: "number", name: "open_for", id: "open_for", min: "1" });
  amount.value = typed.open_for ?? "3";
  amount.setAttribute("aria-label", translate("field_open_for"));
  const unit = unitField(typed.unit ?? "days");
  const local = element("input", { type: "datetime-local", name: "closes_local", id: "closes" });
  local.value = typed.closes_local ?? "";
  local.setAttribute("aria-label", translate("timeCloses"));
  // What is sent: a time with its zone, because the program may run in another one.
  const closes = element("input", { type: "hidden", name: "closes" });
  const note = element("p", { class: "quiet hint", role: "status" });
  const [duration, time] = [choice("duration", !isUntil), choice("time", isUntil)];
  const update = () => {
    const given = local.value ? new Date(local.value) : null;
    closes.value = time.checked && given ? given.toISOString() : "";
    local.required = time.checked;
    note.textContent = describe(time.checked, given, amount.value, unit.value);
  };
  // Whoever writes into a field means it.
  const select = (radio) => () => {
    radio.checked = true;
    update();
  };
  amount.addEventListener("input", select(duration));
  unit.addEventListener("input", select(duration));
  local.addEventListener("input", select(time));
  const box = element(
    "fieldset",
    { class: "choices", change: update },
    element("legend", {}, translate("timeTitle")),
    element("div", { class: "time" }, duration, label("duration"), amount, unit),
    element("div", { class: "time" }, time, label("time"), local),
    closes,
    note,
  );
  update();
  return box;
}

const label = (value) =>
  element("label", { for: `until-${value}` }, translate(value === "time" ? "timeUntil" : "timeFor"));

function unitField(chosen) {
  const options = Object.keys(MILLISECONDS_PER_UNIT).map((name) =>
    element("option", { value: name, selected: name === chosen }, translate(`unit_${name}`)),
  );
  const settings = { name: "unit", id: "unit", "aria-label": translate("timeUnit") };
  return element("select", settings, options);
}

/** When the survey would close, in the owner's time zone; empty while nothing sensible is given. */
function describe(isUntil, given, amount, unit) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (isUntil) {
    return given ? translate("timeNoteUntil", { closes: formatTime(given), zone }) : "";
  }
  const count = Number(amount);
  if (!(count >= 1)) return "";
  const closes = new Date(Date.now() + count * MILLISECONDS_PER_UNIT[unit]);
  // A number with many digits is beyond all dates.
  if (Number.isNaN(closes.getTime())) return "";
  return translate("timeNoteFor", { closes: formatTime(closes), zone });
}

// The invitations: as files, and one of them on the page, with its QR code.

import { drawn, element, foreign } from "./dom.js";
import { say, written } from "./language.js";
import { button, buttons, refusal, saidBy, section, sentence } from "./parts.js";

export function invitationsOf(survey, over, actions) {
  if (!survey.invited) return notYet(actions);
  return section(
    "invitationsTitle",
    sentence("invitationsWords", { people: written(survey.n_max) }, { class: "quiet" }),
    buttons(
      button("invitationsTable", () => actions.save("invitations.csv")),
      button("invitationsPrint", () => actions.save("invitations.html")),
      over ? null : button("invitationsRemind", () => actions.save("reminders.csv")),
    ),
    one(actions),
  );
}

const notYet = (actions) =>
  section("invitationsTitle", sentence("invitationsNone"), buttons(button("invitationsMake", () => actions.tell("invite"), { class: "main" })));

/** One invitation, for somebody who stands here with a phone, or has lost the mail. */
function one(actions) {
  const shown = element("div", { role: "status" });
  const select = element("select", { id: "person", change: () => look(select.value) });
  const look = (at) =>
    at === "" ? shown.replaceChildren() : actions.invitation(at).then(invitation, (problem) => [refusal(saidBy(problem), { class: "warning" })]).then((made) => shown.replaceChildren(...made));
  const open = (event) => (event.target.open && !select.options.length ? actions.people().then((people) => select.append(...options(people))) : null);
  return element(
    "details",
    { toggle: open },
    element("summary", {}, say("invitationOne")),
    element("div", { class: "field" }, element("label", { for: "person" }, say("invitationWho")), select),
    shown,
  );
}

function options(people) {
  const made = people.map((person, at) => element("option", { value: at }, person));
  return [element("option", { value: "" }, say("invitationChoose")), ...made];
}

function invitation({ person, link, code, qr }) {
  return [
    qrCode(qr, say("invitationQr", { person })),
    sentence("invitationLink"),
    element("p", { class: "bytes", dir: "ltr" }, link),
    sentence("invitationCode"),
    element("p", { class: "bytes", dir: "ltr" }, code),
    sentence("invitationSecret", {}, { class: "quiet" }),
  ];
}

/** Black on white, in the dark too: else no camera reads it. */
function qrCode(rows, words) {
  const path = rows.flatMap((cells, y) => [...cells.matchAll(/1+/g)].map(({ 0: run, index: x }) => `M${x} ${y}h${run.length}v1h-${run.length}z`));
  const box = { class: "qr", viewBox: `0 0 ${rows.length} ${rows.length}`, role: "img", "aria-label": words };
  return drawn("svg", box, drawn("path", { d: path.join("") }));
}

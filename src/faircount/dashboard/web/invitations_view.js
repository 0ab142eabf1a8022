// The invitations: as files, and one of them on the page with its QR code.

import { confirmFirst } from "./dialog.js";
import { element, svgElement } from "./dom.js";
import { formatNumber, translate } from "./language.js";
import { button, buttons, payloadOf, problemMessage, section, sentence } from "./parts.js";

export function invitationsSection(survey, isOver, actions) {
  if (!survey.invited) {
    const make = button("invitationsMake", () => actions.request("invite"), { class: "main" });
    const reason = survey.interrupted
      ? sentence("invitationsInterrupted", {}, { class: "warning" })
      : sentence("invitationsNone");
    return section("invitationsTitle", reason, buttons(make));
  }
  return section(
    "invitationsTitle",
    sentence("invitationsText", { people: formatNumber(survey.n_max) }, { class: "quiet" }),
    buttons(
      button("invitationsTable", () => actions.save("invitations.csv")),
      button("invitationsPrint", () => actions.save("invitations.html")),
      isOver ? null : button("invitationsRemind", () => actions.save("reminders.csv")),
    ),
    invitationChooser(isOver, actions),
  );
}

/** One invitation, for a person who stands here with a phone or has lost the letter. */
function invitationChooser(isOver, actions) {
  const shown = element("div", { role: "status" });
  const select = element("select", { id: "person", change: () => showInvitation(select.value) });

  async function showInvitation(position) {
    if (position === "") return shown.replaceChildren();
    await display(() => actions.invitation(position), position);
  }

  /** Show the invitation that a call returns, or why there is none. */
  async function display(ask, position, ...above) {
    let content;
    try {
      content = [...above, ...invitationContent(await ask()), reissueButton(position)];
    } catch (problem) {
      content = [problemMessage(payloadOf(problem), { class: "warning" })];
    }
    shown.replaceChildren(...content.filter((part) => part !== null));
  }

  /** For somebody who has lost an invitation: a new one, and the old one admits nobody. */
  function reissueButton(position) {
    if (isOver) return null;
    const texts = {
      question: translate("reissueSure"),
      yes: translate("reissueYes"),
      no: translate("no"),
    };
    const replace = () => display(() => actions.reissue(position), position, sentence("reissued"));
    return buttons(button("reissue", () => confirmFirst(texts, replace)));
  }

  /** Names are fetched only when somebody opens the details. */
  async function fillOptions(event) {
    if (!event.target.open || select.options.length) return;
    const people = await actions.people();
    const options = people.map((person, at) => element("option", { value: at }, person));
    const first = element("option", { value: "" }, translate("invitationChoose"));
    select.append(first, ...options);
  }

  return element(
    "details",
    { toggle: fillOptions },
    element("summary", {}, translate("invitationOne")),
    element(
      "div",
      { class: "field" },
      element("label", { for: "person" }, translate("invitationWho")),
      select,
    ),
    shown,
  );
}

function invitationContent({ person, link, code, qr }) {
  return [
    qrCode(qr, translate("invitationQr", { person })),
    sentence("invitationLink"),
    element("p", { class: "bytes", dir: "ltr" }, link),
    sentence("invitationCode"),
    element("p", { class: "bytes", dir: "ltr" }, code),
    sentence("invitationSecret", {}, { class: "quiet" }),
  ];
}

/** Black on white even in dark mode: cameras cannot read it otherwise. */
function qrCode(rows, label) {
  const runs = rows.flatMap((cells, y) =>
    [...cells.matchAll(/1+/g)].map(({ 0: { length }, index }) =>
      `M${index} ${y}h${length}v1h-${length}z`,
    ),
  );
  const viewBox = `0 0 ${rows.length} ${rows.length}`;
  const settings = { class: "qr", viewBox, role: "img", "aria-label": label };
  return svgElement("svg", settings, svgElement("path", { d: runs.join("") }));
}

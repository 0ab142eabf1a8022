// Invitations and reminders by mail, through the owner's own mail server.

import { confirmFirst } from "./dialog.js";
import { element, ownerText } from "./dom.js";
import { formatNumber, translate } from "./language.js";
import {
  button, buttons, formatValues, payloadOf, problemMessage, section, sentence, updatable,
} from "./parts.js";

const OPEN_FOR_ANSWERS = "people"; // whom an open survey waits for

/**
 * {box, update}: `update(mail, status)` takes the program's news about mails, and the survey's
 * status. `act(values)` shows, sends or stops mails.
 */
export function mailSection(act) {
  const shown = element("div", { role: "status" });
  let sender = null;
  let counts = { all: 0, missing: 0 };

  const send = async (values) => {
    shown.replaceChildren();
    try {
      const found = await act({ sender: sender?.value ?? "", ...values });
      if (values.action === "preview") shown.replaceChildren(...previewOf(found));
    } catch (problem) {
      shown.replaceChildren(...refusal(payloadOf(problem), values, send));
    }
  };
  const controls = updatable((mail, hint) => {
    if (!mail) return null;
    // What the owner has typed stays.
    sender = senderField(sender?.value ?? mail.sender);
    return [introduction(mail), ...choices(mail, hint, sender, () => counts, send)];
  });
  const progress = updatable((job) => (job ? jobReport(job, send) : null));
  progress.box.setAttribute("role", "status");
  const box = section("mailTitle", controls.box, shown, progress.box);
  return {
    box,
    update: (mail, status) => {
      box.hidden = !mail;
      const { sender: from, host, has_addresses, sent } = mail ?? {};
      if (status) counts = { all: status.invited, missing: missingPeople(status) };
      const isOpen = status?.waits_for === OPEN_FOR_ANSWERS;
      const hint = isOpen ? null : hintOf(status);
      // While mails are sent, the buttons stay as they are.
      const isRunning = mail?.job?.state === "running";
      if (!isRunning) controls.update(mail && { sender: from, host, has_addresses, sent }, hint);
      progress.update(mail?.job ?? null);
    },
  };
}

/** Whoever has withdrawn is not reminded. */
const missingPeople = ({ invited, responses, withdrawn = 0 }) => invited - responses - withdrawn;

/** Why no mails can be sent now; without a status the survey may well be open. */
const hintOf = (status) => (status ? "mailNotYet" : "mailAway");

function senderField(value) {
  const input = element("input", { id: "sender", type: "text", autocomplete: "email", dir: "auto" });
  input.value = value;
  return input;
}

function introduction({ host, sent }) {
  const { invitation = 0, reminder = 0 } = sent;
  const before = formatValues({ invitation, reminder });
  return element(
    "div",
    {},
    host ? sentence("mailServer", { host }, { class: "quiet" }) : sentence("mailNoServer"),
    invitation || reminder ? sentence("mailBefore", before) : null,
  );
}

function choices({ host, has_addresses: hasAddresses }, hint, sender, counts, send) {
  if (!hasAddresses) return [sentence("mailNoAddresses", {}, { class: "quiet" })];
  const sending = (name, count, remind) => {
    const ask = () => {
      const values = { count: formatNumber(counts()[count]), sender: sender.value, host };
      const texts = {
        question: translate(`${name}Sure`, values),
        yes: translate(`${name}Yes`),
        no: translate("no"),
      };
      confirmFirst(texts, () => send({ action: "send", remind }));
    };
    return button(name, ask, { disabled: !host || hint !== null });
  };
  return [
    element(
      "div",
      { class: "field" },
      element("label", { for: "sender" }, translate("mailSender")),
      sender,
    ),
    hint ? sentence(hint, {}, { class: "quiet" }) : null,
    buttons(
      button("mailPreview", () => send({ action: "preview", remind: false })),
      sending("mailInvite", "all", false),
      sending("mailRemind", "missing", true),
    ),
  ].filter((part) => part !== null);
}

/** The first mail, as it will arrive. */
function previewOf({ files, folder, to, subject, text }) {
  if (!files) return [sentence("mailNobody")];
  return [
    sentence("mailWritten", { files: formatNumber(files), folder }),
    element("h3", {}, translate("mailFirst", { to })),
    ownerText("p", subject, { class: "answer" }),
    ownerText("p", text, { class: "letter" }),
  ];
}

/** Why nothing was sent; a reminder that comes too soon can be sent all the same. */
function refusal(problem, values, send) {
  const content = [problemMessage(problem, { class: "warning" })];
  if (problem.code === "reminded_lately") content.push(againButton(values.remind, send));
  return content;
}

const againButton = (remind, send) =>
  buttons(button("mailAgain", () => send({ action: "send", remind, again: true })));

function jobReport(job, send) {
  const remind = job.kind === "reminder";
  const count = formatValues({ sent: job.sent, due: job.due });
  if (job.state === "running") {
    const label = translate("mailRunning", count);
    return [
      element("p", {}, label),
      element("progress", { max: job.due || 1, value: job.sent, "aria-label": label }),
      buttons(button("mailStop", () => send({ action: "stop" }))),
    ];
  }
  const retry = () => send({ action: "send", remind, retry_unsure: true });
  return [
    sentence(job.state === "done" ? "mailDone" : "mailEnded", count, { class: "figure" }),
    job.problem ? problemMessage(job.problem, { class: "warning" }) : null,
    job.problem?.code === "reminded_lately" ? againButton(remind, send) : null,
    listed("mailRefused", job.refused),
    listed("mailPostponed", job.postponed),
    listed("mailUnsure", job.unsure),
    job.unsure.length ? buttons(button("mailRetry", retry)) : null,
  ].filter((part) => part !== null);
}

const listed = (name, people) =>
  people.length ? sentence(name, { people: people.join(", ") }, { class: "warning" }) : null;

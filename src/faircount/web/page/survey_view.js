// Before a person answers: who asks, what is asked, what is promised, what is not; and what would leave the device.

import { hex } from "../client/bytes.js";
import { element, foreign, show } from "./dom.js";
import { say, small, written } from "./language.js";
import { sureness } from "./sureness.js";

const WEAK = 95; // percent: whoever may be surer than this of an answer is told it
const NEGLIGIBLE = 1e-12;

const name = (text) => text || say("noName");

/** The survey, with the answers to choose from. `chosen` is a position or null; `onContinue(position)`. */
export function showQuestion(params, chosen, onChoose, onContinue) {
  const problem = element("p", { role: "alert", class: "warning", hidden: true });
  const form = element(
    "form",
    { novalidate: true, submit: (event) => submitted(event, problem, onContinue) },
    choices(params, chosen, onChoose),
    problem,
    element("div", { class: "buttons" }, element("button", { class: "main", type: "submit" }, say("continue"))),
  );
  show(introduction(params), form, promise(params), checked(params), uncovered(params));
}

function introduction(params) {
  const alone = params.s1_operator === params.s2_operator;
  const operators = { s1: name(params.s1_operator), s2: name(params.s2_operator) };
  return element(
    "div",
    {},
    foreign("h1", say("asks", { owner: name(params.owner) })),
    params.purpose ? foreign("p", say("purpose", { purpose: params.purpose })) : null,
    foreign("p", say(alone ? "sameOrganization" : "organizations", operators), { class: alone ? "warning" : null }),
    element("p", { class: "quiet" }, say("invited", { n: written(params.n_max), minimum: written(params.minimum) })),
    params.contact ? foreign("p", say("contact", { contact: params.contact }), { class: "quiet" }) : null,
  );
}

function choices(params, chosen, onChoose) {
  const rows = params.items.map((item, at) => {
    const radio = element("input", { type: "radio", name: "answer", value: at, change: () => onChoose(at) });
    radio.checked = at === chosen;
    return element("label", { class: "choice" }, radio, foreign("span", item));
  });
  const legend = foreign("legend", params.question || say("choose"));
  return element("fieldset", {}, legend, element("p", { class: "quiet" }, say("choose")), rows);
}

function submitted(event, problem, onContinue) {
  event.preventDefault();
  const picked = event.target.querySelector("input:checked");
  problem.hidden = picked !== null;
  problem.textContent = picked ? "" : say("chooseFirst");
  if (picked) onContinue(Number(picked.value));
  else event.target.querySelector("input").focus();
}

/** The guarantee in sentences for everybody, and its numbers. */
function promise(params) {
  const { epsilon, delta } = params.real;
  const sure = sureness(epsilon);
  const numbers = { epsilon: written(epsilon, { maximumSignificantDigits: 4 }), delta: small(delta) };
  return element(
    "section",
    {},
    element("h2", {}, say("promiseTitle")),
    element("p", {}, say("promise", { sure: written(sure) })),
    sure > WEAK ? element("p", { class: "warning" }, say("promiseWeak")) : null,
    element("p", {}, whomFrom(params)),
    delta > NEGLIGIBLE ? element("p", {}, say("promiseDelta", { delta: share(delta) })) : null,
    params.settings.floor ? element("p", {}, say("promiseFloor", { floor: written(params.settings.floor) })) : null,
    element("p", { class: "quiet" }, say("promiseTwice")),
    element("p", { class: "quiet" }, say("promiseNumbers", numbers)),
  );
}

/** From whom the promise protects, and on whom that relies. */
function whomFrom(params) {
  if (noiseOf(params) === "users") return say("promiseServers", { phi: written(params.phi) });
  const words = params.s1_operator === params.s2_operator ? "promiseOneServer" : "promiseServerNoise";
  return say(words, { s1: name(params.s1_operator), s2: name(params.s2_operator) });
}

/** Who makes the noise: "users" or "servers". */
const noiseOf = (params) => params.derived.proof?.noise ?? "users";

/** A small probability in the form 1 / 1,000,000, rounded up. */
const share = (delta) => `1 / ${written(Math.floor(1 / delta), { maximumSignificantDigits: 3, roundingMode: "floor" })}`;

function checked(params) {
  const counts = { n: written(params.n_max), minimum: written(params.minimum) };
  const noise = noiseOf(params) === "servers" ? "checkedServerTable" : "checkedTable";
  const lines = [
    "checkedDigest",
    ...(params.proven ? ["checkedProof"] : []),
    ...(params.drawn.table ? [noise] : params.proven ? ["checkedCoins"] : []),
    "checkedPromise",
  ];
  return section("checkedTitle", lines, counts, element("p", { class: "quiet" }, say("checkedNot")));
}

function uncovered(params) {
  const wrong = params.proven ? "uncoveredServers" : "uncoveredCounts";
  const lines = ["uncoveredBoth", "uncoveredPage", "uncoveredPart", wrong, "uncoveredDevice"];
  return section("uncoveredTitle", lines, { s1: name(params.s1_operator) });
}

function section(title, lines, values, more = null) {
  const points = lines.map((line) => element("li", {}, say(line, values)));
  return element("section", {}, element("h2", {}, say(title)), element("ul", {}, points), more);
}

/** The answer beside the bytes that would leave the device. */
export function showConfirmation(params, answer, made, onSend, onBack) {
  const operators = { s1: name(params.s1_operator), s2: name(params.s2_operator) };
  const once = () => ((send.disabled = true), onSend());
  const send = element("button", { class: "main", type: "button", click: once }, say("send"));
  show(
    element("h1", {}, say("confirmTitle")),
    element("p", {}, say("confirmAnswer")),
    foreign("p", params.items[answer], { class: "answer" }),
    bytesShown("confirmShare", operators, made.share),
    bytesShown("confirmBlob", operators, made.blob),
    element("p", {}, say(params.proven ? "confirmProven" : "confirmWords")),
    element("p", {}, say("confirmOnce")),
    element("div", { class: "buttons" }, send, element("button", { type: "button", click: onBack }, say("back"))),
  );
}

function bytesShown(title, operators, bytes) {
  const words = say(title, { ...operators, bytes: written(bytes.length) });
  const text = hex(bytes).replace(/(.{8})/g, "$1 ").trim();
  const box = { class: "bytes", dir: "ltr", tabindex: "0", role: "group", "aria-label": words };
  return element("div", {}, element("h2", {}, words), element("div", box, text));
}

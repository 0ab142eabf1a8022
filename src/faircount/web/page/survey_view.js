// Before a participant answers: who asks, the question, what is promised and what is not, and the
// bytes that would leave the device.

import { hex } from "../client/bytes.js";
import { hasOneOperator } from "../client/operators.js";
import { attackerCertainty, isWeak, NEGLIGIBLE_DELTA } from "./certainty.js";
import { element, ownerText, show } from "./dom.js";
import { formatNumber, formatOdds, formatSmall, translate } from "./language.js";
import { operatorNames } from "./operators.js";
import { foreignHost } from "./origin.js";

/** The survey with its items. `chosen` is a position or null; `onContinue(position)`. */
export function showQuestion(params, chosen, onChoose, onContinue) {
  const problem = element("p", { role: "alert", class: "warning", hidden: true });
  const form = element(
    "form",
    { novalidate: true, submit: (event) => submit(event, problem, onContinue) },
    choices(params, chosen, onChoose),
    problem,
    element(
      "div",
      { class: "buttons" },
      element("button", { class: "main", type: "submit" }, translate("continue")),
    ),
  );
  show(
    introduction(params),
    form,
    promise(params),
    operators(params),
    checked(params),
    uncovered(params),
  );
}

function introduction(params) {
  const isAlone = hasOneOperator(params);
  const organizations = translate(
    isAlone ? "sameOrganization" : "organizations",
    operatorNames(params),
  );
  const counts = { n: formatNumber(params.n_max), minimum: formatNumber(params.minimum) };
  const { contact, purpose } = params;
  const owner = params.owner || translate("noName");
  return element(
    "div",
    {},
    ownerText("h1", translate("asks", { owner })),
    purpose ? ownerText("p", translate("purpose", { purpose })) : null,
    ownerText("p", organizations, { class: isAlone ? "warning" : null }),
    element("p", { class: "quiet" }, translate("invited", counts)),
    contact ? ownerText("p", translate("contact", { contact }), { class: "quiet" }) : null,
  );
}

function choices(params, chosen, onChoose) {
  const rows = params.items.map((item, at) => {
    const settings = { type: "radio", name: "answer", value: at, change: () => onChoose(at) };
    const radio = element("input", settings);
    radio.checked = at === chosen;
    return element("label", { class: "choice" }, radio, ownerText("span", item));
  });
  const legend = ownerText("legend", params.question || translate("choose"));
  const hint = element("p", { class: "quiet" }, translate("choose"));
  return element("fieldset", {}, legend, hint, rows);
}

function submit(event, problem, onContinue) {
  event.preventDefault();
  const picked = event.target.querySelector("input:checked");
  problem.hidden = picked !== null;
  problem.textContent = picked ? "" : translate("chooseFirst");
  if (picked) onContinue(Number(picked.value));
  else event.target.querySelector("input").focus();
}

/** The guarantee in everyday sentences, and its numbers. */
function promise(params) {
  const { epsilon, delta } = params.real;
  const { floor } = params.settings;
  const numbers = {
    epsilon: formatNumber(epsilon, { maximumSignificantDigits: 4 }),
    delta: formatSmall(delta),
  };
  const paragraph = (name, values, settings = {}) =>
    ownerText("p", translate(name, values), settings);
  return element(
    "section",
    {},
    element("h2", {}, translate("promiseTitle")),
    paragraph("promise", { sure: formatNumber(attackerCertainty(epsilon)) }),
    isWeak(params.real) ? paragraph("promiseWeak", {}, { class: "warning" }) : null,
    ownerText("p", adversaries(params)),
    delta > NEGLIGIBLE_DELTA ? paragraph("promiseDelta", { delta: formatOdds(delta) }) : null,
    floor ? paragraph("promiseFloor", { floor: formatNumber(floor) }) : null,
    paragraph("promiseTwice", {}, { class: "quiet" }),
    paragraph("promiseNumbers", numbers, { class: "quiet" }),
  );
}

/** Against whom the promise holds, and whom that relies on. */
function adversaries(params) {
  const isAlone = hasOneOperator(params);
  const names = operatorNames(params);
  if (noiseSource(params) === "users") {
    const name = isAlone ? "promiseOneServerShares" : "promiseServers";
    return translate(name, { phi: formatNumber(params.phi), ...names });
  }
  return translate(isAlone ? "promiseOneServer" : "promiseServerNoise", names);
}

/** Who adds the noise: "users" or "servers". */
const noiseSource = (params) => params.derived.proof?.noise ?? "users";

/** Who runs the servers, with fingerprints to compare, and what these show. */
function operators(params) {
  const { s1, s2 } = operatorNames(params);
  const { fingerprints } = params;
  const row = (name, fingerprint) => [
    ownerText("dt", name),
    element("dd", { class: "fingerprint", dir: "ltr" }, fingerprint),
  ];
  return element(
    "section",
    {},
    element("h2", {}, translate("operatorsTitle")),
    element("p", {}, translate("operatorsSigned")),
    element("dl", {}, row(s1, fingerprints.s1), row(s2, fingerprints.s2)),
    element("p", {}, translate("operatorsCompare")),
  );
}

function checked(params) {
  const counts = { n: formatNumber(params.n_max), minimum: formatNumber(params.minimum) };
  const names = ["checkedDigest", "checkedOperators"];
  if (params.proven) names.push("checkedProof");
  if (params.drawn.table) {
    names.push(noiseSource(params) === "servers" ? "checkedServerTable" : "checkedTable");
  } else if (params.proven) {
    names.push("checkedCoins");
  }
  names.push("checkedPromise");
  const limits = element("p", { class: "quiet" }, translate("checkedNot"));
  return section("checkedTitle", names, counts, limits);
}

function uncovered(params) {
  const wrong = params.proven ? "uncoveredServers" : "uncoveredCounts";
  const both = hasOneOperator(params) ? [] : ["uncoveredBoth"];
  const host = foreignHost();
  const page = host ? "uncoveredPageElsewhere" : "uncoveredPage";
  const names = [...both, page, "uncoveredPart", wrong, "uncoveredDevice"];
  return section("uncoveredTitle", names, { ...operatorNames(params), host });
}

function section(title, names, values, more = null) {
  const points = names.map((name) => ownerText("li", translate(name, values)));
  return element(
    "section",
    {},
    element("h2", {}, translate(title)),
    element("ul", {}, points),
    more,
  );
}

/** The answer and what happens to it, in words; the bytes that would leave the device on request. */
export function showConfirmation(params, answer, report, onSend, onBack) {
  const sendOnce = () => {
    send.disabled = true;
    onSend();
  };
  const settings = { class: "main", type: "button", click: sendOnce };
  const send = element("button", settings, translate("send"));
  const back = element("button", { type: "button", click: onBack }, translate("back"));
  const names = operatorNames(params);
  show(
    element("h1", {}, translate("confirmTitle")),
    element("p", {}, translate("confirmAnswer")),
    ownerText("p", params.items[answer], { class: "answer" }),
    element("p", {}, translate(params.proven ? "confirmProven" : "confirmText")),
    element("p", {}, translate("confirmOnce")),
    ownerText("p", translate("confirmOwner", { owner: params.owner || translate("noName") })),
    element("div", { class: "buttons" }, send, back),
    element(
      "details",
      {},
      element("summary", {}, translate("confirmBytes")),
      bytesBox("confirmShare", names, report.share),
      bytesBox("confirmEncryptedShare", names, report.encryptedShare),
    ),
  );
}

function bytesBox(title, names, bytes) {
  const heading = translate(title, { ...names, bytes: formatNumber(bytes.length) });
  const text = hex(bytes).replace(/(.{8})/g, "$1 ").trim();
  const box = { class: "bytes", dir: "ltr", tabindex: "0", role: "group", "aria-label": heading };
  return element("div", {}, ownerText("h2", heading), element("div", box, text));
}

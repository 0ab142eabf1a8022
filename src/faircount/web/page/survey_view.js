// Before a participant answers: who asks, the questions, what is promised and what is not.

import { hasOneOperator } from "../client/operators.js";
import { attackerCertainty, isWeak, NEGLIGIBLE_DELTA } from "./certainty.js";
import { element, ownerText, show } from "./dom.js";
import { formatNumber, formatOdds, formatSmall, translate } from "./language.js";
import { hasLevels, levelPromise } from "./levels.js";
import { operatorNames } from "./operators.js";
import { foreignHost } from "./origin.js";
import { questionForm } from "./question_form.js";
import { wordsElement, wordsOf } from "./question_words.js";
import { hasSeveral, say } from "./wording.js";

/** The survey with its questions; `onContinue(sheet, level)`, and `render` shows it again. */
export function showQuestions(params, draft, onContinue, render) {
  show(
    introduction(params),
    questionForm(params, draft, onContinue, render),
    promise(params),
    operators(params),
    checked(params),
    uncovered(params),
  );
}

function introduction(params) {
  const isAlone = hasOneOperator(params);
  const organizations = say(
    params,
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
    title(params),
  );
}

function title(params) {
  const words = wordsOf(params);
  return words.title ? wordsElement("h2", words.title, words, { class: "survey-title" }) : null;
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
    ownerText("p", say(params, name, values), settings);
  const byLevel = hasLevels(params) ? levelPromise(params, largestSingle(params)) : null;
  return element(
    "section",
    {},
    element("h2", {}, say(params, "promiseTitle")),
    byLevel?.sentences ?? [
      paragraph("promise", { sure: formatNumber(attackerCertainty(epsilon)) }),
      singleAnswer(params),
      isWeak(params.real) ? paragraph("promiseWeak", {}, { class: "warning" }) : null,
    ],
    ownerText("p", adversaries(params)),
    delta > NEGLIGIBLE_DELTA ? paragraph("promiseDelta", { delta: formatOdds(delta) }) : null,
    floor ? paragraph("promiseFloor", { floor: formatNumber(floor) }) : null,
    paragraph("promiseTwice", {}, { class: "quiet" }),
    byLevel?.numbers ?? paragraph("promiseNumbers", numbers, { class: "quiet" }),
  );
}

/**
 * What one of several answers loses at most, null with one question: the epsilon of its group, and
 * with levels that of two cells of the second table.
 */
function largestSingle(params) {
  if (!hasSeveral(params)) return null;
  const { noises, second } = params.drawn;
  const ofCells = (number) => (second ? 2 * second[number].epsilon : 0);
  const losses = noises.flatMap(({ epsilon, questions }) =>
    questions.map((number) => epsilon + ofCells(number)),
  );
  return Math.max(...losses);
}

function singleAnswer(params) {
  const largest = largestSingle(params);
  if (largest === null) return null;
  const isLess = largest < params.real.epsilon;
  const sure = formatNumber(attackerCertainty(largest));
  return element("p", {}, translate(isLess ? "promiseSingle" : "promiseSingleSame", { sure }));
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
  if (hasLevels(params)) names.push("checkedLevels");
  if (params.drawn.table || params.drawn.noises) {
    names.push(noiseSource(params) === "servers" ? "checkedServerTable" : "checkedTable");
  } else if (params.proven) {
    names.push("checkedCoins");
  }
  names.push("checkedPromise");
  const limits = element("p", { class: "quiet" }, translate("checkedNot"));
  return section(params, "checkedTitle", names, counts, limits);
}

function uncovered(params) {
  const wrong = params.proven ? "uncoveredServers" : "uncoveredCounts";
  const both = hasOneOperator(params) ? [] : ["uncoveredBoth"];
  const host = foreignHost();
  const page = host ? "uncoveredPageElsewhere" : "uncoveredPage";
  const names = [...both, page, "uncoveredPart", wrong, "uncoveredDevice"];
  return section(params, "uncoveredTitle", names, { ...operatorNames(params), host });
}

function section(params, heading, names, values, more = null) {
  const points = names.map((name) => ownerText("li", say(params, name, values)));
  return element(
    "section",
    {},
    element("h2", {}, translate(heading)),
    element("ul", {}, points),
    more,
  );
}

// The mechanisms whose reports are proven to be one sheet of answers: a report is the bits of a
// sheet, perhaps a few coins, and a proof. The noise comes from both servers, each adding the whole
// noise of a release, or from the coins of all participants, flipped and placed by values that
// nobody knew in advance. The entries have the form described in mechanisms.js.

import { same } from "./bytes.js";
import { encode, parseInteger, unscaled } from "./canonical_json.js";
import {
  checkDerived, checkEpsilon, checkModulus, COMMON, NO_DIGEST, oneHot, OVERFLOW,
} from "./derived_values.js";
import { uniformElements } from "./field.js";
import {
  groupNoises, largestSpan, spentUnits, tablesDelta, tablesDigest,
} from "./joint_noise.js";
import { drawPlaced, leveledForm, readLevels, secondNoises } from "./levels.js";
import {
  binomial, decoysDelta, isWithin, laplaceBounds, laplaceDelta, laplaceDistribution,
} from "./privacy.js";
import { prove, reportLayout } from "./proof.js";
import { encodeSheet } from "./questionnaire.js";
import { insist } from "./refusal.js";
import { checkAttendance, coinsOf } from "./settings.js";
import { laplaceTable, tableDigest } from "./tables.js";

/** The bits of one vote for one of several answers: exactly one of them is 1. */
function voteForm(answers, coins = 0) {
  const weights = Array.from({ length: answers }, (_, bit) => [bit, 1]);
  return { bits: answers, coins, constraints: [{ weights, value: 1 }], cells: answers };
}

/** The layout of reports of this form; the published proof parameters must follow from it. */
function checkLayout(params, form) {
  const { keys, n_max: users } = params;
  checkAttendance(params, { countInsiders: false });
  const layout = reportLayout(parseInteger(params.derived.q), form, users);
  const proofFollows = same(encode(params.derived.proof), encode(layout.proof));
  // check: page-proof-form - a proof in a field that is too small
  insist(proofFollows, "derived", "the proof does not follow from the other parameters");
  // Equal commitments would let one server copy the other's, and then choose the query alone.
  const commitments = new Set([keys.coordinator_commitment, keys.aggregator_commitment, NO_DIGEST]);
  // check: page-commitments - one server chooses the query alone
  insist(commitments.size === 3, "derived", "each server must commit to a value of its own");
  return layout;
}

/** A participant's report: the bits of the answers, fair coins, and the proof. */
function drawReport({ layout }, bits, random) {
  const all = [...bits, ...fairBits(layout.coins, random)];
  const blind = uniformElements(BigInt(layout.q), layout.degree, random);
  return prove(layout, all, blind.map(Number)).map(BigInt);
}

const drawVote = (params, sheet, random) =>
  drawReport(params.drawn, oneHot(params.answers, sheet[0]).map(Number), random);

function fairBits(count, random) {
  const bytes = random(Math.ceil(count / 8));
  return Array.from({ length: count }, (_, at) => (bytes[at >> 3] >> (7 - (at & 7))) & 1);
}

/** Either server's noise alone protects everybody, however many reports are accepted. */
const serverLaplace = {
  settings: [...COMMON, "epsilon"],
  proven: true,

  async derive(params) {
    const epsilon = checkEpsilon(unscaled(params.settings.epsilon));
    const table = laplaceTable(parseInteger(params.settings.epsilon), epsilon, 1);
    checkDerived(params, { h: null, D: null, p: null, tables: await tableDigest(table) });
    const bounds = laplaceBounds(epsilon, 2, OVERFLOW / params.answers);
    checkModulus(params, bounds.map((bound) => params.n_max + 2 * bound), params.answers);
    return { epsilon, table, layout: checkLayout(params, voteForm(params.answers)) };
  },

  promiseHolds(params, { epsilon, table }) {
    const promised = unscaled(params.epsilon);
    const tableCost = 2 * (1 + Math.exp(epsilon / 2)) * table.distance; // of both moved counts
    return isWithin(laplaceDelta(epsilon, promised) + tableCost, unscaled(params.delta));
  },

  vector: drawVote,
  counted: ({ epsilon }) => ({ p: 1, noise: (times) => laplaceDistribution(epsilon, 2 * times) }),
};

const serverCoins = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: true,

  async derive(params) {
    const coins = coinsOf(params, (needed) => needed);
    checkDerived(params, { h: null, D: coins, p: null, tables: NO_DIGEST });
    checkModulus(params, [params.n_max + 2 * coins], params.answers);
    return { coins, layout: checkLayout(params, voteForm(params.answers)) };
  },

  promiseHolds: (params, { coins }) =>
    isWithin(decoysDelta(coins, unscaled(params.epsilon)), unscaled(params.delta)),
  vector: drawVote,
  counted: ({ coins }) => ({ p: 1, noise: (times) => binomial(2 * times * coins, 0.5) }),
};

const placedCoins = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: true,

  async derive(params) {
    const { answers, settings, n_max: users } = params;
    const coins = coinsOf(params, (needed) => needed + settings.insiders);
    const fewest = users - settings.dropouts;
    // The coins of one item come from different participants: one of them knows only one coin.
    insist(fewest >= coins, "derived", "an item needs more coins than participants may be left");
    const coinsPerUser = Math.ceil((coins * answers) / fewest);
    checkDerived(params, { h: null, D: coins, p: null, tables: NO_DIGEST });
    checkModulus(params, [users + coins], answers + coinsPerUser);
    return { coins, coinsPerUser, layout: checkLayout(params, voteForm(answers, coinsPerUser)) };
  },

  promiseHolds(params, { coins, coinsPerUser }, size) {
    const isEnough = size >= coins && size * coinsPerUser >= coins * params.answers;
    const delta = decoysDelta(coins - params.phi, unscaled(params.epsilon));
    return isEnough && isWithin(delta, unscaled(params.delta));
  },

  vector: drawVote,
  counted: ({ coins }) => ({ p: 1, noise: (times) => binomial(times * coins, 0.5) }),
};

/** Joint noise on whole sheets: one promise for all answers of a person together. */
const serverJoint = {
  settings: [...COMMON, "epsilon", "groups"],
  proven: true,
  takesSheets: true,

  async derive(params) {
    const { questionnaire, settings, n_max: users } = params;
    const { bits, cells, constraints, leastModulus } = questionnaire;
    const noises = await groupNoises(questionnaire, settings.groups);
    const isCovered = spentUnits(noises) <= parseInteger(settings.epsilon);
    // check: page-group-epsilon - the groups spend more than what is promised
    insist(isCovered, "malformed", "the groups of questions spend more than epsilon");
    checkDerived(params, { h: null, D: null, p: null, tables: await tablesDigest(noises) });
    const span = largestSpan(questionnaire, noises, users);
    // In a smaller field the weights of a constraint wrap around, and a false report satisfies it.
    checkModulus(params, [span], Math.max(bits, leastModulus));
    return { noises, layout: checkLayout(params, { bits, coins: 0, constraints, cells }) };
  },

  promiseHolds(params, { noises }) {
    const isCovered = spentUnits(noises) <= parseInteger(params.epsilon);
    return isCovered && isWithin(tablesDelta(noises), unscaled(params.delta));
  },

  vector: ({ drawn, questionnaire }, sheet, random) =>
    drawReport(drawn, encodeSheet(questionnaire, sheet), random),
};

/** Joint noise, and a second table of those whose own coin counts them again. */
const serverLevels = {
  settings: [...COMMON, "epsilon", "groups", "levels"],
  derived: ["coins"],
  proven: true,
  takesSheets: true,

  async derive(params) {
    const { questionnaire, settings, n_max: users } = params;
    const levels = readLevels(settings.levels);
    const form = leveledForm(questionnaire);
    const noises = await groupNoises(questionnaire, settings.groups);
    const isBase = spentUnits(noises) <= levels.offered[0].epsilonUnits;
    // check: page-base-epsilon - groups that spend more break the promise of the strongest level
    insist(isBase, "malformed", "the groups of questions spend more than the strongest level");
    const isLast = parseInteger(settings.epsilon) === levels.offered.at(-1).epsilonUnits;
    // check: page-weakest-level - less is promised than the weakest level loses
    insist(isLast, "malformed", "epsilon is not that of the weakest level");
    const coins = levels.offered.map(({ coin }) => String(coin));
    const areTheirs = same(encode(params.derived.coins), encode(coins));
    // check: page-level-coins - a coin that counts people again too often
    insist(areTheirs, "derived", "the coins do not follow from the privacy levels");
    const second = await secondNoises(levels, noises, form.sizes.length);
    checkDerived(params, { h: null, D: null, p: null, tables: await tablesDigest(noises, second) });
    const spans = second.map(({ table }) => users + 4 * (table.cumulative.length - 1));
    const span = Math.max(largestSpan(questionnaire, noises, users), ...spans);
    checkModulus(params, [span], Math.max(form.bits, form.leastModulus));
    return { levels, form, noises, second, layout: checkLayout(params, form) };
  },

  promiseHolds(params, { levels, noises, second }) {
    const isCovered = levels.offered.at(-1).epsilonUnits <= parseInteger(params.epsilon);
    // A replaced answer moves two cells of the second table per question.
    const delta = tablesDelta(noises) + 2 * tablesDelta(second);
    return isCovered && isWithin(delta, unscaled(params.delta));
  },

  vector: ({ drawn }, sheet, random, level) =>
    drawReport(drawn, drawPlaced(drawn, sheet, level, random), random),
};

export const PROVEN = {
  "server-joint": serverJoint,
  "server-levels": serverLevels,
  "server-laplace": serverLaplace,
  "server-coins": serverCoins,
  "placed-coins": placedCoins,
};

// The mechanisms for which this client can draw a report and verify the published privacy promise.
// The entries of MECHANISMS have:
//   settings         names that the published settings must have
//   proven           whether reports carry a proof that they are one sheet of answers
//                    (proven_mechanisms.js); without one, a malicious client can send any numbers
//   takesSheets      whether any questions can be asked; the others count the answers to one
//                    question, and `params.answers` says how many answers it has
//   derive(params)   what reports are drawn from; derived values are computed here, and parameters
//                    that publish others are refused
//   promiseHolds(params, drawn, size)  whether the promise holds with this many accepted reports
//   derived          further names that the derived values have
//   vector(params, sheet, random, level)  what a client splits between the servers, as integers
//   counted(drawn, size)               for one question, {p, noise, isPaired}: the probability that
//                                      a response is counted; noise(times), the distribution of the
//                                      noise added to so many counts together; and whether two
//                                      items share it

import { parseInteger, unscaled } from "./canonical_json.js";
import {
  checkDerived, checkEpsilon, checkModulus, COMMON, NO_DIGEST, oneHot, OVERFLOW,
} from "./derived_values.js";
import {
  binomial, decoysDelta, isWithin, laplaceBounds, laplaceDistribution, laplaceEpsilon,
  samplingDelta, samplingDeltaTwoItems,
} from "./privacy.js";
import { PROVEN } from "./proven_mechanisms.js";
import { insist } from "./refusal.js";
import { checkAttendance, checkFloor, coinsOf } from "./settings.js";
import { coinTable, draw, laplaceTable, tableDigest } from "./tables.js";

const TWO_ITEMS_LIMIT = 400;

const laplace = {
  settings: [...COMMON, "epsilon"],
  proven: false,

  async derive(params) {
    const { settings, n_max: users } = params;
    checkAttendance(params, { countInsiders: true });
    const epsilon = checkEpsilon(unscaled(settings.epsilon));
    const h = users - settings.insiders - settings.dropouts; // participants whose noise is secret
    // Two counts add up to the number of participants, so one draw x hides both, as (x, -x).
    const isPaired = params.answers === 2;
    const times = isPaired ? 2 : 1;
    const tableEpsilon = times * epsilon;
    const units = BigInt(times) * parseInteger(settings.epsilon);
    const table = laplaceTable(units, tableEpsilon, h);
    checkDerived(params, { h, D: null, p: null, tables: await tableDigest(table) });
    const bounds = laplaceBounds(tableEpsilon, users / h, OVERFLOW / params.answers);
    checkModulus(params, bounds.map((bound) => users + 2 * bound));
    return { tableEpsilon, isPaired, h, table };
  },

  promiseHolds(params, { tableEpsilon, isPaired, h, table }, size) {
    const unknown = size - params.phi; // accepted reports whose noise the adversary does not know
    if (unknown < 1) return false;
    const draws = isPaired ? 1 : 2; // that a replaced answer moves
    const left = laplaceEpsilon(tableEpsilon, unknown / h) / 2; // of each draw
    const delta = draws * (1 + Math.exp(left)) * unknown * table.distance; // of the finite table
    const total = draws * left;
    return isWithin(total, unscaled(params.epsilon)) && isWithin(delta, unscaled(params.delta));
  },

  vector({ answers, drawn: { table, isPaired } }, sheet, random) {
    const vote = oneHot(answers, sheet[0]);
    if (!isPaired) return vote.map((count) => count + BigInt(draw(table, random)));
    const shift = BigInt(draw(table, random));
    return [vote[0] + shift, vote[1] - shift];
  },

  counted: ({ tableEpsilon, isPaired, h }, size) =>
    ({ p: 1, noise: (times) => laplaceDistribution(tableEpsilon, (times * size) / h), isPaired }),
};

const decoys = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: false,

  async derive(params) {
    const { settings, n_max: users } = params;
    checkAttendance(params, { countInsiders: true });
    const h = users - settings.insiders - settings.dropouts;
    const coins = coinsOf(params, (needed) => allocatedCoins(needed, users, h));
    insist(coins % users === 0, "derived", "participants would flip unequal numbers of coins");
    checkDerived(params, { h, D: coins, p: null, tables: NO_DIGEST });
    checkModulus(params, [users + coins]);
    return { coinsPerUser: coins / users };
  },

  promiseHolds(params, { coinsPerUser }, size) {
    const unknownCoins = (size - params.phi) * coinsPerUser;
    const delta = decoysDelta(unknownCoins, unscaled(params.epsilon));
    return isWithin(delta, unscaled(params.delta));
  },

  vector: ({ answers, drawn: { coinsPerUser } }, sheet, random) =>
    oneHot(answers, sheet[0]).map((count) => count + BigInt(countHeads(coinsPerUser, random))),

  counted: ({ coinsPerUser }, size) =>
    ({ p: 1, noise: (times) => binomial(times * size * coinsPerUser, 0.5) }),
};

/** The fewest coins that leave `needed` of them secret when only h of the participants remain. */
function allocatedCoins(needed, users, h) {
  const extra = needed % h;
  return Math.floor(needed / h) * users + (extra ? extra + users - h : 0);
}

/** Heads among this many fair coins. */
function countHeads(coins, random) {
  const bytes = random(Math.ceil(coins / 8));
  bytes[bytes.length - 1] &= 0xff >> (8 * bytes.length - coins); // bits beyond the last coin
  return bytes.reduce((total, byte) => total + byte.toString(2).replaceAll("0", "").length, 0);
}

const dpds = {
  settings: [...COMMON, "delta", "epsilon", "floor", "p"],
  proven: false,

  async derive(params) {
    const { settings, n_max: users } = params;
    const heads = parseInteger(settings.p);
    checkFloor(params);
    checkDerived(params, { h: null, D: null, p: settings.p, tables: NO_DIGEST });
    checkModulus(params, [users]);
    return { coin: coinTable(heads), p: unscaled(settings.p) };
  },

  promiseHolds(params, { p }, size) {
    const missing = params.n_max - size;
    const crowd = Math.max(0, params.settings.floor - params.phi - missing);
    const users = size - params.phi;
    const epsilon = unscaled(params.epsilon);
    const isSmall = crowd && 2 * crowd < users && users <= TWO_ITEMS_LIMIT;
    const delta =
      params.answers === 2 && isSmall
        ? samplingDeltaTwoItems(users, crowd, p, epsilon)
        : samplingDelta(crowd, p, epsilon);
    return isWithin(delta, unscaled(params.delta));
  },

  vector({ answers, drawn: { coin } }, sheet, random) {
    const counted = BigInt(draw(coin, random));
    return oneHot(answers, sheet[0]).map((count) => count * counted);
  },

  counted: ({ p }) => ({ p, noise: null }),
};

export const MECHANISMS = { laplace, decoys, dpds, ...PROVEN };

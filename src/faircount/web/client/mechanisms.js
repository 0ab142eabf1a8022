// The mechanisms for which this client can draw a report and verify the published privacy promise.
// The entries of MECHANISMS have:
//   settings         names that the published settings must have
//   proven           whether reports carry a proof that they are one vote (proven_mechanisms.js);
//                    without one, a malicious client can send any numbers
//   prepare(params)  what reports are drawn from; derived values are computed here, and parameters
//                    that publish others are refused
//   promiseHolds(params, drawn, size)     whether the promise holds with this many accepted reports
//   vector(drawn, items, answer, random)  what a client splits between the servers, as integers
//   counted(drawn, size)                  {p, noise}: the probability that a response is counted,
//                                         and the distribution of the noise added to a count

import { parseInteger, unscaled } from "./canonical_json.js";
import {
  checkDerived, checkEpsilon, checkModulus, coinsOf, COMMON, NO_DIGEST, oneHot, OVERFLOW,
} from "./derived_values.js";
import {
  binomial, decoysDelta, isWithin, laplaceBound, laplaceEpsilon, laplaceLaw, samplingDelta,
  samplingDeltaTwoItems,
} from "./privacy.js";
import { PROVEN } from "./proven_mechanisms.js";
import { insist } from "./refusal.js";
import { coinTable, draw, laplaceTable, tableDigest } from "./tables.js";

const TWO_ITEMS_LIMIT = 400;

const laplace = {
  settings: [...COMMON, "epsilon"],
  proven: false,

  async prepare(params) {
    const { settings, n_max: users } = params;
    const epsilon = checkEpsilon(unscaled(settings.epsilon));
    const h = users - settings.insiders - settings.dropouts; // participants whose noise is secret
    insist(h >= 1, "malformed", "no participant is left whose noise is secret");
    const table = laplaceTable(parseInteger(settings.epsilon), epsilon, h);
    checkDerived(params, { h, D: null, p: null, tables: await tableDigest(table) });
    const bound = laplaceBound(epsilon, users / h, OVERFLOW / params.items.length);
    // The bound is floating point: Python may round it to the next integer.
    const bounds = [bound, bound - 1, bound + 1];
    checkModulus(params, bounds.map((candidate) => users + 2 * candidate));
    return { epsilon, h, table };
  },

  promiseHolds(params, { epsilon, h, table }, size) {
    const unknown = size - params.phi; // accepted reports whose noise the adversary does not know
    if (unknown < 1) return false;
    const left = laplaceEpsilon(epsilon, unknown / h);
    const delta = (1 + Math.exp(left)) * 2 * unknown * table.distance; // cost of the finite table
    return isWithin(left, unscaled(params.epsilon)) && isWithin(delta, unscaled(params.delta));
  },

  vector: ({ table }, items, answer, random) =>
    oneHot(items, answer).map((count) => count + BigInt(draw(table, random))),

  counted: ({ epsilon, h }, size) => ({ p: 1, noise: laplaceLaw(epsilon, size / h) }),
};

const decoys = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: false,

  async prepare(params) {
    const { settings, n_max: users } = params;
    const coins = coinsOf(params);
    insist(coins % users === 0, "derived", "participants would flip unequal numbers of coins");
    const h = users - settings.insiders - settings.dropouts;
    checkDerived(params, { h, D: coins, p: null, tables: NO_DIGEST });
    checkModulus(params, [users + coins]);
    return { coinsPerUser: coins / users };
  },

  promiseHolds(params, { coinsPerUser }, size) {
    const unknownCoins = (size - params.phi) * coinsPerUser;
    const delta = decoysDelta(unknownCoins, unscaled(params.epsilon));
    return isWithin(delta, unscaled(params.delta));
  },

  vector: ({ coinsPerUser }, items, answer, random) =>
    oneHot(items, answer).map((count) => count + BigInt(countHeads(coinsPerUser, random))),

  counted: ({ coinsPerUser }, size) => ({ p: 1, noise: binomial(size * coinsPerUser, 0.5) }),
};

/** Heads among this many fair coins. */
function countHeads(coins, random) {
  const bytes = random(Math.ceil(coins / 8));
  bytes[bytes.length - 1] &= 0xff >> (8 * bytes.length - coins); // bits beyond the last coin
  return bytes.reduce((total, byte) => total + byte.toString(2).replaceAll("0", "").length, 0);
}

const dpds = {
  settings: [...COMMON, "delta", "epsilon", "floor", "p"],
  proven: false,

  async prepare(params) {
    const { settings, n_max: users } = params;
    const heads = parseInteger(settings.p);
    const isProbability = heads > 0n && heads <= 1n << 128n;
    insist(isProbability, "malformed", "p is not a probability");
    insist(Number.isSafeInteger(settings.floor), "malformed", "floor is not an integer");
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
      params.items.length === 2 && isSmall
        ? samplingDeltaTwoItems(users, crowd, p, epsilon)
        : samplingDelta(crowd, p, epsilon);
    return isWithin(delta, unscaled(params.delta));
  },

  vector({ coin }, items, answer, random) {
    const counted = BigInt(draw(coin, random));
    return oneHot(items, answer).map((count) => count * counted);
  },

  counted: ({ p }) => ({ p, noise: null }),
};

export const MECHANISMS = { laplace, decoys, dpds, ...PROVEN };

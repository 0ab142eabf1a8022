// What a device sends for an answer, for the mechanisms that this client can draw; and whether the published promise
// follows from the published settings. One entry of MECHANISMS for each:
//   settings          the names that published settings must have
//   proven            whether what is sent proves to be one vote (proven_mechanisms.js); without it, it may be anything
//   prepare(params)   what is drawn from: derived values are computed here and must be the published ones
//   promiseHolds(params, drawn, size)    whether the promise holds with this many people in the sum
//   vector(drawn, items, answer, random) what one person splits between the servers, as whole numbers
//   counted(drawn, size)                 with which probability a holder is counted, and the law of what is added then

import { big, unscaled } from "./canonical_json.js";
import { coinsOf, COMMON, follow, modulusFollows, NO_DIGEST, oneHot, OVERFLOW, servable } from "./derived_values.js";
import {
  binomial, decoysDelta, keeps, laplaceBound, laplaceEpsilon, laplaceLaw, samplingDelta, samplingDeltaTwoItems,
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
    const [epsilon, h] = [servable(unscaled(settings.epsilon)), users - settings.insiders - settings.dropouts];
    insist(h >= 1, "malformed", "nobody is left whose noise counts");
    const table = laplaceTable(big(settings.epsilon), epsilon, h);
    follow(params, { h, D: null, p: null, tables: await tableDigest(table) });
    const bound = laplaceBound(epsilon, users / h, OVERFLOW / params.items.length);
    modulusFollows(params, [bound, bound - 1, bound + 1].map((each) => users + 2 * each)); // last digits may differ
    return { epsilon, h, table };
  },

  promiseHolds(params, { epsilon, h, table }, size) {
    const unknown = size - params.phi;
    if (unknown < 1) return false;
    const left = laplaceEpsilon(epsilon, unknown / h);
    const delta = (1 + Math.exp(left)) * 2 * unknown * table.distance; // what the finite table costs
    return keeps(left, unscaled(params.epsilon)) && keeps(delta, unscaled(params.delta));
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
    insist(coins % users === 0, "derived", "people would flip unequal numbers of coins");
    follow(params, { h: users - settings.insiders - settings.dropouts, D: coins, p: null, tables: NO_DIGEST });
    modulusFollows(params, [users + coins]);
    return { each: coins / users };
  },

  promiseHolds(params, { each }, size) {
    const delta = decoysDelta((size - params.phi) * each, unscaled(params.epsilon));
    return keeps(delta, unscaled(params.delta));
  },

  vector: ({ each }, items, answer, random) =>
    oneHot(items, answer).map((count) => count + BigInt(heads(each, random))),

  counted: ({ each }, size) => ({ p: 1, noise: binomial(size * each, 0.5) }),
};

/** Heads among exactly so many fair coins. */
function heads(coins, random) {
  const bytes = random(Math.ceil(coins / 8));
  bytes[bytes.length - 1] &= 0xff >> (8 * bytes.length - coins);
  return bytes.reduce((total, byte) => total + byte.toString(2).replaceAll("0", "").length, 0);
}

const dpds = {
  settings: [...COMMON, "delta", "epsilon", "floor", "p"],
  proven: false,

  async prepare(params) {
    const { settings, n_max: users } = params;
    const heads = big(settings.p);
    insist(heads > 0n && heads <= 1n << 128n && Number.isSafeInteger(settings.floor), "malformed", "p or floor");
    follow(params, { h: null, D: null, p: settings.p, tables: NO_DIGEST });
    modulusFollows(params, [users]);
    return { coin: coinTable(heads), p: unscaled(settings.p) };
  },

  promiseHolds(params, { p }, size) {
    const gone = params.n_max - size;
    const crowd = Math.max(0, params.settings.floor - params.phi - gone);
    const users = size - params.phi;
    const epsilon = unscaled(params.epsilon);
    const few = params.items.length === 2 && crowd && 2 * crowd < users && users <= TWO_ITEMS_LIMIT;
    const delta = few ? samplingDeltaTwoItems(users, crowd, p, epsilon) : samplingDelta(crowd, p, epsilon);
    return keeps(delta, unscaled(params.delta));
  },

  vector({ coin }, items, answer, random) {
    const counted = BigInt(draw(coin, random));
    return oneHot(items, answer).map((count) => count * counted);
  },

  counted: ({ p }) => ({ p, noise: null }),
};

export const MECHANISMS = { laplace, decoys, dpds, ...PROVEN };

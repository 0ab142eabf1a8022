// What a device adds to its answer, for the mechanisms that this client can draw; and whether the published promise
// follows from the published settings. One entry of MECHANISMS for each:
//   settings          the names that published settings must have
//   prepare(params)   what is drawn from: derived values are computed here and must be the published ones
//   promiseHolds(params, drawn, size)   whether the promise holds with this many people in the sum
//   noise(drawn, items, answer, random) the vector of one person, as whole numbers
//   counted(drawn, size)                with which probability a holder is counted, and the law of what is added then

import { big, unscaled } from "./canonical_json.js";
import { smallestPrimeAbove } from "./field.js";
import {
  binomial, decoysDelta, keeps, laplaceBound, laplaceEpsilon, laplaceLaw, samplingDelta, samplingDeltaTwoItems,
} from "./privacy.js";
import { insist } from "./refusal.js";
import { coinTable, draw, laplaceTable, tableDigest } from "./tables.js";

const COMMON = ["dropouts", "insiders", "spare_bits"];
const OVERFLOW = 2 ** -60;
const TWO_ITEMS_LIMIT = 400;
const NO_TABLE = "0".repeat(64);
const TABLE_ENTRIES_EPSILON = 0.001; // a smaller epsilon has a table that no browser should compute

const oneHot = (items, answer) => Array.from({ length: items }, (_, at) => (at === answer ? 1n : 0n));

/** Stop unless a derived value is the published one. */
function follows(params, name, value) {
  insist(params.derived[name] === value, "derived", `${name} does not follow from the other parameters`);
}

function modulusFollows(params, reaches) {
  const spare = BigInt(params.settings.spare_bits);
  const primes = reaches.map((reach) => smallestPrimeAbove(((BigInt(reach) + 1n) << spare) - 1n));
  insist(primes.some((prime) => String(prime) === params.derived.q), "derived", "q does not follow from the rest");
}

const laplace = {
  settings: [...COMMON, "epsilon"],

  async prepare(params) {
    const { settings, n_max: users } = params;
    const [epsilon, h] = [unscaled(settings.epsilon), users - settings.insiders - settings.dropouts];
    insist(epsilon >= TABLE_ENTRIES_EPSILON && epsilon <= 50 && h >= 1, "malformed", "epsilon or users out of range");
    const table = laplaceTable(big(settings.epsilon), epsilon, h);
    follows(params, "h", h);
    follows(params, "D", null);
    follows(params, "p", null);
    follows(params, "tables", await tableDigest(table));
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

  noise: ({ table }, items, answer, random) =>
    oneHot(items, answer).map((count) => count + BigInt(draw(table, random))),

  counted: ({ epsilon, h }, size) => ({ p: 1, noise: laplaceLaw(epsilon, size / h) }),
};

const decoys = {
  settings: [...COMMON, "coins", "delta", "epsilon"],

  async prepare(params) {
    const { settings, n_max: users } = params;
    const coins = settings.coins ?? params.derived.D; // without a number of coins, D is judged by the promise alone
    insist(Number.isSafeInteger(coins) && coins >= 1 && coins <= 1e8, "malformed", "coins out of range");
    insist(coins % users === 0, "derived", "people would flip unequal numbers of coins");
    follows(params, "h", users - settings.insiders - settings.dropouts);
    follows(params, "D", coins);
    follows(params, "p", null);
    follows(params, "tables", NO_TABLE);
    modulusFollows(params, [users + coins]);
    return { each: coins / users };
  },

  promiseHolds(params, { each }, size) {
    const delta = decoysDelta((size - params.phi) * each, unscaled(params.epsilon));
    return keeps(delta, unscaled(params.delta));
  },

  noise: ({ each }, items, answer, random) =>
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

  async prepare(params) {
    const { settings, n_max: users } = params;
    const heads = big(settings.p);
    insist(heads > 0n && heads <= 1n << 128n && Number.isSafeInteger(settings.floor), "malformed", "p or floor");
    follows(params, "h", null);
    follows(params, "D", null);
    follows(params, "p", settings.p);
    follows(params, "tables", NO_TABLE);
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

  noise({ coin }, items, answer, random) {
    const counted = BigInt(draw(coin, random));
    return oneHot(items, answer).map((count) => count * counted);
  },

  counted: ({ p }) => ({ p, noise: null }),
};

export const MECHANISMS = { laplace, decoys, dpds };

// The mechanisms whose reports are proven to be one vote: a report is a vote, perhaps a few coins,
// and a proof. The noise comes from both servers, each adding the whole noise of a release, or from
// the coins of all participants, flipped and placed by values that nobody knew in advance. The
// entries have the form described in mechanisms.js.

import { same } from "./bytes.js";
import { encode, parseInteger, unscaled } from "./canonical_json.js";
import {
  checkDerived, checkEpsilon, checkModulus, COMMON, NO_DIGEST, oneHot, OVERFLOW,
} from "./derived_values.js";
import { uniformElements } from "./field.js";
import {
  binomial, decoysDelta, isWithin, laplaceBounds, laplaceDelta, laplaceLaw,
} from "./privacy.js";
import { prove, reportLayout } from "./proof.js";
import { insist } from "./refusal.js";
import { checkAttendance, coinsOf } from "./settings.js";
import { laplaceTable, tableDigest } from "./tables.js";

/**
 * The layout of a report with this many coins; the published proof parameters must follow from it.
 */
function checkLayout(params, coins) {
  const { keys, items, n_max: users } = params;
  checkAttendance(params, { countInsiders: false });
  const layout = reportLayout(parseInteger(params.derived.q), items.length, coins, users);
  const proofFollows = same(encode(params.derived.proof), encode(layout.proof));
  // check: page-proof-form - a proof in a field that is too small
  insist(proofFollows, "derived", "the proof does not follow from the other parameters");
  // Equal commitments would let one server copy the other's, and then choose the query alone.
  const commitments = new Set([keys.coordinator_commitment, keys.aggregator_commitment, NO_DIGEST]);
  // check: page-commitments - one server chooses the query alone
  insist(commitments.size === 3, "derived", "each server must commit to a value of its own");
  return layout;
}

/** A participant's report: the vote, fair coins, and the proof. */
function drawReport({ layout }, items, answer, random) {
  const bits = [...oneHot(items, answer).map(Number), ...fairBits(layout.coins, random)];
  const blind = uniformElements(BigInt(layout.q), layout.degree, random);
  return prove(layout, bits, blind.map(Number)).map(BigInt);
}

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
    const bounds = laplaceBounds(epsilon, 2, OVERFLOW / params.items.length);
    checkModulus(params, bounds.map((bound) => params.n_max + 2 * bound), params.items.length);
    return { epsilon, table, layout: checkLayout(params, 0) };
  },

  promiseHolds(params, { epsilon, table }) {
    const promised = unscaled(params.epsilon);
    const tableCost = 2 * (1 + Math.exp(epsilon / 2)) * table.distance; // of both moved counts
    return isWithin(laplaceDelta(epsilon, promised) + tableCost, unscaled(params.delta));
  },

  vector: drawReport,
  counted: ({ epsilon }) => ({ p: 1, noise: (times) => laplaceLaw(epsilon, 2 * times) }),
};

const serverCoins = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: true,

  async derive(params) {
    const coins = coinsOf(params, (needed) => needed);
    checkDerived(params, { h: null, D: coins, p: null, tables: NO_DIGEST });
    checkModulus(params, [params.n_max + 2 * coins], params.items.length);
    return { coins, layout: checkLayout(params, 0) };
  },

  promiseHolds: (params, { coins }) =>
    isWithin(decoysDelta(coins, unscaled(params.epsilon)), unscaled(params.delta)),
  vector: drawReport,
  counted: ({ coins }) => ({ p: 1, noise: (times) => binomial(2 * times * coins, 0.5) }),
};

const placedCoins = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: true,

  async derive(params) {
    const { settings, items, n_max: users } = params;
    const coins = coinsOf(params, (needed) => needed + settings.insiders);
    const fewest = users - settings.dropouts;
    // The coins of one item come from different participants: one of them knows only one coin.
    insist(fewest >= coins, "derived", "an item needs more coins than participants may be left");
    const coinsPerUser = Math.ceil((coins * items.length) / fewest);
    checkDerived(params, { h: null, D: coins, p: null, tables: NO_DIGEST });
    checkModulus(params, [users + coins], items.length + coinsPerUser);
    return { coins, coinsPerUser, layout: checkLayout(params, coinsPerUser) };
  },

  promiseHolds(params, { coins, coinsPerUser }, size) {
    const isEnough = size >= coins && size * coinsPerUser >= coins * params.items.length;
    const delta = decoysDelta(coins - params.phi, unscaled(params.epsilon));
    return isEnough && isWithin(delta, unscaled(params.delta));
  },

  vector: drawReport,
  counted: ({ coins }) => ({ p: 1, noise: (times) => binomial(times * coins, 0.5) }),
};

export const PROVEN = {
  "server-laplace": serverLaplace,
  "server-coins": serverCoins,
  "placed-coins": placedCoins,
};

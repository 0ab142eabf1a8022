// The mechanisms whose reports are proven to be one vote: what a person sends is a vote, perhaps a few coins, and a proof.
// What hides the votes is added by both servers, each the whole noise of one release, or made of the coins of all people
// after values that nobody knew before have turned them over and placed them. The entries are those of mechanisms.js.

import { same } from "./bytes.js";
import { big, encode, unscaled } from "./canonical_json.js";
import { coinsOf, COMMON, follow, modulusFollows, NO_DIGEST, oneHot, OVERFLOW, servable } from "./derived_values.js";
import { uniformElements } from "./field.js";
import { binomial, decoysDelta, keeps, laplaceBound, laplaceDelta, laplaceLaw } from "./privacy.js";
import { prove, reportForm } from "./proof.js";
import { insist } from "./refusal.js";
import { laplaceTable, tableDigest } from "./tables.js";

/** The form of a report of so many coins; what the parameters say about the proof must follow. */
function provenForm(params, coins) {
  const { keys, items, n_max: users } = params;
  const form = reportForm(big(params.derived.q), items.length, coins, users);
  insist(same(encode(params.derived.proof), encode(form.proof)), "derived", "the proof does not follow from the rest");
  const commitments = new Set([keys.s1_commitment, keys.s2_commitment, NO_DIGEST]);
  insist(commitments.size === 3, "derived", "each server must commit to a value of its own");
  return form;
}

/** A person's report: its vote, fair coins, and the proof. */
function report({ form }, items, answer, random) {
  const bits = [...oneHot(items, answer).map(Number), ...fairBits(form.coins, random)];
  const blind = uniformElements(BigInt(form.q), form.degree, random);
  return prove(form, bits, blind.map(Number)).map(BigInt);
}

function fairBits(count, random) {
  const bytes = random(Math.ceil(count / 8));
  return Array.from({ length: count }, (_, at) => (bytes[at >> 3] >> (7 - (at & 7))) & 1);
}

/** What a server adds hides everybody, however many people are counted. */
const serverLaplace = {
  settings: [...COMMON, "epsilon"],
  proven: true,

  async prepare(params) {
    const epsilon = servable(unscaled(params.settings.epsilon));
    const table = laplaceTable(big(params.settings.epsilon), epsilon, 1);
    follow(params, { h: null, D: null, p: null, tables: await tableDigest(table) });
    const bound = laplaceBound(epsilon, 2, OVERFLOW / params.items.length);
    const reaches = [bound, bound - 1, bound + 1].map((each) => params.n_max + 2 * each); // last digits may differ
    modulusFollows(params, reaches, params.items.length);
    return { epsilon, table, form: provenForm(params, 0) };
  },

  promiseHolds(params, { epsilon, table }) {
    const promised = unscaled(params.epsilon);
    const lost = (1 + Math.exp(Math.min(promised, epsilon))) * 2 * table.distance; // what the finite table costs
    return keeps(laplaceDelta(epsilon, promised) + lost, unscaled(params.delta));
  },

  vector: report,
  counted: ({ epsilon }) => ({ p: 1, noise: laplaceLaw(epsilon, 2) }),
};

const serverCoins = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: true,

  async prepare(params) {
    const coins = coinsOf(params);
    follow(params, { h: null, D: coins, p: null, tables: NO_DIGEST });
    modulusFollows(params, [params.n_max + 2 * coins], params.items.length);
    return { coins, form: provenForm(params, 0) };
  },

  promiseHolds: (params, { coins }) => keeps(decoysDelta(coins, unscaled(params.epsilon)), unscaled(params.delta)),
  vector: report,
  counted: ({ coins }) => ({ p: 1, noise: binomial(2 * coins, 0.5) }),
};

const placedCoins = {
  settings: [...COMMON, "coins", "delta", "epsilon"],
  proven: true,

  async prepare(params) {
    const { settings, items, n_max: users } = params;
    const [coins, fewest] = [coinsOf(params), users - settings.dropouts];
    insist(fewest >= coins, "derived", "the coins of an item come from different people, and too few may be left");
    const each = Math.ceil((coins * items.length) / fewest);
    follow(params, { h: null, D: coins, p: null, tables: NO_DIGEST });
    modulusFollows(params, [users + coins], items.length + each);
    return { coins, each, form: provenForm(params, each) };
  },

  promiseHolds(params, { coins, each }, size) {
    const enough = size >= coins && size * each >= coins * params.items.length;
    const delta = decoysDelta(coins - params.phi, unscaled(params.epsilon));
    return enough && keeps(delta, unscaled(params.delta));
  },

  vector: report,
  counted: ({ coins }) => ({ p: 1, noise: binomial(coins, 0.5) }),
};

export const PROVEN = { "server-laplace": serverLaplace, "server-coins": serverCoins, "placed-coins": placedCoins };

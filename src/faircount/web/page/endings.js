// Why a survey ended without a result: what both servers sign is English; a page has a sentence for what they say often.

/** What S1 is told where the owner ends a survey on the dashboard. */
export const OWNER_ENDED = "its owner has ended it";

const NEEDED = /^(\d+) (?:users answered|users are left|users enrolled|users indicated|users can be added up|reporters are left|seeds open), (\d+) are needed$/;
const SENTENCES = {
  "over budget": "ending_budget",
  "too few blobs open": "ending_unreadable",
  "S2 was restored from a backup": "ending_restored",
};

/** {name, values} of the sentence for a reason, or {words, english} where there is none: an owner may write any language. */
export function ending(reason) {
  const text = reason.replace(/^S1: /, "");
  if (text.startsWith("owner: ")) return byOwner(text.slice("owner: ".length));
  const few = NEEDED.exec(text);
  if (few) return { name: "ending_tooFew", values: { users: few[1], minimum: few[2] } };
  return Object.hasOwn(SENTENCES, text) ? { name: SENTENCES[text], values: {} } : { words: text, english: true };
}

const byOwner = (words) => (["", OWNER_ENDED].includes(words) ? { name: "ending_owner", values: {} } : { words, english: false });

// Why a survey ended without a result: both servers sign a code with numbers, and the pages have a
// sentence for every code.

/** By number on the wire: the code, then the names of its numbers in order, as in endings.py. */
export const ENDINGS = {
  1: ["owner"],
  2: ["too_few_responses", "responses", "minimum"],
  3: ["too_few_enrolled", "enrolled", "minimum"],
  4: ["too_few_left", "left", "minimum"],
  5: ["too_few_readable", "readable", "minimum"],
  6: ["over_budget"],
  7: ["aggregator_restored"],
  8: ["coordinator_restored"],
  9: ["reports_lost"],
  10: ["attempts_used", "attempts"],
  11: ["key_lost"],
  12: ["no_substitute"],
  13: ["not_invited"],
  14: ["corrupt_sum"],
  15: ["aggregator_refused", "reason"],
  16: ["aggregator_contradiction"],
  17: ["coordinator_contradiction"],
  18: ["aggregator_secret_lost"],
  19: ["operator"],
};

/** {code, values} of a signed `Aborted`; "unknown" for a code that this page does not know. */
export function describeEnding({ code: number, numbers }) {
  const [code, ...names] = Object.hasOwn(ENDINGS, number) ? ENDINGS[number] : [];
  if (code === undefined || names.length !== numbers.length) return { code: "unknown", values: {} };
  return { code, values: Object.fromEntries(names.map((name, at) => [name, numbers[at]])) };
}

/** Whether the detail with a code is English; the owner of a survey may write in any language. */
export const isEnglish = (code) => code !== "owner";

// Calls to S1, and to nobody else. Asking again with the same bytes is always safe. What is called for is told by
// {server, survey}: S1's address, and the id of the survey; parameters that were fetched have both.

import { hex } from "../client/bytes.js";
import { ANSWERS, decode } from "../client/codec.js";
import { Refusal } from "../client/refusal.js";

const BYTES = "application/octet-stream";
const ANSWER_MILLISECONDS = 30_000;

/** No answer, or none that means anything: the same may be tried again later. */
export class Unreachable extends Error {}

/** The published parameters. */
export async function publishedOf(at) {
  const answer = await call(at, "params");
  if (!answer.ok) throw new Refusal(answer.status === 404 ? "unknown" : "unreachable", "no parameters");
  return new Uint8Array(await answer.arrayBuffer());
}

/** Where the survey stands, as S1 says; null where it does not say. */
export async function statusOf(at) {
  const answer = await call(at, "status");
  return answer.ok ? answer.json() : null;
}

/** What S2 signed at the end, as S1 relays it; null if there is nothing yet. */
export async function lastWordOf(at) {
  const answer = await call(at, "result", { headers: { Accept: BYTES } });
  return answer.ok ? decode(new Uint8Array(await answer.arrayBuffer()), ["Signed"]) : null;
}

/** S1's answer to a message; a refusal is an answer too: {name: "Rejected", reason, words}. */
export async function tell(at, body) {
  const answer = await call(at, "messages", { method: "POST", body, headers: { "Content-Type": BYTES } });
  if (answer.ok) return decode(new Uint8Array(await answer.arrayBuffer()), ANSWERS);
  const problem = await answer.json().catch(() => ({}));
  if (!Number.isInteger(problem.reason)) throw new Unreachable(`status ${answer.status}`);
  return { name: "Rejected", reason: problem.reason, words: String(problem.detail ?? "").slice(0, 500) };
}

async function call({ server, survey }, what, more = {}) {
  const signal = AbortSignal.timeout(ANSWER_MILLISECONDS);
  const always = { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal };
  let answer;
  try {
    answer = await fetch(new URL(`v1/surveys/${hex(survey)}/${what}`, server), { ...always, ...more });
  } catch {
    throw new Unreachable("no connection");
  }
  if (answer.status === 429 || answer.status >= 500) throw new Unreachable(`status ${answer.status}`);
  return answer;
}

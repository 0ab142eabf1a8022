// Requests to the coordinator (S1), the only server that this page contacts. Repeating a request
// with the same bytes is always safe. `target` is {server, survey}: the coordinator's address and
// the id of the survey; parameters of an invitation have both.

import { hex } from "../client/bytes.js";
import { decode, REPLIES } from "../client/codec.js";
import { Refusal } from "../client/refusal.js";

const BYTES = "application/octet-stream";
const TIMEOUT_MILLISECONDS = 30_000;

/** No usable response from the server: the same request may be tried again later. */
export class Unreachable extends Error {}

/** The published parameters. */
export async function fetchParameters(target) {
  const response = await request(target, "params");
  if (!response.ok) {
    throw new Refusal(response.status === 404 ? "unknown" : "unreachable", "no parameters");
  }
  return new Uint8Array(await response.arrayBuffer());
}

/** The operators' signatures under the parameters, {s1, s2} in hex; null if there are none. */
export async function fetchOperators(target) {
  const response = await request(target, "operators");
  return response.ok ? response.json().catch(() => null) : null;
}

/** The status of the survey according to the coordinator; null if it tells none. */
export async function fetchStatus(target) {
  const response = await request(target, "status");
  return response.ok ? response.json() : null;
}

/** The aggregator's final statement, relayed by the coordinator; null if there is none yet. */
export async function fetchFinalStatement(target) {
  const response = await request(target, "result", { headers: { Accept: BYTES } });
  return response.ok ? decode(new Uint8Array(await response.arrayBuffer()), ["Signed"]) : null;
}

/** The coordinator's reply to a message; a rejection is {name: "Rejection", reason, detail}. */
export async function sendMessage(target, message) {
  const headers = { "Content-Type": BYTES };
  const response = await request(target, "messages", { method: "POST", body: message, headers });
  if (response.ok) return decode(new Uint8Array(await response.arrayBuffer()), REPLIES);
  const problem = await response.json().catch(() => ({}));
  // An error without a reason comes from a proxy or a broken server, and decides nothing.
  if (!Number.isInteger(problem.reason)) throw new Unreachable(`status ${response.status}`);
  const detail = String(problem.detail ?? "").slice(0, 500);
  return { name: "Rejection", reason: problem.reason, detail };
}

async function request({ server, survey }, path, more = {}) {
  const options = {
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
    signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
    ...more,
  };
  let response;
  try {
    response = await fetch(new URL(`v1/surveys/${hex(survey)}/${path}`, server), options);
  } catch {
    throw new Unreachable("no connection");
  }
  const isTemporary = response.status === 429 || response.status >= 500;
  if (isTemporary) throw new Unreachable(`status ${response.status}`);
  return response;
}

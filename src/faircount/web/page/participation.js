// One participation in one survey, as this device stores it. Every change is stored before the
// message that follows from it is sent, so that a crash never leads to a second draw of noise.
//
//   stage: waiting      stored on this device, not acknowledged by the coordinator
//          sent         acknowledged; the survey goes on
//          refused      rejected by the coordinator; `reason` and `detail` say why
//          withdrawing  the withdrawal is stored here, not acknowledged
//          withdrawn    the coordinator has acknowledged the withdrawal
//          counted, uncounted, ended
//                       how the survey ended, as the aggregator signed it;
//                       `withdrawalLost`: the report was counted after an acknowledged withdrawal
//
//   notices: what else happened with the invitation, as the coordinator tells it
//          1            another device has shown it, and was refused
//          2            the owner wanted to exchange it, and was refused
//   takenOver: the coordinator takes another device for the one that answered

import { bytesText, hex, same, textBytes, unhex } from "../client/bytes.js";
import { decode, encode } from "../client/codec.js";
import { signForDevice } from "../client/device.js";
import { checkOperators } from "../client/operators.js";
import { parse, parseInvited } from "../client/parameters.js";
import { insist, Refusal } from "../client/refusal.js";
import { isCounted, verifyAcknowledgement, verifyStatement } from "../client/signatures.js";
import { fetchOperators, fetchParameters, sendMessage } from "./network.js";
import { addFirst, load, save, withLock } from "./store.js";

const EARLY = 6; // the protocol's number of the reason "the phase has not begun"
/** The protocol's number of the reason "another device has used this invitation". */
export const INVITATION_USED = 14;
const FINAL_STAGES = ["refused", "withdrawn", "counted", "uncounted", "ended"];

/** The key under which a participation is stored. */
export const recordId = (survey, user) => `${hex(survey)} ${hex(user)}`;

/** Store a report before it is sent. If this device has one already, that one stays. */
export function storeReport(params, invitation, report) {
  return addFirst({
    id: recordId(params.survey, invitation.user),
    stage: "waiting",
    server: params.server,
    published: bytesText(params.published),
    access: hex(invitation.access),
    user: hex(invitation.user),
    publicKey: hex(report.publicKey),
    report: hex(report.message),
    device: hex(report.device),
    notices: 0,
    acknowledgements: [],
    unverified: 0,
  });
}

/** The parameters of a record, as they were when the participant answered. */
export async function parametersOfRecord(record) {
  return { ...(await parse(textBytes(record.published))), server: record.server };
}

/**
 * The parameters of an invitation, fetched, compared with the hash in the invitation, and signed by
 * the operators of both servers.
 */
export async function invitedParameters(server, { survey, invitation }) {
  const published = await fetchParameters({ server, survey });
  const params = await parseInvited(published, invitation.params);
  insist(same(params.survey, survey), "digest", "the code names another survey");
  await checkOperators(params, await fetchOperators({ server, survey }));
  return { ...params, server };
}

/** Whether nothing more will happen. */
export const isOver = (record) => FINAL_STAGES.includes(record.stage);

/**
 * Send what is waiting and ask for the outcome; returns the record afterwards. Throws `Unreachable`
 * if the coordinator does not respond. With `resend`, messages acknowledged on an earlier visit are
 * sent again, because a coordinator restored from a backup may have lost them.
 */
export function visit(id, resend = false) {
  return withLock(id, async () => {
    let record = await load(id);
    const params = await parametersOfRecord(record);
    const report = unhex(record.report);
    if (resend && record.stage === "sent" && !record.tooLate) await exchange(params, report);
    if (resend && record.stage === "withdrawn") record = await resendWithdrawal(params, record);
    if (record.stage === "waiting") record = await send(params, record, report, "sent");
    if (record.stage === "withdrawing") {
      record = await send(params, record, unhex(record.withdrawal), "withdrawn");
    }
    return record.stage === "sent" ? requestOutcome(params, record) : record;
  });
}

/** Withdraw the response for good; the coordinator decides whether it was in time. */
export async function withdraw(id) {
  await withLock(id, async () => {
    const record = await load(id);
    if (isOver(record) || record.stage === "withdrawing") return;
    const params = await parametersOfRecord(record);
    const withdrawal = hex(await sign("Withdrawal", params, record));
    await save({ ...record, stage: "withdrawing", withdrawal });
  });
  return visit(id);
}

/**
 * A restored coordinator may have lost a withdrawal; if it is too late now, ask for the outcome.
 */
async function resendWithdrawal(params, record) {
  const reply = await exchange(params, unhex(record.withdrawal));
  const isTooLate = reply.name === "Rejection" && reply.reason !== EARLY;
  return isTooLate ? requestOutcome(params, record) : record;
}

const sign = (name, params, record) =>
  signForDevice(name, params, unhex(record.access), unhex(record.device));

async function send(params, record, message, nextStage) {
  const reply = await exchange(params, message);
  if (reply.name === "Acknowledgement") {
    // Without a valid signature the coordinator could forget the message and deny it later.
    const isValid = await verifyAcknowledgement(params.keys, params.survey, reply, message);
    if (!isValid) return save({ ...record, unverified: record.unverified + 1 });
    const { name, ...fields } = reply;
    const acknowledgements = [...record.acknowledgements, hex(await encode(name, fields))];
    return save({ ...record, stage: nextStage, acknowledgements });
  }
  if (reply.name === "Rejection") {
    return reply.reason === EARLY ? record : save(withRejection(record, reply));
  }
  if (isOutcome(reply)) return conclude(params, record, reply);
  return save({ ...record, unverified: record.unverified + 1 });
}

const isOutcome = (reply) => ["InclusionProof", "FinalStatement"].includes(reply.name);

/**
 * The record after a rejection. A withdrawal that comes too late leaves the report where it was.
 */
function withRejection(record, { reason, detail }) {
  const stays = record.stage === "withdrawing" && record.acknowledgements.length > 0;
  const takenOver = stays && reason === INVITATION_USED;
  const tooLate = stays && !takenOver;
  return { ...record, stage: stays ? "sent" : "refused", tooLate, takenOver, reason, detail };
}

async function requestOutcome(params, record) {
  const reply = await exchange(params, await sign("OutcomeRequest", params, record));
  const told = await withNotices(record, reply);
  return isOutcome(reply) ? conclude(params, told, reply) : told;
}

/** The record with what the coordinator tells about the invitation; nothing is ever taken back. */
function withNotices(record, reply) {
  const notices = record.notices | (reply.notices ?? 0);
  const isUsed = reply.name === "Rejection" && reply.reason === INVITATION_USED;
  const takenOver = Boolean(record.takenOver) || isUsed;
  const isKnown = notices === record.notices && takenOver === Boolean(record.takenOver);
  return isKnown ? record : save({ ...record, notices, takenOver });
}

/** The coordinator's reply; one that cannot be read has the name "unreadable". */
async function exchange(params, message) {
  try {
    return await sendMessage(params, message);
  } catch (problem) {
    if (problem instanceof Refusal) return { name: "unreadable" };
    throw problem;
  }
}

/** Store how the survey ended, if the aggregator signed it. */
async function conclude(params, record, reply) {
  const signed = reply.published ?? reply.statement;
  const statement = await verifyOutcome(params, signed);
  const outcome = hex(await encode("Signed", signed));
  // The first outcome stays: a second one would mean that a server tells two stories.
  const isSecond = record.outcome && record.outcome !== outcome;
  if (statement === null || isSecond) {
    return save({ ...record, unverified: record.unverified + 1 });
  }
  const isWithdrawn = record.stage === "withdrawn";
  if (statement.name === "Aborted") {
    return isWithdrawn ? record : save({ ...record, stage: "ended", outcome });
  }
  const mine = [unhex(record.user), unhex(record.publicKey)];
  const counted = reply.name === "InclusionProof" && (await isCounted(statement, reply, ...mine));
  if (isWithdrawn && !counted) return record; // the withdrawal was kept
  const { index, size, path } = reply;
  const inclusion = counted ? { index, size, path: path.map(hex) } : null;
  const stage = counted ? "counted" : "uncounted";
  return save({ ...record, stage, outcome, inclusion, withdrawalLost: isWithdrawn });
}

/** The aggregator's signed outcome of this survey with these parameters; null if it is not that. */
export async function verifyOutcome(params, signed) {
  const statement = await verifyStatement(params.keys.aggregator, signed);
  if (statement === null || !["Published", "Aborted"].includes(statement.name)) return null;
  // check: page-outcome-survey - the result of another survey with the same keys
  if (!same(statement.survey, params.survey)) return null;
  const isOther = statement.name === "Published" && !same(statement.digest, params.digest);
  // check: page-outcome-parameters - a result that was computed with other parameters
  if (isOther) return null;
  return statement;
}

/** The aggregator's signed outcome in a record; null if there is none yet. */
export async function outcomeOf(record, params) {
  return record.outcome ? verifyOutcome(params, await decode(unhex(record.outcome))) : null;
}

/**
 * The receipt: signatures that prove what the coordinator stored and what the aggregator counted.
 */
export function receiptOf(record, params) {
  return {
    survey: hex(params.survey),
    parameters: hex(params.digest),
    server_key: hex(params.keys.coordinator),
    written: record.acknowledgements,
    result: record.outcome ?? null,
    counted: record.stage === "counted",
    inclusion: record.inclusion ?? null,
  };
}

// One person's part in one survey, as this device keeps it. Every change is written before what follows from it is sent.
//
//   stage: waiting   written on this device, not acknowledged by S1
//          sent      acknowledged; the survey goes on
//          refused   S1 did not take it; `reason` and `words` say why
//          leaving   the withdrawal is written here, not acknowledged
//          withdrawn S1 has acknowledged the withdrawal
//          counted, uncounted, ended   how it ended, as S2 signed it; `forgotten`: counted after a signed withdrawal

import { bytesText, hex, same, textBytes, unhex } from "../client/bytes.js";
import { decode, encode } from "../client/codec.js";
import { believed, parse } from "../client/parameters.js";
import { insist, Refusal } from "../client/refusal.js";
import { acknowledges, countsIn, statementOf } from "../client/signing.js";
import { publishedOf, tell } from "./network.js";
import { addFirst, alone, load, save } from "./store.js";

const EARLY = 6;

/** How a record is found again. */
export const recordId = (survey, user) => `${hex(survey)} ${hex(user)}`;

/** Write an answer that was drawn, before it is sent. If there was one already, that one stands. */
export function keep(params, invitation, made) {
  const id = recordId(params.survey, invitation.user);
  return addFirst({
    id,
    stage: "waiting",
    server: params.server,
    published: bytesText(params.published),
    access: hex(invitation.access),
    user: hex(invitation.user),
    publicKey: hex(made.publicKey),
    body: hex(made.body),
    acknowledgements: [],
    disbelieved: 0,
  });
}

/** The parameters of a record, as they were when it was answered. */
export async function parametersOfRecord(record) {
  return { ...(await parse(textBytes(record.published))), server: record.server };
}

/** The parameters of an invitation, fetched from S1 and compared with the digest in it. */
export async function invitedParameters(server, { survey, invitation }) {
  const params = await believed(await publishedOf({ server, survey }), invitation.params);
  insist(same(params.survey, survey), "digest", "the code names another survey");
  return { ...params, server };
}

/** Whether nothing more will come of it. */
export const isOver = (record) => ["refused", "withdrawn", "counted", "uncounted", "ended"].includes(record.stage);

/**
 * Say what there is to say, and hear how things stand; the record afterwards. Throws where S1 cannot be reached.
 * `again`: what was acknowledged on an earlier visit is said once more, because a restored S1 may have lost it.
 */
export function visit(id, again = false) {
  return alone(id, async () => {
    let record = await load(id);
    const params = await parametersOfRecord(record);
    if (again && record.stage === "sent" && !record.tooLate) await heard(params, unhex(record.body));
    if (again && record.stage === "withdrawn") record = await takeBackAgain(params, record);
    if (record.stage === "waiting") record = await send(params, record, unhex(record.body), "sent");
    if (record.stage === "leaving") record = await send(params, record, await withdrawal(params, record), "withdrawn");
    return record.stage === "sent" ? inquire(params, record) : record;
  });
}

/** Take the answer back, for good; S1 says whether it was in time. */
export async function withdraw(id) {
  await alone(id, async () => {
    const record = await load(id);
    if (!isOver(record)) await save({ ...record, stage: "leaving" });
  });
  return visit(id);
}

/** A restored S1 may have forgotten a withdrawal that it signed; where it is too late, the result tells what became of it. */
async function takeBackAgain(params, record) {
  const answer = await heard(params, await withdrawal(params, record));
  return answer.name === "Rejected" && answer.reason !== EARLY ? inquire(params, record) : record;
}

const withdrawal = (params, record) => encode("Withdraw", { survey: params.survey, access: unhex(record.access) });

async function send(params, record, body, done) {
  const answer = await heard(params, body);
  if (answer.name === "Accepted" && (await acknowledges(params.keys, params.survey, answer, body))) {
    const acknowledgements = [...record.acknowledgements, await acknowledgement(answer)];
    return save({ ...record, stage: done, acknowledgements });
  }
  if (answer.name === "Rejected") return answer.reason === EARLY ? record : save(refusedWith(record, answer));
  if (answer.name === "Inclusion" || answer.name === "Concluded") return conclude(params, record, answer);
  return save({ ...record, disbelieved: record.disbelieved + 1 });
}

/** A withdrawal that comes too late leaves the answer where it was. */
function refusedWith(record, { reason, words }) {
  const late = record.stage === "leaving" && record.acknowledgements.length;
  return { ...record, stage: late ? "sent" : "refused", tooLate: Boolean(late), reason, words };
}

async function acknowledgement({ name, ...fields }) {
  return hex(await encode(name, fields));
}

async function inquire(params, record) {
  const answer = await heard(params, await encode("Inquiry", { survey: params.survey, access: unhex(record.access) }));
  if (answer.name === "Inclusion" || answer.name === "Concluded") return conclude(params, record, answer);
  return record;
}

/** S1's answer; what cannot be read is not believed. */
async function heard(params, body) {
  try {
    return await tell(params, body);
  } catch (problem) {
    if (problem instanceof Refusal) return { name: "unreadable" };
    throw problem;
  }
}

/** How it ended, if S2 signed it. Two endings of one survey are not believed. */
async function conclude(params, record, answer) {
  const signed = answer.published ?? answer.statement;
  const said = await believedEnd(params, signed);
  const outcome = hex(await encode("Signed", signed));
  if (said === null || (record.outcome && record.outcome !== outcome)) {
    return save({ ...record, disbelieved: record.disbelieved + 1 });
  }
  const forgotten = record.stage === "withdrawn";
  if (said.name === "Aborted") return forgotten ? record : save({ ...record, stage: "ended", outcome });
  const mine = [unhex(record.user), unhex(record.publicKey)];
  const counted = answer.name === "Inclusion" && (await countsIn(said, answer, ...mine));
  const inclusion = counted ? { index: answer.index, size: answer.size, path: answer.path.map(hex) } : null;
  if (forgotten && !counted) return record; // not forgotten at all
  return save({ ...record, stage: counted ? "counted" : "uncounted", outcome, inclusion, forgotten });
}

/** What S2 signed about the end of this very survey; null if it is nothing of that. */
export async function believedEnd(params, signed) {
  const said = await statementOf(params.keys.s2, signed);
  if (said === null || !["Published", "Aborted"].includes(said.name) || !same(said.survey, params.survey)) return null;
  return said.name === "Published" && !same(said.digest, params.digest) ? null : said;
}

/** What S2 signed, from a record. */
export async function outcomeOf(record, params) {
  return record.outcome ? believedEnd(params, await decode(unhex(record.outcome))) : null;
}

/** What a person can keep and show to others: proof of what S1 wrote, and of what S2 counted. */
export function receiptOf(record, params) {
  return {
    survey: hex(params.survey),
    parameters: hex(params.digest),
    server_key: hex(params.keys.s1),
    written: record.acknowledgements,
    result: record.outcome ?? null,
    counted: record.stage === "counted",
    inclusion: record.inclusion ?? null,
  };
}

// For a company's own page: take part in a survey without the participant's page. Serve this folder yourself, so that you
// decide which program your users run, and ask the operator of S1 to allow your page's origin.
//
//   const part = await participate("https://count.example.org/", code);
//   part.params.question, part.params.items, part.params.real.epsilon    checked against the code; say them to the person
//   const answer = await part.prepare(position);                         answer.share and answer.blob can be shown
//   await part.send(answer);                                             after the person confirmed: kept, then sent
//   part.stage                                                           "waiting", "sent", "counted", ...
//   await part.visit(); await part.withdraw();
//
// What is refused is thrown as a `Refusal` with a `code`; S1 that cannot be reached as `Unreachable`: `visit` again later.

import { readCode } from "./client/code.js";
import { systemRandom } from "./client/random.js";
import { submission } from "./client/submission.js";
import { checkBrowser } from "./page/browser_check.js";
import { Unreachable } from "./page/network.js";
import { invitedParameters, keep, recordId, visit, withdraw } from "./page/participation.js";
import { load } from "./page/store.js";

export { Refusal } from "./client/refusal.js";
export { Unreachable };

/** A person's part in the survey to which a code invites; nothing is sent yet. */
export async function participate(server, code) {
  await checkBrowser();
  const read = await readCode(code);
  const params = await invitedParameters(server, read);
  return new Part(params, read.invitation, await load(recordId(read.survey, read.invitation.user)));
}

class Part {
  constructor(params, invitation, record) {
    this.params = params;
    this.invitation = invitation;
    this.record = record;
  }

  /** Where things stand; "new" before anything was answered on this device. */
  get stage() {
    return this.record?.stage ?? "new";
  }

  /** Draw what would be sent for the item at this position. Nothing is kept or sent yet. */
  prepare(position) {
    return submission(this.params, this.invitation, position, systemRandom);
  }

  /** Keep what was prepared, and send it. An answer that was given on this device before stands. */
  async send(prepared) {
    this.record = await keep(this.params, this.invitation, prepared);
    return this.visit();
  }

  /** Send what waits, and hear how things stand; the stage. */
  async visit() {
    this.record = await visit(this.record.id);
    return this.stage;
  }

  /** Take the answer back, for good; the stage says whether it was in time. */
  async withdraw() {
    this.record = await withdraw(this.record.id);
    return this.stage;
  }
}

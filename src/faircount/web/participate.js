// For a company's own page: take part in a survey without the participant's page. Serve this folder
// yourself, so that you decide which program your users run, and ask the operator of the
// coordinator (S1) to allow your page's origin.
//
//   const part = await participate("https://count.example.org/", code);
//   part.params.questionnaire.questions, part.params.real.epsilon
//                                          verified against the code: show them to the participant
//   const report = await part.makeReport([2, null, [0, 3], 17]);
//                                          one answer per question (client/questions.js), then
//                                          the privacy level where params.drawn.levels offers
//                                          some; you can show report.share and
//                                          report.encryptedShare
//   await part.send(report);               after the participant confirmed: stored, then sent
//   part.stage                             "waiting", "sent", "counted", ...
//   await part.visit(); await part.withdraw();
//
// A survey or code that must not be used throws a `Refusal` with a `code`; a coordinator that does
// not respond throws `Unreachable`: call `visit` again later.

import { readCode } from "./client/code.js";
import { systemRandom } from "./client/random.js";
import { makeReport } from "./client/report.js";
import { checkBrowser } from "./page/browser_check.js";
import { Unreachable } from "./page/network.js";
import {
  invitedParameters, recordId, storeReport, visit, withdraw,
} from "./page/participation.js";
import { load } from "./page/store.js";

export { Refusal } from "./client/refusal.js";
export { Unreachable };

/** The participation to which a code invites; nothing is sent yet. */
export async function participate(server, code) {
  await checkBrowser();
  const { survey, invitation } = await readCode(code);
  const params = await invitedParameters(server, { survey, invitation });
  return new Participation(params, invitation, await load(recordId(survey, invitation.user)));
}

class Participation {
  constructor(params, invitation, record) {
    this.params = params;
    this.invitation = invitation;
    this.record = record;
  }

  /** The status of the participation; "new" before anything was answered on this device. */
  get stage() {
    return this.record?.stage ?? "new";
  }

  /**
   * Draw the report for a sheet, one answer per question, and for a privacy level where the survey
   * offers them, 0 for the strongest. Nothing is stored or sent yet.
   */
  makeReport(sheet, level = 0) {
    return makeReport(this.params, this.invitation, sheet, systemRandom, level);
  }

  /**
   * Store a report and send it. If this device has stored one before, that one is sent.
   */
  async send(report) {
    this.record = await storeReport(this.params, this.invitation, report);
    return this.visit();
  }

  /** Send what waits and ask for the outcome; returns the stage. */
  async visit() {
    this.record = await visit(this.record.id);
    return this.stage;
  }

  /** Withdraw the response for good; the stage tells whether it was in time. */
  async withdraw() {
    this.record = await withdraw(this.record.id);
    return this.stage;
  }
}

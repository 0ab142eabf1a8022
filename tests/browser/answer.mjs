// Reads {"surveys": [{"published": text, "people": [[token, position], ...]}, ...]} and prints what each person would
// send, in hexadecimal; or, for parameters that the client refuses, the reason.

import { readFileSync } from "node:fs";

import { hex, textBytes, unhex } from "../../src/faircount/web/client/bytes.js";
import { paramsDigest } from "../../src/faircount/web/client/digests.js";
import { invitation } from "../../src/faircount/web/client/invitation.js";
import { believed } from "../../src/faircount/web/client/parameters.js";
import { systemRandom } from "../../src/faircount/web/client/random.js";
import { submission } from "../../src/faircount/web/client/submission.js";

const asked = JSON.parse(readFileSync(0));
const answers = [];
for (const survey of asked.surveys) {
  answers.push(await answer(textBytes(survey.published), survey.people));
}
console.log(JSON.stringify(answers));

async function answer(published, people) {
  try {
    const params = await believed(published, await paramsDigest(published));
    const bodies = [];
    for (const [token, position] of people) {
      const guest = await invitation(unhex(token), params.digest);
      bodies.push(hex((await submission(params, guest, position, systemRandom)).body));
    }
    return { bodies };
  } catch (problem) {
    return { refused: problem.code ?? String(problem) };
  }
}

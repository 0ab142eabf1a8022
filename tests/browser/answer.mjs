// Reads {"surveys": [{"published": text, "people": [[token, position], ...]}, ...]} and prints what each person would
// send, in hexadecimal; or, for parameters that the client refuses, the reason. Where a list of numbers stands in the
// place of a position, the person lies: these are "proven" in the place of a vote.

import { readFileSync } from "node:fs";

import { hex, textBytes, unhex } from "../../src/faircount/web/client/bytes.js";
import { paramsDigest } from "../../src/faircount/web/client/digests.js";
import { residue, uniformElements } from "../../src/faircount/web/client/field.js";
import { invitation } from "../../src/faircount/web/client/invitation.js";
import { believed } from "../../src/faircount/web/client/parameters.js";
import { prove } from "../../src/faircount/web/client/proof.js";
import { systemRandom } from "../../src/faircount/web/client/random.js";
import { freshKeyPair } from "../../src/faircount/web/client/sealing.js";
import { prepared, submission } from "../../src/faircount/web/client/submission.js";

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
      const made = Array.isArray(position) ? lie(params, guest, position) : submission(params, guest, position, systemRandom);
      bodies.push(hex((await made).body));
    }
    return { bodies };
  } catch (problem) {
    return { refused: problem.code ?? String(problem) };
  }
}

async function lie(params, guest, numbers) {
  const { form } = params.drawn;
  const bits = numbers.map((value) => Number(residue(BigInt(value), params.q)));
  const blind = uniformElements(params.q, form.degree, systemRandom).map(Number);
  const row = prove(form, bits, blind).map(BigInt);
  return prepared(params, guest, row, systemRandom(16), await freshKeyPair(), systemRandom);
}

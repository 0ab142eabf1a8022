// Reads {"surveys": [{"published": text, "people": [[token, sheet], ...]}, ...]} and prints the
// reports in hexadecimal or, for parameters that the client refuses, the reason. {"forged": numbers}
// in place of a sheet stands for a malicious client, which "proves" these numbers instead of bits.

import { readFileSync } from "node:fs";

import { hex, textBytes, unhex } from "../../src/faircount/web/client/bytes.js";
import { paramsDigest } from "../../src/faircount/web/client/digests.js";
import { residue, uniformElements } from "../../src/faircount/web/client/field.js";
import { deriveInvitation } from "../../src/faircount/web/client/invitation.js";
import { parseInvited } from "../../src/faircount/web/client/parameters.js";
import { prove } from "../../src/faircount/web/client/proof.js";
import { systemRandom } from "../../src/faircount/web/client/random.js";
import { generateKeyPair } from "../../src/faircount/web/client/encryption.js";
import { makeReport, encodeReport } from "../../src/faircount/web/client/report.js";

const asked = JSON.parse(readFileSync(0));
const answers = [];
for (const survey of asked.surveys) {
  answers.push(await answer(textBytes(survey.published), survey.people));
}
console.log(JSON.stringify(answers));

async function answer(published, people) {
  try {
    const params = await parseInvited(published, await paramsDigest(published));
    const bodies = [];
    for (const [token, sheet] of people) {
      const guest = await deriveInvitation(unhex(token), params.digest);
      const made = Array.isArray(sheet)
        ? makeReport(params, guest, sheet, systemRandom)
        : forgeReport(params, guest, sheet.forged);
      bodies.push(hex((await made).message));
    }
    return { bodies };
  } catch (problem) {
    return { refused: problem.code ?? String(problem) };
  }
}

async function forgeReport(params, guest, numbers) {
  const { layout } = params.drawn;
  const bits = numbers.map((value) => Number(residue(BigInt(value), params.q)));
  const blind = uniformElements(params.q, layout.degree, systemRandom).map(Number);
  const row = prove(layout, bits, blind).map(BigInt);
  return encodeReport(params, guest, row, systemRandom(16), await generateKeyPair(), systemRandom);
}

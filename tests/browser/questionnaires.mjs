// Reads {"cases": [{"plain", "sheets", "groups", "users", "included", "counts"}, ...]} and prints
// for each what the browser's client makes of these questions: bits, constraints, cells, the encoded
// sheets, the tables of the noise and the estimates. Questions that it refuses give null.

import { readFileSync } from "node:fs";

import {
  groupNoises, largestSpan, spentUnits, tablesDelta, tablesDigest,
} from "../../src/faircount/web/client/joint_noise.js";
import {
  encodeSheet, isAsked, openCells, readQuestionnaire,
} from "../../src/faircount/web/client/questionnaire.js";
import { Refusal } from "../../src/faircount/web/client/refusal.js";
import { sheetEstimates } from "../../src/faircount/web/client/sheet_estimates.js";

const { cases } = JSON.parse(readFileSync(0, "utf8"));
const found = [];
for (const one of cases) found.push(await judge(one));
console.log(JSON.stringify(found));

async function judge({ plain, sheets = [], groups = null, users, included, counts = null }) {
  const questionnaire = unlessRefused(() => readQuestionnaire(plain));
  if (questionnaire === null) return null;
  const { bits, cells, constraints, openings, questions, leastModulus } = questionnaire;
  const said = {
    bits, cells, constraints, openings, leastModulus,
    blocks: questions.map((question) => question.blocks),
    sheets: sheets.map((sheet) => unlessRefused(() => describe(questionnaire, sheet))),
  };
  if (groups === null) return said;
  const noises = await groupNoises(questionnaire, groups);
  return {
    ...said,
    digest: await tablesDigest(noises),
    spent: String(spentUnits(noises)),
    delta: tablesDelta(noises),
    span: largestSpan(questionnaire, noises, users),
    estimates: counts && sheetEstimates(questionnaire, noises, counts, included),
  };
}

function describe(questionnaire, sheet) {
  const bits = encodeSheet(questionnaire, sheet);
  const asked = sheet.map((_, number) => isAsked(questionnaire, sheet, number));
  return { bits, cells: openCells(questionnaire, bits), asked };
}

function unlessRefused(work) {
  try {
    return work();
  } catch (problem) {
    if (problem instanceof Refusal) return null;
    throw problem;
  }
}

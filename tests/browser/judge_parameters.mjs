// Reads a list of published parameters from standard input and prints for each whether the browser's
// client accepts them. An error that is no refusal ends the program.

import { readFileSync } from "node:fs";

import { textBytes } from "../../src/faircount/web/client/bytes.js";
import { parse } from "../../src/faircount/web/client/parameters.js";
import { Refusal } from "../../src/faircount/web/client/refusal.js";

async function isAccepted(published) {
  try {
    await parse(textBytes(published));
  } catch (problem) {
    if (problem instanceof Refusal) return false;
    throw problem;
  }
  return true;
}

const verdicts = [];
for (const published of JSON.parse(readFileSync(0, "utf8"))) {
  verdicts.push(await isAccepted(published));
}
console.log(JSON.stringify(verdicts));

// Reads {"surveys": [{"published": text, "included": n, "counts": [...]}, ...]} and prints the
// estimates of each, and those of two tables where the survey offers privacy levels.

import { readFileSync } from "node:fs";

import { textBytes } from "../../src/faircount/web/client/bytes.js";
import { estimates, estimatesIfAlike } from "../../src/faircount/web/client/estimates.js";
import { parse } from "../../src/faircount/web/client/parameters.js";

const { surveys } = JSON.parse(readFileSync(0));
const found = [];
for (const { published, included, counts } of surveys) {
  const params = await parse(textBytes(published));
  const result = { included, counts: counts.map(BigInt) };
  const [rows, alike] = [estimates(params, result), estimatesIfAlike(params, result)];
  found.push(alike ? { rows, alike } : rows);
}
console.log(JSON.stringify(found));

// Reads {"surveys": [{"published": text, "included": n, "counts": [...]}, ...]} and prints the
// estimates of each.

import { readFileSync } from "node:fs";

import { textBytes } from "../../src/faircount/web/client/bytes.js";
import { estimates } from "../../src/faircount/web/client/estimates.js";
import { parse } from "../../src/faircount/web/client/parameters.js";

const { surveys } = JSON.parse(readFileSync(0));
const found = [];
for (const { published, included, counts } of surveys) {
  const params = await parse(textBytes(published));
  found.push(estimates(params, { included, counts: counts.map(BigInt) }));
}
console.log(JSON.stringify(found));

// Known answers in Firefox, outside make test: `make firefox`. Fails where the client says
// something else than they do.

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { withFirefox } from "./firefox_driver.mjs";

const ROOT = new URL("../../", import.meta.url);
const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";
const KINDS = { js: "text/javascript", mjs: "text/javascript", json: "application/json" };
const names = readdirSync(new URL("test_vectors/", ROOT)).filter((name) => name.endsWith(".json"));

/** What Firefox does: whether the page would take it, and every known answer. */
const WORK = `(async () => {
  const { checkBrowser } = await import("/src/faircount/web/page/browser_check.js");
  await checkBrowser();
  const { replayAll } = await import("/tests/browser/replay.mjs");
  const read = async (name) => {
    const response = await fetch("/test_vectors/" + name);
    return [name.slice(0, -5), await response.json()];
  };
  const files = Object.fromEntries(await Promise.all(${JSON.stringify(names)}.map(read)));
  return JSON.stringify(await replayAll(files));
})()`;

/** The files of this repository on loopback. */
function serve() {
  const server = createServer((request, response) => {
    const path = request.url.slice(1);
    const kind = KINDS[path.split(".").at(-1)];
    response.setHeader("Content-Security-Policy", POLICY);
    response.setHeader("Content-Type", kind ?? "text/html");
    response.end(kind ? readFileSync(new URL(path, ROOT)) : "<!doctype html><title>empty</title>");
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

async function replay(tell, page) {
  const { capabilities } = await tell("session.new", { capabilities: {} });
  const { context } = await tell("browsingContext.create", { type: "tab" });
  await tell("browsingContext.navigate", { context, url: page, wait: "complete" });
  const script = { expression: WORK, target: { context }, awaitPromise: true };
  const answer = await tell("script.evaluate", script);
  if (answer.type !== "success") throw new Error(answer.exceptionDetails.text);
  return { version: capabilities.browserVersion, ...JSON.parse(answer.result.value) };
}

const server = await serve();
await withFirefox(async (tell) => {
  const page = `http://localhost:${server.address().port}/`;
  const { version, cases, problems } = await replay(tell, page);
  console.log(`Firefox ${version}: ${cases} known answers, ${problems.length} wrong`);
  problems.forEach((problem) => console.log(problem));
  process.exitCode = problems.length || cases < 120 ? 1 : 0;
});
process.exit();

// Known answers in Firefox, outside make test: `make firefox`. Firefox is told what to do through WebDriver BiDi, which it
// speaks by itself, so that no driver is needed. Fails where the client says something else than the known answers.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = new URL("../../", import.meta.url);
const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'";
const KINDS = { js: "text/javascript", mjs: "text/javascript", json: "application/json" };
const names = readdirSync(new URL("test_vectors/", ROOT)).filter((name) => name.endsWith(".json"));

/** What Firefox does: whether the page would take it, and every known answer. */
const WORK = `(async () => {
  const { checkBrowser } = await import("/src/faircount/web/page/browser_check.js");
  await checkBrowser();
  const { replayAll } = await import("/tests/browser/replay.mjs");
  const read = async (name) => [name.slice(0, -5), await (await fetch("/test_vectors/" + name)).json()];
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

/** Firefox without a window, and the address at which it listens. */
function start(profile) {
  const firefox = spawn("firefox-esr", ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"]);
  const address = new Promise((resolve, reject) => {
    firefox.on("error", () => reject(new Error("Firefox was not found: install the package firefox-esr")));
    firefox.on("exit", (code) => reject(new Error(`Firefox ended with code ${code} before it listened`)));
    firefox.stderr.on("data", (text) => {
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text);
      if (found) resolve(`${found[1]}/session`);
    });
  });
  return { firefox, address };
}

/** Sends commands one after the other; each gives its result, or throws what Firefox says. */
async function connected(address) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => ((socket.onopen = resolve), (socket.onerror = reject)));
  let last = 0;
  return (method, params) => {
    const id = (last += 1);
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => {
      socket.addEventListener("message", ({ data }) => {
        const said = JSON.parse(data);
        if (said.id === id) said.type === "success" ? resolve(said.result) : reject(new Error(said.message));
      });
    });
  };
}

async function replayed(tell, page) {
  const { capabilities } = await tell("session.new", { capabilities: {} });
  const { context } = await tell("browsingContext.create", { type: "tab" });
  await tell("browsingContext.navigate", { context, url: page, wait: "complete" });
  const said = await tell("script.evaluate", { expression: WORK, target: { context }, awaitPromise: true });
  if (said.type !== "success") throw new Error(said.exceptionDetails.text);
  return { version: capabilities.browserVersion, ...JSON.parse(said.result.value) };
}

if (!globalThis.WebSocket) throw new Error("this needs Node 22, or Node 20.10 with --experimental-websocket");
const profile = mkdtempSync(join(tmpdir(), "faircount-firefox-"));
const server = await serve();
const { firefox, address } = start(profile);
try {
  const tell = await connected(await address);
  const { version, cases, problems } = await replayed(tell, `http://localhost:${server.address().port}/`);
  console.log(`Firefox ${version}: ${cases} known answers, ${problems.length} of them not as they should be`);
  problems.forEach((each) => console.log(each));
  process.exitCode = problems.length || cases < 120 ? 1 : 0;
} finally {
  firefox.removeAllListeners("exit");
  firefox.on("exit", () => (rmSync(profile, { recursive: true, force: true }), process.exit()));
  firefox.kill();
  server.close();
}

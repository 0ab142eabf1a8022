// Firefox without a window, told what to do through WebDriver BiDi, which it speaks by itself: no
// driver is needed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Start Firefox with a profile of its own, let `work(tell)` give it commands, and end it whatever
 * happens.
 */
export async function withFirefox(work) {
  if (!globalThis.WebSocket) {
    throw new Error("use Node 22, or Node 20.10 with --experimental-websocket");
  }
  const profile = mkdtempSync(join(tmpdir(), "faircount-firefox-"));
  const { firefox, address } = start(profile);
  try {
    return await work(await connected(await address));
  } finally {
    const ended = new Promise((resolve) => firefox.removeAllListeners("exit").on("exit", resolve));
    if (firefox.exitCode === null && firefox.kill()) await ended;
    rmSync(profile, { recursive: true, force: true });
  }
}

/** Firefox, and the address at which it listens. */
function start(profile) {
  const options = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"];
  const firefox = spawn("firefox-esr", options);
  const address = new Promise((resolve, reject) => {
    const fail = (message) => reject(new Error(message));
    firefox.on("error", () => fail("Firefox was not found: install the package firefox-esr"));
    firefox.on("exit", (code) => fail(`Firefox ended with code ${code} before it listened`));
    firefox.stderr.on("data", (text) => {
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text);
      if (found) resolve(`${found[1]}/session`);
    });
  });
  return { firefox, address };
}

/** Sends a command; gives its result, or throws what Firefox says. */
async function connected(address) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => ((socket.onopen = resolve), (socket.onerror = reject)));
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const said = JSON.parse(data);
    const { resolve, reject } = waiting.get(said.id) ?? {};
    waiting.delete(said.id);
    if (resolve) said.type === "success" ? resolve(said.result) : reject(new Error(said.message));
  };
  let last = 0;
  return (method, params) => {
    const id = (last += 1);
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  };
}

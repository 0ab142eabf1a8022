// The owner's dashboard. The key stands after # in the address and goes with every call; nobody but this machine is called.

import { showCreation, showList, showProblem, showSurvey } from "./views.js";

const SECONDS_BETWEEN_LOOKS = 3;
const key = location.hash.slice(1);
let turn = 0; // grows with every new page, so that what was begun for another one stops

/** The answer of the dashboard's own server: JSON, or bytes of a file. What it refuses is thrown in its words. */
async function call(method, path, given) {
  const answer = await fetch(`/api/${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}` },
    body: given === undefined ? undefined : JSON.stringify(given),
  });
  if (!answer.ok) throw new Error((await answer.json()).detail);
  return answer.headers.get("content-type").includes("json") ? answer.json() : answer.blob();
}

async function attempt(action) {
  try {
    return await action();
  } catch (problem) {
    showProblem(problem.message, list);
  }
}

function list() {
  turn += 1;
  return attempt(async () => showList((await call("GET", "surveys")).surveys, { open: follow, create }));
}

function create() {
  turn += 1;
  showCreation({
    advise: (wished) => call("POST", "advice", wished),
    make: (wished) => attempt(async () => follow((await call("POST", "surveys", wished)).name)),
    back: list,
  });
}

/** Show a survey, and bring it up to date until it is over. */
function follow(name) {
  const mine = (turn += 1);
  let shown = "";

  const look = async () => {
    const survey = await call("GET", `surveys/${name}`);
    const over = ["published", "aborted"].includes(survey.status?.state);
    const [result, budget] = over ? await Promise.all(["result", "budget"].map((each) => call("GET", `surveys/${name}/${each}`))) : [];
    if (turn !== mine) return;
    const now = JSON.stringify([survey, result]);
    if (now !== shown) showSurvey(survey, result, budget, { tell, save, back: list });
    shown = now;
    if (!over) setTimeout(() => turn === mine && attempt(look), 1000 * SECONDS_BETWEEN_LOOKS);
  };
  const tell = (what, given = {}) => attempt(async () => (await call("POST", `surveys/${name}/${what}`, given), follow(name)));
  const save = (kind) => attempt(async () => download(await call("GET", `surveys/${name}/files/${kind}`), `${name}-${kind}`));
  return attempt(look);
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

list();

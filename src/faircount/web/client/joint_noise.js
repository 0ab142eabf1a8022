// Joint noise: both servers draw one random radius per group of questions, and then a uniform point
// in the ball of every block of cells. One person who changes all answers changes the radius of the
// noise by at most 1 in every group, so that the release loses the sum of the groups' epsilons.
// This client computes the tables of the radius, and what they add to delta.

import { hex, textBytes } from "./bytes.js";
import { parseInteger } from "./canonical_json.js";
import { ballOf, cubeBall } from "./balls.js";
import { taggedHash } from "./digests.js";
import { radiusTable } from "./radius.js";
import { insist } from "./refusal.js";
import { hasExactly, isCount } from "./shapes.js";

const SMALLEST_EPSILON = 0.001;
const LARGEST_EPSILON = 50;
const EPSILON_BITS = 128n;
// A number that is alone in its group may have balls of an L-th part of its range at an L-th part
// of epsilon: with many parts that is discrete Laplace noise. More would only make tables longer.
const MAX_PARTS = 128n;
const PARTS_PER_EPSILON = 100n;
const MAX_ENTRIES = 2 ** 20; // of the tables from which a server draws the noise of a question
const DRAW_DISTANCE = 2 ** -129; // of a uniform integer that a server draws from the ideal one

/**
 * The noise of every group of published settings, checked: {epsilonUnits, epsilon, questions,
 * balls, scaled, table}. `scaled` is epsilon per step of the radius, in units of 2^-128.
 */
export async function groupNoises({ questions }, groups) {
  checkGroups(groups, questions.length);
  const noises = [];
  for (const group of groups) {
    const epsilonUnits = parseInteger(group.epsilon);
    const epsilon = checkEpsilon(epsilonUnits);
    const blocks = group.questions.flatMap((number) => questions[number].blocks);
    const { balls, scaled } = noiseForm(blocks, epsilonUnits);
    checkEpsilon(scaled);
    const table = await radiusTable(balls, scaled);
    checkDrawable(balls, table);
    noises.push({ epsilonUnits, epsilon, questions: group.questions, balls, scaled, table });
  }
  return noises;
}

/** Noise of a single cell with the distribution e^(-epsilon |z|): uniform up to a random radius. */
export async function cellNoise(number, units) {
  const epsilon = checkEpsilon(units);
  const balls = [cubeBall(1, 1)];
  const table = await radiusTable(balls, units);
  return { epsilonUnits: units, epsilon, questions: [number], balls, scaled: units, table };
}

/** Refuse noise for which the tables of a server would not fit into memory: it ends in nothing. */
function checkDrawable(balls, { cumulative }) {
  const widest = Math.max(...balls.map(entriesPerRadius));
  const isSmall = widest * (cumulative.length - 1) <= MAX_ENTRIES;
  // check: page-drawable-noise - people answer a survey that can only end without a result
  insist(isSmall, "malformed", "a question has more answers than its noise can be drawn for");
}

function entriesPerRadius({ kind, cells, limit }) {
  if (kind === "cube") return 0; // a cell is drawn without a table
  return kind === "limited" ? cells * limit : cells;
}

function checkGroups(groups, count) {
  const areGroups =
    Array.isArray(groups) && groups.every((group) => hasExactly(group, ["epsilon", "questions"]));
  insist(areGroups, "malformed", "groups have an epsilon and questions");
  const areLists = groups.every(({ questions }) => Array.isArray(questions) && questions.length);
  insist(areLists, "malformed", "a group has at least one question");
  const named = groups.flatMap((group) => group.questions);
  const areNumbers = named.every((number) => isCount(number) && number < count);
  const isPartition = areNumbers && named.length === count && new Set(named).size === count;
  // check: page-question-groups - a question in no group is published without noise
  insist(isPartition, "malformed", "every question must be in exactly one group");
}

function checkEpsilon(units) {
  const epsilon = Number(units) / 2 ** 128;
  const isInRange = epsilon >= SMALLEST_EPSILON && epsilon <= LARGEST_EPSILON;
  insist(isInRange, "malformed", "the epsilon of a group of questions is out of range");
  return epsilon;
}

/** The balls of a group, and epsilon per step of their radius. */
function noiseForm(blocks, epsilonUnits) {
  if (blocks.length !== 1 || blocks[0].kind !== "number") {
    return { balls: blocks.map(ballOf), scaled: epsilonUnits };
  }
  const bound = BigInt(blocks[0].bound);
  const parts = bestParts(bound, epsilonUnits);
  // Any change of the number lies in Ball(parts), so a step may cost a part of epsilon.
  return { balls: [cubeBall(1, Number(divideUp(bound, parts)))], scaled: epsilonUnits / parts };
}

/**
 * Into how many parts the range of a number is divided for the least variance. That is close to
 * 2 (s L / epsilon)^2 (1 + (epsilon / L)^2 / 12) for steps s; it is compared in whole numbers.
 */
export function bestParts(bound, scaled) {
  const perEpsilon = (scaled * PARTS_PER_EPSILON) >> EPSILON_BITS;
  const most = [MAX_PARTS, bound, perEpsilon > 1n ? perEpsilon : 1n].reduce((one, other) =>
    one < other ? one : other,
  );
  let best = 1n;
  let least = null;
  for (let parts = 1n; parts <= most; parts += 1n) {
    const step = divideUp(bound, parts);
    const cost = step ** 2n * (12n * (parts << EPSILON_BITS) ** 2n + scaled ** 2n);
    if (least === null || cost < least) {
      least = cost;
      best = parts;
    }
  }
  return best;
}

/**
 * The hash of the tables of all groups, as in published parameters; with levels, those of the
 * second table of every question follow.
 */
export async function tablesDigest(noises, second = []) {
  const titled = (title) => ({ table }, number) => [
    `${title} ${number}\n`,
    ...table.cumulative.map((entry, radius) => `${radius} ${entry}\n`),
  ];
  const lines = [...noises.flatMap(titled("group")), ...second.flatMap(titled("second"))];
  return hex(await taggedHash("table", textBytes(lines.join(""))));
}

/** What all groups lose together, in units of 2^-128. */
export const spentUnits = (noises) =>
  noises.reduce((sum, { epsilonUnits }) => sum + epsilonUnits, 0n);

/**
 * What the finite tables of all groups add to delta at any epsilon: (1 + e^epsilon) times the
 * distance of what is drawn from the ideal noise, of the radius and of all integers.
 */
export const tablesDelta = (noises) =>
  noises.reduce((sum, { balls, epsilon, table }) => {
    const draws = balls.reduce((count, ball) => count + ball.draws, 0);
    // Rounded up: the conversion of the integer may have rounded down by a half of 2^-52.
    const ofRadius = (Number(table.distanceUnits) / 2 ** 256) * (1 + 2 ** -50);
    return sum + (1 + Math.exp(epsilon)) * (ofRadius + DRAW_DISTANCE * draws);
  }, 0);

/** The largest sum that any cell can have with the noise of both servers, minus the smallest. */
export function largestSpan({ questions }, noises, users) {
  const spans = noises.flatMap(({ questions: numbers, balls, table }) => {
    const blocks = numbers.flatMap((number) => questions[number].blocks);
    const radius = table.cumulative.length - 1;
    // Both servers' noise, in both directions. A hard bound: nothing is drawn beyond the table.
    return blocks.map(({ kind, bound }, at) => {
      const most = kind === "number" ? bound : 1;
      return users * most + 4 * radius * (balls[at].step ?? 1);
    });
  });
  return Math.max(...spans);
}

const divideUp = (value, divisor) => (value + divisor - 1n) / divisor;

// The balls of blocks of cells, and how many integer points they hold:
//
//   cube      {|z_i| <= step r}                                   any, yes/no, a number
//   zero-sum  {sum of z = 0, sum of positive z <= r}              exactly one of several
//   limited   {|z_i| <= r, sum of positive z <= c r, of negative z likewise}    at most c
//
// Noise is uniform in such a ball, whose radius is random. This client only checks how large the
// noise of the servers is; it draws none of it.

import { insist } from "./refusal.js";

const MAX_CELLS = { one: 300, most: 60 }; // more would take minutes to count

/** The balls of a block: {kind, cells, dimension, draws} and step or limit. */
export function ballOf({ kind, cells, bound }) {
  const isSmall = cells <= (MAX_CELLS[kind] ?? Infinity);
  insist(isSmall, "malformed", "a question has more answers than joint noise is for");
  if (kind === "number") return cubeBall(1, bound);
  if (kind === "any") return cubeBall(cells, 1);
  // `draws` is how many uniform integers a server draws for one point.
  if (kind === "one") {
    return { kind: "zero-sum", cells, dimension: cells - 1, draws: 2 * cells - 1 };
  }
  return { kind: "limited", cells, limit: bound, dimension: cells, draws: 2 * cells };
}

/** Cells that move by up to `step` each, independently of each other. */
export const cubeBall = (cells, step) =>
  ({ kind: "cube", cells, step, dimension: cells, draws: cells });

/** The sizes of the balls with the radii 0, 1, 2, ..., without end. */
export function ballSizes(ball) {
  return ball.kind === "cube" ? cubeSizes(ball) : polynomialValues(firstSizes(ball));
}

function* cubeSizes({ cells, step }) {
  const power = BigInt(cells);
  for (let side = 1n; ; side += 2n * BigInt(step)) yield side ** power;
}

/**
 * The values of a polynomial of degree d from its first d + 1: sizes are polynomials of the radius
 * (Ehrhart), so that all others follow by additions. The differences of differences are added up.
 */
function* polynomialValues(first) {
  const edge = [];
  for (let row = first; row.length; row = row.slice(1).map((value, at) => value - row[at])) {
    edge.push(row[0]);
  }
  for (;;) {
    yield edge[0];
    for (let at = 0; at < edge.length - 1; at += 1) edge[at] += edge[at + 1];
  }
}

/** The sizes at the radii 0 .. dimension, by counting. */
function firstSizes(ball) {
  const radii = Array.from({ length: ball.dimension + 1 }, (_, radius) => radius);
  if (ball.kind === "limited") return radii.map((radius) => limitedSize(ball, radius));
  // The h*-vector of the root polytope A_d is C(d, k)^2.
  const d = ball.dimension;
  const rows = pascal(2 * d);
  const squares = radii.map((k) => rows[d][k] ** 2n);
  return radii.map((radius) => {
    const counted = squares.slice(0, radius + 1);
    return counted.reduce((sum, square, k) => sum + square * rows[radius + d - k][d], 0n);
  });
}

/** By the numbers of positive and of negative cells. */
function limitedSize({ cells, limit }, radius) {
  const whole = countBounded(cells, radius, limit * radius);
  const rows = pascal(cells);
  let total = 0n;
  for (let up = 0; up <= cells; up += 1) {
    for (let down = 0; down <= cells - up; down += 1) {
      total += rows[cells][up] * rows[cells - up][down] * whole[up] * whole[down];
    }
  }
  return total;
}

/** How many vectors in [1, top]^i have a sum of at most `most`, for i = 0 .. parts. */
function countBounded(parts, top, most) {
  let row = new Array(most + 1).fill(1n);
  const counts = [row[most]];
  for (let part = 0; part < parts; part += 1) {
    const next = [0n];
    for (let b = 1; b <= most; b += 1) {
      // A window of `top` entries moves along: one enters, and one leaves.
      next.push(next[b - 1] + row[b - 1] - (b > top ? row[b - 1 - top] : 0n));
    }
    counts.push(next[most]);
    row = next;
  }
  return counts;
}

/** The rows 0 .. last of Pascal's triangle. */
function pascal(last) {
  const rows = [[1n]];
  for (let n = 1; n <= last; n += 1) {
    const before = rows[n - 1];
    rows.push(Array.from({ length: n + 1 }, (_, k) => (before[k - 1] ?? 0n) + (before[k] ?? 0n)));
  }
  return rows;
}

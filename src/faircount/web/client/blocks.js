// What the kinds of questions are made of: weighted bits, constraints, and blocks of cells.
//
//   weights      [[position of a bit, weight], ...]
//   constraint   {weights, value}: a weighted sum of bits that has a public value in valid reports
//   block        {kind, cells, bound}: cells that noise protects together
//     one        exactly one of the cells is 1, so their counts add up to the number of people
//     any        every cell is 0 or 1
//     most       every cell is 0 or 1, and at most `bound` of them are 1
//     number     a single cell with a number from 0 to `bound`

/** Weights of bits whose sums are exactly the numbers from 0 to `largest`, as in 1, 2, 4, 3. */
export function numberWeights(largest) {
  const length = largest.toString(2).length;
  const powers = Array.from({ length: length - 1 }, (_, place) => 2 ** place);
  return [...powers, largest - 2 ** (length - 1) + 1];
}

/** The bits of a number under these weights; the last one is set only where it must be. */
export function numberBits(number, largest) {
  const weights = numberWeights(largest);
  const last = Number(number > 2 ** (weights.length - 1) - 1);
  const rest = number - last * weights.at(-1);
  return [...weights.slice(0, -1).map((_, place) => (rest >> place) & 1), last];
}

/**
 * From this modulus on, a constraint holds modulo q only if it holds for integers: any sum of bits
 * lies between the sums of the negative and of the positive weights.
 */
export function leastModulus({ weights, value }) {
  const sum = (kept) => kept.reduce((total, [, weight]) => total + weight, 0);
  const lowest = sum(weights.filter(([, weight]) => weight < 0));
  const highest = sum(weights.filter(([, weight]) => weight > 0));
  return Math.max(highest - value, value - lowest) + 1;
}

/** The same weights for bits that begin at `offset`. */
export const shiftWeights = (weights, offset) =>
  weights.map(([position, weight]) => [position + offset, weight]);

/** The sum of the bits times their weights. */
export const weightedSum = (weights, bits) =>
  weights.reduce((total, [position, weight]) => total + weight * bits[position], 0);

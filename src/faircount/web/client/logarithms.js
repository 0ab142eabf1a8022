// Logarithms of numbers that are too large for doubles.

const FIRST_FACTORIALS = 1024;
const factorials = [0];

/** log n!, from a table of sums that is made longer when it is needed. */
export function logFactorial(n) {
  if (n >= factorials.length) extendFactorials(Math.max(FIRST_FACTORIALS, 2 * n));
  return factorials[n];
}

function extendFactorials(last) {
  let lost = 0; // what rounding has cut off so far (Kahan)
  for (let n = factorials.length; n <= last; n += 1) {
    const step = Math.log(n) - lost;
    const total = factorials[n - 1] + step;
    lost = total - factorials[n - 1] - step;
    factorials.push(total);
  }
}

/** The logarithm of a binomial coefficient. */
export const logChoose = (n, k) => logFactorial(n) - logFactorial(k) - logFactorial(n - k);

/** The logarithm of a sum, from the logarithms of its terms. */
export function logSum(logs) {
  const top = Math.max(...logs);
  if (top === -Infinity) return top;
  return top + Math.log(logs.reduce((total, log) => total + Math.exp(log - top), 0));
}

/** The logarithm of a positive BigInt of any size. */
export function logOf(whole) {
  const shift = Math.max(0, whole.toString(16).length * 4 - 1000);
  return Math.log(Number(whole >> BigInt(shift))) + shift * Math.LN2;
}

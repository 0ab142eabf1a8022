// What published values look like: used wherever a part of them is read.

/** Whether a value is a whole number from 0 to 2^53 - 1. */
export const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

/** Whether a value is an object with exactly these names. */
export function hasExactly(value, names) {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  return isObject && Object.keys(value).sort().join() === names.slice().sort().join();
}

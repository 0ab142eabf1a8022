// An epsilon as something that everybody can imagine.

/**
 * How sure, in percent, somebody can become which of two answers a person gave, who before the result thought both equally
 * likely; rounded up to a tenth.
 */
export function sureness(epsilon) {
  const odds = Math.exp(-epsilon);
  return Math.ceil(1000 / (1 + odds)) / 10;
}

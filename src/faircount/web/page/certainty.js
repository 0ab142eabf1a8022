// Epsilon as something that everybody can imagine.

/**
 * How certain, in percent, anybody can become which of two responses a participant gave, if both
 * seemed equally likely before the result; rounded up to a tenth.
 */
export function attackerCertainty(epsilon) {
  const odds = Math.exp(-epsilon);
  return Math.ceil(1000 / (1 + odds)) / 10;
}

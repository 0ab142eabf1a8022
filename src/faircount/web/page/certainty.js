// Epsilon as something that everybody can imagine.

/**
 * How certain, in percent, anybody can become which of two responses a participant gave, if both
 * seemed equally likely before the result; rounded up to a tenth.
 */
export function attackerCertainty(epsilon) {
  const odds = Math.exp(-epsilon);
  return Math.ceil(1000 / (1 + odds)) / 10;
}

export const NEGLIGIBLE_DELTA = 1e-12; // not worth a sentence
const WEAK_CERTAINTY = 95; // percent
const WEAK_DELTA = 0.001; // chance alone would expose one person in a thousand

/** Whether a promise is so weak that both pages, the participant's and the owner's, warn of it. */
export const isWeak = ({ epsilon, delta }) =>
  attackerCertainty(epsilon) > WEAK_CERTAINTY || delta > WEAK_DELTA;

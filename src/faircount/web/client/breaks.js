// Long computations with breaks, in which a page shows what was clicked or typed.

const LONGEST_TURN = 30; // milliseconds; people notice a page that is busy for longer than 50

/** A function to call between steps: it waits for a moment if the last break is long ago. */
export function makeBreaks() {
  let last = performance.now();
  return async () => {
    if (performance.now() - last < LONGEST_TURN) return;
    await new Promise((resolve) => setTimeout(resolve));
    last = performance.now();
  };
}

// The only source of randomness of this client. Functions that draw take such a function as an
// argument, so that known answers can be replayed; the pages always pass this one.

const MAX_PER_CALL = 65536; // crypto.getRandomValues gives no more in one call

/** This many uniform bytes from the operating system. */
export function systemRandom(size) {
  const out = new Uint8Array(size);
  for (let at = 0; at < size; at += MAX_PER_CALL) {
    crypto.getRandomValues(out.subarray(at, at + MAX_PER_CALL));
  }
  return out;
}

// The only source of randomness of this client. What draws takes such a function as an argument, so that the known
// answers can be replayed; the page gives it this one and no other.

const AT_ONCE = 65536; // crypto.getRandomValues gives no more in one call

/** So many uniform bytes from the operating system. */
export function systemRandom(size) {
  const out = new Uint8Array(size);
  for (let at = 0; at < size; at += AT_ONCE) crypto.getRandomValues(out.subarray(at, at + AT_ONCE));
  return out;
}

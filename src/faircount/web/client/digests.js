// Digests, and paths through Merkle trees: leaf = SHA-256(00 | content), node = SHA-256(01 | left | right), an odd last
// node moves up unchanged.

import { join, textBytes, u32 } from "./bytes.js";

export const LABEL = "faircount/1";

/** SHA-256 of all parts together. */
export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}

/** SHA-256 of "faircount/1/<purpose>", a zero byte, and the parts. */
export const labelled = (purpose, ...parts) => sha256(textBytes(`${LABEL}/${purpose}\0`), ...parts);

/** Digest of published parameters. */
export const paramsDigest = (published) => labelled("params", published);

/** The leaf of one entry of a roster or of a published set. */
export const entryLeaf = (index, user, publicKey) => sha256(Uint8Array.of(0), u32(index), user, publicKey);

/** The root to which a path leads from the leaf at `index` of `size`; null if the path does not fit the place. */
export async function rootOfPath(index, size, path, leaf) {
  if (!(index >= 0 && index < size)) return null;
  const rest = path.slice();
  let [node, at, width] = [leaf, index, size];
  for (; width > 1; at = Math.floor(at / 2), width = Math.ceil(width / 2)) {
    const beside = at % 2 ? at - 1 : at + 1;
    if (beside >= width) continue;
    if (!rest.length) return null;
    const other = rest.shift();
    node = await sha256(Uint8Array.of(1), ...(at % 2 ? [other, node] : [node, other]));
  }
  return rest.length ? null : node;
}

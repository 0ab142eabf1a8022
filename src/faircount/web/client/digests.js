// Hashes, and paths through Merkle trees: leaf = SHA-256(00 | content), node = SHA-256(01 | left |
// right). An odd last node moves up unchanged.

import { join, textBytes, u32 } from "./bytes.js";

export const LABEL = "faircount/1";

/** SHA-256 of the concatenated parts. */
export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
}

/**
 * SHA-256 of "faircount/1/<purpose>", a zero byte, and the parts: one purpose never meets another.
 */
export const taggedHash = (purpose, ...parts) =>
  sha256(textBytes(`${LABEL}/${purpose}\0`), ...parts);

/** The hash of published parameters, as invitations carry it. */
export const paramsDigest = (published) => taggedHash("params", published);

/** The leaf of one entry of a roster, or of the accepted reports of a result. */
export const entryLeaf = (index, user, publicKey) =>
  sha256(Uint8Array.of(0), u32(index), user, publicKey);

/**
 * The root to which a path leads from the leaf at `index` of `size`; null if a tree of this size
 * has no path of this length there.
 */
export async function rootOfPath(index, size, path, leaf) {
  // check: page-path-index - an entry beyond the tree, whose path is empty
  if (!(index >= 0 && index < size)) return null;
  const rest = path.slice();
  let node = leaf;
  let at = index;
  for (let width = size; width > 1; width = Math.ceil(width / 2)) {
    const sibling = at % 2 ? at - 1 : at + 1;
    if (sibling < width) {
      if (!rest.length) return null;
      const other = rest.shift();
      node = await sha256(Uint8Array.of(1), ...(at % 2 ? [other, node] : [node, other]));
    }
    at = Math.floor(at / 2);
  }
  // check: page-path-end - what is left over would prove the same entry at a second place
  if (rest.length) return null;
  return node;
}

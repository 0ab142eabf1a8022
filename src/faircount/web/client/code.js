// The invitation code, in base32:
//
//   u8 version 1 | survey id 16 | hash of the parameters 32 | token 32 | checksum 4
//
// The checksum is the start of the tagged hash of everything before it: it finds typing mistakes
// and authenticates nothing. Spaces, dashes and case are ignored; 0, 1 and 8 are read as O, I and
// B.

import { join, same } from "./bytes.js";
import { taggedHash } from "./digests.js";
import { deriveInvitation } from "./invitation.js";
import { insist } from "./refusal.js";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOOKALIKES = { 0: "O", 1: "I", 8: "B" };
const SIZE = 85;
const CHECKSUM_SIZE = 4;

/** {survey, invitation} from a code, or from a link that ends in one. */
export async function readCode(text) {
  const bytes = decodeBase32(text.includes("#") ? text.slice(text.indexOf("#") + 1) : text);
  insist(bytes.length === SIZE && bytes[0] === 1, "code", "this is not an invitation code");
  const content = bytes.slice(0, -CHECKSUM_SIZE);
  const checksum = (await taggedHash("code", content)).slice(0, CHECKSUM_SIZE);
  insist(same(checksum, bytes.slice(-CHECKSUM_SIZE)), "mistyped", "the code has a typing mistake");
  const digest = content.slice(17, 49);
  const token = content.slice(49, 81);
  return { survey: content.slice(1, 17), invitation: await deriveInvitation(token, digest) };
}

function decodeBase32(text) {
  const compact = text.toUpperCase().replace(/[\s-]/g, "");
  const readable = compact.replace(/[018]/g, (digit) => LOOKALIKES[digit]);
  const digits = Array.from(readable, (character) => ALPHABET.indexOf(character));
  const isCode = digits.length === (SIZE * 8) / 5 && !digits.includes(-1);
  insist(isCode, "code", "this is not an invitation code");
  const starts = Array.from({ length: digits.length / 8 }, (_, at) => 8 * at);
  return join(...starts.map((start) => fiveBytes(digits.slice(start, start + 8))));
}

/** The five bytes of eight base32 digits. */
function fiveBytes(digits) {
  const whole = digits.reduce((sum, digit) => sum * 32 + digit, 0); // 40 bits are exact in a double
  return Uint8Array.from({ length: 5 }, (_, at) => Math.floor(whole / 256 ** (4 - at)) % 256);
}

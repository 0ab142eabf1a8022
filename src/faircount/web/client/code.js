// The code in an invitation, base32: u8 version 1 | survey 16 | params digest 32 | token 32 | check 4, the first bytes of
// H("code"; all before). Spaces, dashes and case are ignored; 0, 1 and 8 are taken for O, I and B.

import { join, same } from "./bytes.js";
import { labelled } from "./digests.js";
import { invitation } from "./invitation.js";
import { insist } from "./refusal.js";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const FORGIVEN = { 0: "O", 1: "I", 8: "B" };
const SIZE = 85;
const CHECK = 4;

/** {survey, invitation} from a code, or from a link that ends in one. */
export async function readCode(text) {
  const bytes = base32(text.includes("#") ? text.slice(text.indexOf("#") + 1) : text);
  insist(bytes.length === SIZE && bytes[0] === 1, "code", "this is no invitation code");
  const body = bytes.slice(0, -CHECK);
  const check = (await labelled("code", body)).slice(0, CHECK);
  insist(same(check, bytes.slice(-CHECK)), "mistyped", "the code has a mistake in it");
  return { survey: body.slice(1, 17), invitation: await invitation(body.slice(49, 81), body.slice(17, 49)) };
}

function base32(text) {
  const plain = text.toUpperCase().replace(/[\s-]/g, "").replace(/[018]/g, (digit) => FORGIVEN[digit]);
  const values = Array.from(plain, (character) => ALPHABET.indexOf(character));
  insist(values.length === (SIZE * 8) / 5 && !values.includes(-1), "code", "this is no invitation code");
  const groups = Array.from({ length: values.length / 8 }, (_, at) => values.slice(8 * at, 8 * at + 8));
  return join(...groups.map(fiveBytes));
}

/** Eight digits of five bits each. */
function fiveBytes(digits) {
  const whole = digits.reduce((sum, digit) => sum * 32 + digit, 0); // 40 bits: a double holds them
  return Uint8Array.from({ length: 5 }, (_, at) => Math.floor(whole / 256 ** (4 - at)) % 256);
}

// Why the client does not go on. `code` names the sentence that the page shows (refusal_<code> in
// strings.js); `message` has the details for developers.

export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.name = "Refusal";
    this.code = code;
  }
}

/** Throw a `Refusal` unless the condition holds. */
export function insist(condition, code, message) {
  if (!condition) throw new Refusal(code, message);
}

// Why the client does not go on. `code` names the sentence that the page shows (strings.js), `message` says more.

export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.name = "Refusal";
    this.code = code;
  }
}

/** Stop with a reason unless something holds. */
export function insist(holds, code, message) {
  if (!holds) throw new Refusal(code, message);
}

// Firefox for a program that is not JavaScript: each line of the input is a command {method,
// params}, each line of the output its {result} or {error}. Firefox ends with the input.

import { createInterface } from "node:readline";
import { withFirefox } from "./firefox_driver.mjs";

await withFirefox(async (tell) => {
  for await (const line of createInterface({ input: process.stdin })) {
    const { method, params } = JSON.parse(line);
    const said = await tell(method, params).then(
      (result) => ({ result }),
      ({ message }) => ({ error: message }),
    );
    console.log(JSON.stringify(said));
  }
});
process.exit();

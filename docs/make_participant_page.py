"""Writes docs/participant-page.md with the hash of the page as it is today. `--check` fails if the page is out of date."""

from page import write

from faircount.service.participant_page import POLICY, page_hash

TEXT = """# The participant's page

Most people meet a survey as a link. S1 serves the page under `/`; its files are in `src/faircount/web/`: plain ES modules on the
browser's own cryptography (WebCrypto), without packages and without a build step.

![The question, with what is promised](images/question.png)

## What a person sees

1. **Who asks**, why, which two organizations count, how many are invited, the question with its answers.
2. **What is promised**, in a sentence computed from epsilon (how sure anybody can become), and in numbers; what the page has checked; what is not covered.
3. **What will leave the device**: the bytes of both parts beside the answer. Nothing is sent before the person has chosen and confirmed, so a mail scanner
   that opens the link, or submits the form, changes nothing.
4. **What became of it**: acknowledged with S1's signature, counted with a proof, taken back, or how the survey ended; the result with
   95% intervals; a receipt to save.

The page speaks English and German (`page/strings.js` has every sentence, `page/language.js` speaks them; a further language is a further object) and is laid out by logical
sides, so that a language that is written from the right needs nothing else.

## The invitation

A link is S1's address, `/#` and a code; a pasted code does the same where a mail program drops what follows `#`. The code is 136 characters of
base32: version 1, survey id (16 bytes), digest of the parameters (32), token (32), and 4 bytes of check. What follows `#` stays in the browser, and S1 never sees the token.
Because the digest is in the code, S1 cannot show other parameters, other keys or another promise: the page refuses.

## What the page computes itself

- The digest of the parameters, which must be that of the invitation.
- For `laplace` and `server-laplace` the noise table, with whole numbers of any size, to the published digest; for every mechanism all derived numbers; where
  answers are proven, the degree of the question, the field in which it lies, and that each server has committed to a value of its own. One number is believed: for
  decoys and coins without a given number of coins, that number itself, from which the promise is then computed.
- Whether the promise follows, exactly to nine digits, with the fewest people that may be counted and with all: for `server-laplace`, `server-coins`, `placed-coins`, `laplace`, `decoys` and
  `dpds` in the `servers` topology. That a server adds its noise, or places coins as agreed, cannot be computed on a device: the page names the server on which the promise relies.
- The proof that the answer is exactly one vote ([how](validity.md)), where the survey asks for one: the page is the prover. It takes a few milliseconds for 30 answers to choose from.
- Other mechanisms are refused with the advice to use `faircount answer`, and so are topologies with several visits, `masked` among them: there a person's device must come back to help others, and no page that
  may be closed at any time, on browsers that delete storage after a week, can honestly promise that for a person.
- S1's signature on the acknowledgement, S2's signature on the result, the proof of having been counted. What is not proven is not believed, and the
  page says so.

## What the device keeps

One record for each survey in IndexedDB, written with strict durability before anything is sent, sealed under a key that scripts cannot read out: the bytes that
are sent, S1's acknowledgement, the parameters. Neither the answer nor the token is kept. A retry sends the same bytes; a second tab finds the first one's draw. The page
tries again by itself while it is open, and goes on when it is opened again. What S1 has signed, answer or withdrawal, is said once more then: a restored S1 may have lost it. "Forget" deletes the record with its key. Opening the page for the first time needs a connection.

## What is not covered

**Other JavaScript from S1.** Whoever serves a page decides what it does: S1 could send one person a page that tells the answer. The digest in the invitation does not help
against that. These do: a program that was installed (`faircount answer`), a company that serves the module itself (below), or a comparison of the hash, which is the same for everybody:

```text
{hash}
```

S1 tells it at `/page.json`, with the hash of every file. Anybody can compute it from the files, with common tools:

```sh
cd src/faircount/web
find . -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.svg' | cut -c3- | LC_ALL=C sort | xargs sha256sum | sha256sum
```

**Both organizations together**, an owner who invents people, servers that count wrongly: [the protocol page](protocol.md) has the whole list.

## The policy

Every file is served with this content security policy, and with no permission for cameras, microphones or positions:

```text
{policy}
```

No inline script, no other origin, no frame around the page, no text that is read as HTML.

## In a company's own page

`web/participate.js` does the same without the page: serve the folder `web` from your own site, so that you decide which program your users run, and ask the operator of S1 to
set `allowed_origins` to the origin of your site. Scripts of an allowed origin can take part; they cannot make an owner's calls, because no token is let through.

```html
<script type="module">
  import {{ participate, Unreachable }} from "/faircount/participate.js";

  const part = await participate("https://count.example.org/", code); // refuses other parameters than those of the code
  show(part.params.question, part.params.items, part.params.real.epsilon);
  const answer = await part.prepare(position); // drawn, neither kept nor sent: answer.share, answer.blob can be shown
  await part.send(answer); // after the person confirmed: kept on the device, then sent
  show(part.stage); // waiting, sent, refused; later, after part.visit(): counted, uncounted, ended
</script>
```

Say to people what the page would say: who asks, which two organizations count, what is promised and what is not covered. All of it is in `part.params`.

## The owner's dashboard

`faircount dashboard FOLDER --servers servers.json` does in a browser what `faircount survey` does in a terminal, with the same folders. It runs on the owner's own machine, because
invitations are made there and reach neither server. It listens on loopback, and the address that it prints has a key in it that is new at every start.

![A survey on the dashboard: the result with error bars, raw and consistent](images/dashboard.png)

- **A new survey**: beside the form stands the planner's advice for the values as they are typed, its error drawn as bars, and what the named people have left of their budget.
- **Invitations**: as a table (CSV), as pages to print with QR codes, or one of them on the screen; and a table of those who have not answered yet.
- **Progress**: the phases, how many have answered and how many must, what it waits for and why at S1 and at S2, which messages were refused there for which reason, and a
  warning when at the pace of now too few will have answered.
- **The result**: bars with error bars, raw and consistent, what was promised before and what holds, in numbers and in a sentence; files to keep (CSV, JSON, PNG, SVG: the guarantee is in each).
- **The budget** of these people: a step for each survey, up to the total.

It speaks English and German too, with the same means (`dashboard/web/strings.js`): what the program refuses has a code, and the page a sentence for it. Where a server, the planner or a
damaged file says more than that, its own words stand below in English, marked as such for whoever has them read aloud; so is the guarantee in downloaded files. Invitations are
printed in the language that the form, or `faircount survey create --language de`, names (`service/owner/printed_words.py`). The page's
policy is the same as that of the participant's page.

## For everybody

Both pages work with the keyboard alone and with a screen reader. `make test` reads them as one does: from Chromium's accessibility tree every control has a role, a name and a state,
headings follow each other, every chart is passed over because a table beside it has the same numbers, new views, progress and refusals are announced. Both were also
read with Orca 43 in Chromium, from the question to the result and from the form to the first answers. axe finds nothing in any view, in light and dark,
on a phone and on a desktop.

## Browsers

Chrome and Edge from 137, Firefox from 130, Safari from 17. `make test` runs everything in Chromium, `make firefox` the known answers and a survey in Firefox. The address must begin with `https:` (or be `localhost`): without it browsers have no cryptography. The
page says what is missing, and sends nothing.
"""


def render() -> str:
    return TEXT.format(hash=page_hash(), policy=POLICY.replace("; ", ";\n"))


if __name__ == "__main__":
    write("participant-page.md", render())

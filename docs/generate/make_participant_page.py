"""Writes docs/explanation/participant-page.md with the hash of the page as it is today. `--check`
fails if the page is out of date.
"""

from page import write

from faircount.server.common.page_files import page_hash
from faircount.server.common.participant_page import POLICY

TEXT = """# The participant's page

Most people meet a survey as a link. The coordinator (S1) serves the page under `/`. Its files are
in `src/faircount/web/`: plain ES modules on the browser's own cryptography (WebCrypto), with no
packages and no build step.

![The question, with what is promised](../images/question.png)

## What a participant sees

1. **Who asks**, why, which two organizations run the servers, how many are invited, and all
   questions on one page, a group of fields each. A question that depends on an earlier answer
   appears when it is given. What is missing is told at the question, and the focus moves there.
   "None of these" and "prefer not to say" are answers, so nothing is left out by accident. Where
   the survey offers hidden privacy levels, the choice of one follows the questions: what each
   means as a certainty, for the answer and for answer and level together. The strongest is
   preselected.
2. **What is promised**, as a sentence computed from epsilon and in numbers: one promise for all
   answers together, and how much of it a single answer can lose; what the page has checked; what is
   not covered.
3. **A confirmation**: every answer, the level, and what happens to them, in words, and on request the bytes of
   both shares that will leave the device. Nothing is sent before the participant has chosen and
   confirmed, so a mail scanner that opens the link, or submits the form, changes nothing. Beside
   the answers it says what the owner could do with a copy of the invitation.
4. **What became of it**: acknowledged with the coordinator's signature, counted with an inclusion
   proof, withdrawn, or how the survey ended; the result of every question with 95% intervals,
   with levels the table of everybody first; a receipt to save. A warning if another device has shown the invitation.

The page speaks English and German (`page/strings.js` and `page/level_strings.js` have every
sentence, `page/several_strings.js` those that are worded differently for several questions; a
further language is a further object in each) and uses logical sides in its layout, so that a right-to-left language needs no other style
sheet. Questions and answers are shown in the reader's language if the owner translated them.
Answers are positions, so nothing that leaves the device depends on the language.

## What the page checks

- The hash of the parameters must be the digest in the [invitation
  code](../reference/invitation-code.md). So the coordinator cannot show other parameters, other
  keys or another guarantee.
- The operators of both servers must have signed these parameters with the keys in them. The page
  shows the fingerprints of the keys, to be compared with those that the organizations publish: a
  name alone can be made up. If both servers have one name or one key, it warns.
- It reads the questions and groups of questions, and computes the bits, constraints and cells of a
  sheet from them. Every question must be in exactly one group, or it would get no noise.
- Where there are privacy levels it computes the coin of each, the chance of being counted a second
  time, and refuses others. It tosses the coin together with everything else that is drawn, once,
  and at every level sends as many bytes in as many requests. The device keeps neither the answer
  nor the level.
- For `laplace`, `server-laplace`, `server-joint` and `server-levels` it computes the noise tables with integers of
  any size and compares their digest; for every mechanism all derived numbers; where reports are
  proven, the field and degree of the proof, and that each server has committed to a value of its
  own. It refuses every set of parameters that the Python client refuses; a test compares both.
- Whether the guarantee follows from the parameters, to nine digits, with the minimum number of
  responses and with all: for `server-joint`, `server-levels`, `server-laplace`, `server-coins`, `placed-coins`,
  `laplace`, `decoys` and `dpds` in `servers`. A client cannot check that a server adds its noise or
  places coins as agreed; the page names the server that the guarantee relies on.
- The coordinator's signature on the acknowledgement, the aggregator's signature on the result,
  and the inclusion proof. What is not proven is not believed, and the page says so.

The page also makes the proof that the response is one sheet of answers ([how](validity.md)): in a
few milliseconds for 30 bits, and in less than a tenth of a second of CPU time for 400 in a browser
that is slowed down 6 times to imitate a phone ([measured](../../benchmarks/RESULTS.md)).

It refuses other mechanisms and recommends `faircount answer`. It also refuses topologies with
several visits, such as `masked`: there a client must come back to help others, and no page that may
be closed at any time, in browsers that delete storage after a week, can honestly promise that.

## What the device stores

One record per survey in IndexedDB, written with strict durability before anything is sent and
encrypted under a key that scripts cannot read out: the bytes that are sent, the key with which this
device can withdraw, the acknowledgement and the parameters. Neither the answers nor the token are
stored. A retry sends the same bytes, and a second tab finds what the first one drew. The page
retries while it is open and continues when it is opened again; it then also sends again what the
coordinator had acknowledged, because a restored coordinator may have lost it. "Forget" deletes the
record with its key: after that nobody can withdraw. Opening the page for the first time needs a
connection.

## What is not covered

**Other JavaScript from the coordinator.** Whoever serves a page decides what it does: the
coordinator could send one participant a page that reveals the answer, and the digest in the
invitation does not prevent that. Neither does a hash that the coordinator shows: one that sends
another page also sends the true hash. What helps is a program that does not come from the
coordinator: the installed one (`faircount answer`), a [page from another
origin](../how-to/embed-in-a-page.md#serve-the-whole-page), or a company that [serves the module
itself](../how-to/embed-in-a-page.md).

Whoever saves the files that a browser received can compare their hash, which is the same for
everybody, with the one on the invitation. Of the page that a coordinator serves it is:

```text
{hash}
```

Anybody can compute it from the files with common tools (`/page.json` has the hash of every file, to
find the one that differs):

```sh
cd src/faircount/web
find . -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.svg' | cut -c3- | LC_ALL=C sort | xargs sha256sum | sha256sum
```

**Both organizations colluding**, an owner who invents people, servers that count wrongly: the
[threat model](threat-model.md) has the whole list.

## The content security policy

Every file is served with this policy, and without permission for cameras, microphones or location:

```text
{policy}
```

No inline script, no other origin, no frame around the page, no text that is parsed as HTML.

## Accessibility

The page and the [dashboard](../how-to/use-the-dashboard.md) work with the keyboard alone and with a
screen reader. `make test` reads both through Chromium's accessibility tree: every control has a
role, a name and a state; headings are in order; every chart is skipped because a table beside it
has the same numbers; new views, progress and refusals are announced. Both were also read with Orca
43 in Chromium, from the question to the result and from the form to the first answers. axe finds
nothing in any view, in light and dark, on a phone and on a desktop.

## Browsers

Chrome and Edge from 137, Firefox from 130, Safari from 17. `make test` runs everything in Chromium,
`make firefox` the known answers and a survey in Firefox. The address must begin with `https:` (or
be `localhost`), because browsers provide no cryptography otherwise. The page says what is missing,
and sends nothing.
"""


def render() -> str:
    return TEXT.format(hash=page_hash(), policy=POLICY.replace("; ", ";\n"))


if __name__ == "__main__":
    write("explanation/participant-page.md", render())

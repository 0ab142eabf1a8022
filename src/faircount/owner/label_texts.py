"""The texts of the privacy label that participants read, in the languages of the pages."""

import math
from dataclasses import dataclass

from faircount.accounting.guarantee import format_delta
from faircount.owner.invitation_texts import ENGLISH, printed_words


@dataclass(frozen=True, kw_only=True)
class LabelWords:
    """One language; words in braces are filled in."""

    language: str
    title: str
    asked_by: str
    purpose: str
    contact: str
    unknown: str
    protection: str
    loss: str
    loss_text: str
    exception: str
    unit: str
    unit_text: str
    unit_text_several: str
    single: str
    single_text: str
    questions: str
    sees: str
    sees_text: str
    one_operator: str
    operator_keys: str
    insiders: str
    any_insiders: str
    condition: str
    published: str
    published_text: str
    published_text_several: str
    counted: str
    budget: str
    budget_text: str
    own_budget: str
    noise: str
    noise_text: str
    open_risks: str
    proofs: str
    proofs_several: str
    checked: str
    checked_text: str
    decimal: str
    group: str
    odds: str
    risks: dict[str, str]

    def chance(self, probability: float) -> str:
        """A small probability as people say it, rounded up."""
        # Above one half, "1 in 1" would read like certainty.
        if not SMALLEST_ODDS <= probability <= 0.5:
            return self.number(format_delta(probability))
        # Rounded down in the denominator, so that the chance never looks smaller than it is.
        return self.odds.format(number=f"{math.floor(1 / probability):,}".replace(",", self.group))

    def number(self, text: str) -> str:
        """A number as the language writes it."""
        # Only texts without separators between thousands come here.
        return text.replace(".", self.decimal)


SMALLEST_ODDS = 1e-12
"""Smaller probabilities are written in digits: nobody imagines one in a quadrillion."""

# What owners would rather leave out comes with every label, whatever they write.
RISKS = ("invitation", "participation", "group", "collusion", "device", "others", "review")
"""What no parameter of a survey protects from, in the order of the label."""

UNPROVEN = "unproven"

_ENGLISH = LabelWords(
    language=ENGLISH,
    title="Privacy label",
    asked_by="Asked by",
    purpose="Purpose",
    contact="Questions to",
    unknown="not stated",
    protection="How well is my answer protected?",
    loss="Privacy loss",
    loss_text="epsilon {epsilon}, delta {delta}",
    exception="This may fail with a probability of at most {delta} (delta).",
    unit="What is protected",
    unit_text="Your answer in this survey: epsilon limits how much the result can depend on it.",
    unit_text_several="All your answers in this survey together: epsilon limits how much the "
    "result can depend on them.",
    single="A single answer",
    single_text="at most epsilon {epsilon} (question {questions})",
    questions="What is asked?",
    sees="Who can read my answer?",
    sees_text="Nobody alone. Your answer is split into shares, and only the operators of both "
    "servers together could read it: {first} and {second}.",
    one_operator="One organization operates both servers, so it could read your answer: this is a "
    "trial.",
    operator_keys="Each server signed this survey with its operator's key. Names can be made up: "
    "compare these fingerprints with those that the organizations publish themselves.",
    insiders="So many participants may pool what they know without weakening this: {insiders}.",
    any_insiders="However many participants pool what they know, this does not get weaker.",
    condition="It holds provided that",
    published="What is published?",
    published_text="The estimated share of each of {items} answers, with noise, once at least "
    "{minimum} of at most {users} people have responded.",
    published_text_several="Estimates for each of {questions} questions, with noise, once at least "
    "{minimum} of at most {users} people have responded.",
    counted="It was published: {counted} responses were counted.",
    budget="Will I be asked again?",
    budget_text="All surveys of “{population}” together may lose epsilon {total}. Spent so far: "
    "{spent}, left: {left}. Surveys so far: {surveys}.",
    own_budget="This survey has a budget of its own, epsilon {total}. Spent so far: {spent}. Other "
    "surveys add to your privacy loss.",
    noise="Noise",
    noise_text="Mechanism {mechanism}, topology {topology}.",
    open_risks="What is not protected?",
    proofs="Every counted response is proven to be one vote.",
    proofs_several="Every counted response is proven to be one sheet of possible answers.",
    checked="Where do these numbers come from?",
    checked_text="faircount {version} computed them again from the published parameters when it "
    "wrote this page, for the fewest responses that are allowed. Digest of the parameters: "
    "{digest}",
    decimal=".",
    group=",",
    odds="1 in {number}",
    risks={
        "invitation": "Whoever has your invitation can answer in your place before you do. The "
        "owner, who made it, has it too.",
        "participation": "The owner and the coordinator can see whether your invitation was used.",
        "group": "What the result says about everybody may say something about you, even if you do "
        "not answer.",
        "collusion": "If the operators of both servers work together, they can read every answer.",
        "device": "Whoever controls your device can see your answer. The page comes from the "
        "coordinator, whose operator could serve another one.",
        "others": "What you tell others about your answer, and other surveys about the same thing.",
        "review": "There has been no independent security review of the software yet.",
        UNPROVEN: "Dishonest participants can change the result by any amount: responses are not "
        "proven to be one vote.",
    },
)

_GERMAN = LabelWords(
    language="de",
    title="Datenschutz-Steckbrief",
    asked_by="Es fragt",
    purpose="Zweck",
    contact="Fragen an",
    unknown="nicht angegeben",
    protection="Wie gut ist meine Antwort geschützt?",
    loss="Verlust an Privatheit",
    loss_text="Epsilon {epsilon}, Delta {delta}",
    exception="Mit einer Wahrscheinlichkeit von höchstens {delta} (Delta) gilt das nicht.",
    unit="Was geschützt ist",
    unit_text="Ihre Antwort in dieser Umfrage: Epsilon begrenzt, wie stark das Ergebnis von ihr "
    "abhängen kann.",
    unit_text_several="Alle Ihre Antworten in dieser Umfrage zusammen: Epsilon begrenzt, wie stark "
    "das Ergebnis von ihnen abhängen kann.",
    single="Eine einzelne Antwort",
    single_text="höchstens Epsilon {epsilon} (Frage {questions})",
    questions="Was wird gefragt?",
    sees="Wer kann meine Antwort lesen?",
    sees_text="Niemand allein. Ihre Antwort wird in Anteile geteilt, und nur die Betreiber beider "
    "Server zusammen könnten sie lesen: {first} und {second}.",
    one_operator="Beide Server betreibt dieselbe Organisation, die Ihre Antwort also lesen könnte: "
    "Dies ist ein Probelauf.",
    operator_keys="Jeder Server hat diese Umfrage mit dem Schlüssel seines Betreibers "
    "unterschrieben. Namen kann man erfinden: Vergleichen Sie diese Fingerabdrücke mit denen, die "
    "die Organisationen selbst veröffentlichen.",
    insiders="So viele Teilnehmende dürfen dabei zusammentragen, was sie wissen: {insiders}.",
    any_insiders="Wie viele Teilnehmende auch zusammentragen, was sie wissen: Das schwächt den "
    "Schutz nicht.",
    condition="Das gilt unter einer Bedingung:",
    published="Was wird veröffentlicht?",
    published_text="Der geschätzte Anteil jeder von {items} Antworten, mit Rauschen, sobald "
    "mindestens {minimum} von höchstens {users} Personen geantwortet haben.",
    published_text_several="Schätzungen zu jeder von {questions} Fragen, mit Rauschen, sobald "
    "mindestens {minimum} von höchstens {users} Personen geantwortet haben.",
    counted="Das Ergebnis ist veröffentlicht: {counted} Antworten wurden gezählt.",
    budget="Werde ich noch einmal gefragt?",
    budget_text="Alle Umfragen unter „{population}“ zusammen dürfen Epsilon {total} kosten. "
    "Verbraucht sind {spent}, übrig sind {left}. Umfragen bisher: {surveys}.",
    own_budget="Diese Umfrage hat ein eigenes Budget, Epsilon {total}. Verbraucht sind {spent}. "
    "Andere Umfragen kommen hinzu.",
    noise="Rauschen",
    noise_text="Mechanismus {mechanism}, Topologie {topology}.",
    open_risks="Was ist nicht geschützt?",
    proofs="Für jede gezählte Antwort ist bewiesen, dass sie eine Stimme ist.",
    proofs_several="Für jede gezählte Antwort ist bewiesen, dass sie ein Bogen mit möglichen "
    "Antworten ist.",
    checked="Woher kommen diese Zahlen?",
    checked_text="faircount {version} hat sie aus den veröffentlichten Parametern neu berechnet, "
    "als es diese Seite schrieb, und zwar für die kleinste erlaubte Zahl von Antworten. Prüfsumme "
    "der Parameter: {digest}",
    decimal=",",
    group=".",
    odds="1 zu {number}",
    risks={
        "invitation": "Wer Ihre Einladung hat, kann an Ihrer Stelle antworten, bevor Sie es tun. "
        "Auch wer fragt, hat sie, denn dort wurde sie gemacht.",
        "participation": "Wer fragt und wer den Koordinator betreibt, kann sehen, ob Ihre "
        "Einladung benutzt wurde.",
        "group": "Was das Ergebnis über alle sagt, kann auch etwas über Sie sagen, selbst wenn Sie "
        "nicht antworten.",
        "collusion": "Arbeiten die Betreiber beider Server zusammen, können sie jede Antwort "
        "lesen.",
        "device": "Wer Ihr Gerät beherrscht, sieht Ihre Antwort. Die Seite kommt vom Koordinator, "
        "dessen Betreiber eine andere ausliefern könnte.",
        "others": "Was Sie anderen über Ihre Antwort sagen, und andere Umfragen über dasselbe.",
        "review": "Die Software wurde noch nicht unabhängig auf Sicherheit geprüft.",
        UNPROVEN: "Unehrliche Teilnehmende können das Ergebnis beliebig verändern: Es ist nicht "
        "bewiesen, dass jede Antwort eine Stimme ist.",
    },
)

_LANGUAGES = {ENGLISH: _ENGLISH, "de": _GERMAN}


def label_words(language: str) -> LabelWords:
    """The texts in the language with this code."""
    # Through the languages of invitations, so that an unknown one has the same message everywhere.
    return _LANGUAGES[printed_words(language).language]

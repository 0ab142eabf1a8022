"""The questionnaire of the demonstration: five questions of different kinds, in two languages."""

from typing import Any

from faircount.core.questions.form import Form, make_form

# In the form of a questionnaire file, so that whoever reads this can copy them into one.
_QUESTIONS: list[dict[str, Any]] = [
    {
        "kind": "one",
        "text": "Which site do you work at?",
        "items": ["North", "South", "East"],
        "skip": True,
        "translation": {
            "de": {
                "text": "An welchem Standort arbeiten Sie?",
                "items": ["Nord", "Süd", "Ost"],
            }
        },
    },
    {
        "kind": "yes",
        "text": "Would you recommend us?",
        "translation": {"de": {"text": "Würden Sie uns weiterempfehlen?", "items": ["nein", "ja"]}},
    },
    {
        "kind": "scale",
        "text": "How satisfied are you?",
        "items": ["not at all", "a little", "fairly", "very", "completely"],
        "open": "mean",
        "translation": {
            "de": {
                "text": "Wie zufrieden sind Sie?",
                "items": ["gar nicht", "ein wenig", "einigermaßen", "sehr", "völlig"],
            }
        },
    },
    {
        "kind": "most",
        "text": "What should we do first?",
        "items": ["canteen", "bicycles", "daycare", "quiet rooms"],
        "most": 2,
        "translation": {
            "de": {
                "text": "Was sollen wir zuerst angehen?",
                "items": ["Kantine", "Fahrräder", "Kinderbetreuung", "Ruheräume"],
            }
        },
    },
    {
        "kind": "number",
        "text": "How many years have you been here?",
        "low": 0,
        "high": 40,
        "translation": {"de": {"text": "Seit wie vielen Jahren sind Sie hier?"}},
    },
]


def working_here() -> Form:
    """The questions of a made-up company to its staff."""
    titles = {"de": {"title": "Arbeiten hier"}}
    return make_form(_QUESTIONS, "Working here", language="en", titles=titles)

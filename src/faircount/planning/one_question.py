"""Why most mechanisms, and one topology, count the answers to one question only."""

JOINT = "server-joint"
SHEETS = "laplace-sheets"
"""The mechanisms that count whole questionnaires."""

_ONE_AT_A_TIME = f"it draws noise for one question, where {JOINT} draws it for all at once"
_LOCAL = (
    "everybody randomizes one answer, and with several of them each would get a part of epsilon "
    "and an error that grows accordingly"
)
_SETS = (
    "the coordinator sees which answers a person may have given to every question, and the sets "
    "of several questions together would single people out"
)

REASONS = {
    "laplace": f"it draws noise for one question; {SHEETS} draws the same for several",
    "decoys": "participants flip coins for the answers to one question; the coins of several are "
    "not accounted for",
    "dpdg": "its noise is made for the counts of one question",
    "dpds": "one coin decides whether a person is counted. The same coin for all questions "
    "protects less than one for each, since an answer that gives somebody's coin away gives it "
    "away for all questions; and so many other people would have to be known to give every answer "
    "to every question, which nobody knows",
    "dpcs": "a trusted server counts one question, and would need so many other people who are "
    "known to give every answer",
    "tss": _SETS,
    "tss-prime": _SETS,
    "placed-coins": "everybody would have to prove the coins of all answers of all questions",
    "server-laplace": _ONE_AT_A_TIME,
    "server-coins": _ONE_AT_A_TIME,
    "grr": _LOCAL,
    "oue": _LOCAL,
    "duchi": _LOCAL,
    "pm": _LOCAL,
}
"""Mechanism -> why it does not count sheets."""

OTHER_REASON = "it counts the answers to one question"

TOPOLOGY_REASONS = {"two-stage": _SETS}
"""The same for topologies."""

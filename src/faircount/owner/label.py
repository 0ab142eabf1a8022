"""The privacy label: what a survey promises, for programs (JSON, YAML) and for participants.

Every number is computed again from the parameters, the signed result and the charges of the ledger
before it is written, and a label is refused if one of them does not hold. The fields follow what
the public registry of differential-privacy deployments shows and what NIST SP 800-226 asks, as far
as parameters and ledger know it.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import faircount
from faircount.accounting.conditions import ONE_OPERATOR
from faircount.accounting.guarantee import (
    AdversaryCode,
    Guarantee,
)
from faircount.core.errors import RefusedError, RemoteError
from faircount.core.questions import Questionnaire
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.published import to_plain
from faircount.estimation.result import add_conditions
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.sheets import SheetMechanism
from faircount.owner.budget import NO_POPULATION
from faircount.owner.invitation_texts import printed_words
from faircount.owner.label_page import ANY_NUMBER, label_page
from faircount.owner.label_texts import RISKS, UNPROVEN, label_words
from faircount.owner.survey import Survey
from faircount.protocol import Ledger, SurveyParameters
from faircount.protocol.survey.budget import Charge, Status
from faircount.protocol.survey.operators import (
    format_fingerprint,
    has_one_operator,
    operator_of,
)
from faircount.protocol.survey.remaining_privacy import keeps_promise
from faircount.protocol.wire.canonical_json import parse_real
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Published

# Line ends and characters that JSON may hold as they are and YAML may not.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

ROUNDING = 1e-9
"""Numbers that were computed twice differ by less than this share because of floating point."""


@dataclass(frozen=True)
class PrivacyLabel:
    """What a survey promises. `content` holds plain values, `survey` is what they were made of."""

    survey: Survey
    content: dict[str, Any]

    def to_json(self) -> bytes:
        """As JSON."""
        return json.dumps(self.content, indent=2, ensure_ascii=False).encode() + b"\n"

    def to_yaml(self) -> bytes:
        """As YAML."""
        return ("\n".join(_yaml_lines(self.content)) + "\n").encode()

    def to_html(self, language: str | None = None) -> bytes:
        """As a page for participants, by default in the language of the invitations."""
        chosen = printed_words(language or self.survey.owner.language).language
        weakest = _stated_guarantees(self.survey.params)[0]
        return label_page(self.content, weakest.condition, chosen)


def make_label(survey: Survey) -> PrivacyLabel:
    """Compute the label of a survey; refused if a promise does not hold."""
    params = survey.params
    mechanism = params.mechanism
    # The parameters were parsed by computing all derived values again; this computes the promise.
    # check: label-promise - a label must not repeat a promise that the mechanism does not keep
    if not keeps_promise(mechanism, params.minimum, params.epsilon, params.delta):
        raise RefusedError(
            f"the promised epsilon {params.epsilon:.4g} does not hold with {params.minimum:,} "
            "responses: this survey gets no label"
        ).with_code("label_refused")
    # For the fewest responses that are allowed, as the promise is.
    guarantees = _stated_guarantees(params)
    released = _release(survey)
    content = {
        "version": 1,
        "kind": "faircount privacy label",
        "software": {"name": "faircount", "version": faircount.__version__},
        "survey": {
            "id": params.survey.hex(),
            "parameters_digest": params.digest.hex(),
            "question": params.questionnaire.text,
            **_list_items(params.questionnaire),
            **to_plain(params.questionnaire),
            "owner": params.owner,
            "purpose": params.purpose,
            "contact": params.contact,
            "most_participants": params.n_max,
            "fewest_responses": params.minimum,
        },
        "unit_of_privacy": {
            "unit": "one participant's response in this survey",
            "contribution": _describe_contribution(params.questionnaire),
            "neighbours": str(params.relation),
            "neighbours_in_words": _describe_neighbours(params.questionnaire),
        },
        "promise": {"epsilon": params.epsilon, "delta": params.delta},
        "single_answer": _single_answers(params),
        **_levels(params, guarantees[0]),
        "computed": {
            "responses": params.minimum,
            "accounting": "exact, for the fewest responses that are allowed",
            "guarantees": [{**found.to_dict(), "codes": found.codes} for found in guarantees],
        },
        "budget": _budget(survey),
        "model": _model(survey, guarantees),
        "mechanisms": [{"name": mechanism.name, "proven_reports": params.proven}],
        "release": released,
        "not_protected": _risks(survey, "en"),
    }
    content["registry"] = _registry(survey, content)
    content["nist_sp_800_226"] = _evaluation(survey, content)
    return PrivacyLabel(survey, content)


def _list_items(questionnaire: Questionnaire) -> dict[str, list[str]]:
    """The answers to choose from, where there is one question of which one is chosen."""
    first, *others = questionnaire.questions
    if others or not isinstance(first, ChoiceQuestion):
        return {}
    return {"items": list(first.answers)}


def _describe_contribution(questionnaire: Questionnaire) -> str:
    if len(questionnaire) == 1:
        return "one response per participant"
    return f"one sheet per participant, with answers to all {len(questionnaire)} questions"


def _describe_neighbours(questionnaire: Questionnaire) -> str:
    changed = "one participant gave another answer"
    if len(questionnaire) > 1:
        changed = "one participant gave other answers to all questions"
    return f"{changed}; who is invited and who responds is not hidden"


def _single_answers(params: SurveyParameters) -> list[dict[str, Any]]:
    """What a single answer loses at most: the share of epsilon of its group of questions."""
    mechanism = params.mechanism
    if len(params.questionnaire) == 1 or not isinstance(mechanism, SheetMechanism):
        numbers = [number + 1 for number in range(len(params.questionnaire))]
        return [{"questions": numbers, "epsilon": params.epsilon}]
    return [
        {
            "questions": [number + 1 for number in group.questions],
            "epsilon": max(map(mechanism.answer_epsilon, group.questions)),
        }
        for group in mechanism.groups
    ]


def _levels(params: SurveyParameters, weakest: Guarantee) -> dict[str, Any]:
    """What is guaranteed at every hidden level; nothing where there are none."""
    if not isinstance(params.mechanism, ServerLevels):
        return {}
    return {"levels": [found.to_dict() for found in params.mechanism.levels.guarantees(weakest)]}


def _stated_guarantees(params: SurveyParameters) -> tuple[Guarantee, ...]:
    """What is promised for the fewest responses, with what it says if one operator runs both."""
    stated = params.mechanism.stated_guarantees(params.minimum)
    if not has_one_operator(params):
        return stated
    return tuple(add_conditions(guarantee, (ONE_OPERATOR,)) for guarantee in stated)


def _risks(survey: Survey, language: str) -> list[str]:
    words = label_words(language)
    names = RISKS if survey.params.proven else (UNPROVEN, *RISKS)
    return [words.risks[name] for name in names]


def _release(survey: Survey) -> dict[str, Any]:
    """What is published, and what was, with its guarantee computed again."""
    what = "estimated frequency of every item"
    if "items" not in _list_items(survey.params.questionnaire):
        what = "estimated shares and means of every question"
    release: dict[str, Any] = {
        "what": f"{what}, with noise and confidence intervals",
        "releases": 1,
        "published": False,
    }
    # Without a question to the servers: a label can be made after they have erased the survey.
    if survey.folder.statement_file.exists():
        result = survey.result()
        _check_signed_guarantee(result)
        record = result.record
        release |= {
            "published": True,
            "ended": None if record is None else record.ended,
            "counted": result.included,
            "guarantee": result.guarantee.to_dict(),
        }
    return release


def _check_signed_guarantee(result: QuestionnaireResult) -> None:
    """Refuse a result whose signed guarantee is stronger than the one that it has."""
    published = result.facts["published"]
    if not isinstance(published, Published):
        return
    signed_epsilon = parse_real(published.realized_epsilon.decode())
    signed_delta = parse_real(published.realized_delta.decode())
    computed = result.guarantee
    # check: label-result - the aggregator could sign a better guarantee than the result has
    if (
        computed.epsilon > signed_epsilon * (1 + ROUNDING)
        or computed.delta > signed_delta * (1 + ROUNDING) + 1e-300
    ):
        raise RefusedError(
            f"the aggregator signed epsilon {signed_epsilon:.4g} for this result, and computing it "
            f"again gives {computed.epsilon:.4g}: ask both operators"
        ).with_code("label_refused")


def _budget(survey: Survey) -> dict[str, Any]:
    """The budget of the population, with what is spent computed again from the charges."""
    params = survey.params
    is_own = params.population == f"survey {params.survey.hex()}"
    try:
        reported = survey.servers.budget(params.population)
    except RemoteError as problem:
        # Before anybody is invited the aggregator does not know the population.
        if problem.values.get("cause") != NO_POPULATION:
            raise
        epsilon, delta = survey.owner.budget
        reported = {"epsilon": epsilon, "delta": delta, "adaptive": True, "surveys": []}
    charges = []
    for charge in reported["surveys"]:
        status = Status(charge["status"])
        survey_id = bytes.fromhex(charge["survey"])
        charges.append(Charge(survey_id, charge["epsilon"], charge["delta"], status))
    # Composed here as the aggregator composes it, from the charges that it tells.
    ledger = Ledger(
        params.population,
        reported["epsilon"],
        reported["delta"],
        reported["adaptive"],
        tuple(charges),
    )
    spent_epsilon, spent_delta = ledger.spent
    claimed = reported.get("spent", {"epsilon": 0.0})["epsilon"]
    # check: label-budget - an aggregator could tell that less is spent than its charges add up to
    if spent_epsilon > claimed * (1 + ROUNDING) + ROUNDING:
        raise RefusedError(
            f"the aggregator says that epsilon {claimed:.4g} is spent, and its charges add up to "
            f"{spent_epsilon:.4g}: ask its operator"
        ).with_code("label_refused")
    # What was reserved and never used is given back; all else stays spent, results or not.
    counting = [charge for charge in charges if charge.status is not Status.CANCELLED]
    return {
        "population": None if is_own else params.population,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "spent": {"epsilon": spent_epsilon, "delta": spent_delta},
        "left": {
            "epsilon": max(0.0, ledger.epsilon - spent_epsilon),
            "delta": max(0.0, ledger.delta - spent_delta),
        },
        "surveys": len(counting),
        "composition": "sum" if ledger.adaptive else "exact composition",
    }


def _model(survey: Survey, guarantees: tuple[Guarantee, ...]) -> dict[str, Any]:
    params = survey.params
    is_alone = has_one_operator(params)
    name = "distributed, with two non-colluding servers"
    must_not_collude = "the operators of both servers"
    # One operator needs nobody to collude with, so nothing is left that could be relied on.
    if is_alone:
        name = "distributed in form only: one operator runs both servers (a trial)"
        must_not_collude = "both servers, which one operator runs"
    return {
        "name": name,
        "topology": str(params.topology),
        "servers": [
            _describe_server("coordinator", params, Party.COORDINATOR),
            _describe_server("aggregator", params, Party.AGGREGATOR),
        ],
        "one_operator": is_alone,
        "must_not_collude": must_not_collude,
        "colluding_participants_covered": _participants_covered(params, guarantees[0]),
        "adversaries": [str(guarantee.adversary) for guarantee in guarantees],
    }


def _participants_covered(params: SurveyParameters, weakest: Guarantee) -> int | str:
    """How many participants may collude: noise of the servers protects against any number."""
    protects_against_all = weakest.adversary.code in (
        AdversaryCode.S1_AND_PARTICIPANTS,
        AdversaryCode.S2_AND_PARTICIPANTS,
    )
    return ANY_NUMBER if protects_against_all else params.phi


def _describe_server(name: str, params: SurveyParameters, role: Party) -> dict[str, str]:
    operator, key = operator_of(params, role)
    return {"role": name, "operator": operator, "fingerprint": format_fingerprint(key)}


def _registry(survey: Survey, content: dict[str, Any]) -> dict[str, Any]:
    """The columns of the registry of deployments."""
    params = survey.params
    ended = content["release"].get("ended")
    return {
        "product": params.questionnaire.text,
        "by": params.owner,
        "description": content["release"]["what"],
        "year": int(ended[:4]) if ended else None,
        "flavor": "Pure DP" if params.delta == 0 else "Approximate DP",
        "privacy_loss": {
            "unit": "User-level, one response",
            "epsilon": params.epsilon,
            "delta": params.delta,
        },
        "model": content["model"]["name"],
        "accounting": content["computed"]["accounting"],
        "implementation": f"faircount {faircount.__version__}, {params.mechanism.name}",
    }


def _evaluation(survey: Survey, content: dict[str, Any]) -> dict[str, Any]:
    """What NIST SP 800-226 asks about a guarantee; null where parameters and ledger do not know."""
    model = content["model"]
    return {
        "privacy_parameters": content["promise"],
        "unit_of_privacy": content["unit_of_privacy"]["unit"],
        "neighbouring_data_sets": content["unit_of_privacy"]["neighbours"],
        "algorithm": survey.params.mechanism.name,
        "correctness": "exact accounting from integer noise tables; no independent review yet",
        "composition": content["budget"]["composition"],
        "threat_model": f"{model['name']}; {model['must_not_collude']} must not collude",
        "data_collection_exposure": "each server holds shares that reveal nothing alone, under a "
        "key that it destroys when the survey is over",
        "bias_and_utility": "estimates are unbiased; results state confidence intervals",
        # Left open instead of guessed: only the operators know, and a label must not speak for
        # them.
        "access_control": None,
        "secure_operation_of_the_servers": None,
    }


def _yaml_lines(value: Any, indent: str = "") -> list[str]:
    """Plain values as lines of YAML: blocks of mappings and lists, texts in double quotes."""
    lines = []
    pairs = value.items() if isinstance(value, dict) else ((None, entry) for entry in value)
    for key, entry in pairs:
        # Keys are our own words, which need no quotes; texts of the owner are values and have them.
        start = f"{indent}-" if key is None else f"{indent}{key}:"
        if isinstance(entry, dict | list) and entry:
            lines.append(start)
            lines += _yaml_lines(entry, f"{indent}  ")
        else:
            lines.append(f"{start} {_yaml_scalar(entry)}")
    return lines


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 takes a number in exponential form without a point for a text.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    # Texts, integers, booleans, null and empty lists of JSON are YAML too, except for characters
    # that YAML takes for line ends or cannot read.
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

"""A reservation of the budget as S2's receipt, and a receipt as proof of a reservation."""

from faircount.core.errors import ProtocolError
from faircount.protocol.survey.budget import Charge, Ledger, Shown
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.canonical_json import scaled_up, unscaled
from faircount.protocol.wire.messages import Receipt


def charge_of(params: SurveyParameters) -> Charge:
    """What a survey reserves: its promise."""
    return Charge(params.survey, params.epsilon, params.delta)


def receipt_for(ledger: Ledger, survey: bytes, claim_hash: bytes, revealed: bytes) -> Receipt:
    """The receipt of a survey that is charged; where reports are proven it reveals S2's value."""
    charge = ledger.find(survey)
    if charge is None:
        raise ProtocolError("a survey gets its receipt when it is charged: reserve first")
    amounts = scaled_up(charge.epsilon).encode(), scaled_up(charge.delta).encode()
    head = ledger.head(charge.receipt)
    return Receipt(
        survey, claim_hash, *amounts, ledger.population.encode(), charge.receipt, ledger.version, head, revealed
    )


def shown_by(receipt: Receipt) -> Shown:
    """What a receipt of S2's own shows of the ledger."""
    charge = Charge(receipt.survey, _amount(receipt.epsilon), _amount(receipt.delta))
    return Shown(charge, receipt.number, receipt.ledger_version, receipt.head)


def _amount(text: bytes) -> float:
    return unscaled(text.decode())

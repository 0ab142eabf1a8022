"""How a survey ended: the aggregator's final statement, verified, decoded and kept."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from faircount.core.errors import FaircountError, RefusedError
from faircount.core.files import read_file, write_durably
from faircount.estimation.record import SurveyRecord
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.owner.exports import export_result
from faircount.owner.folder import PUBLIC, SurveyFolder
from faircount.owner.remote import verify_final_statement
from faircount.protocol import SurveyParameters
from faircount.protocol.survey.operators import has_one_operator
from faircount.protocol.survey.release import decode_release
from faircount.protocol.wire.messages import Aborted, Published


@dataclass(frozen=True)
class FinalStatements:
    """The final statement of one survey.

    folder: where it is kept
    params: whose keys it must be signed with
    language: of the result
    """

    folder: SurveyFolder
    params: SurveyParameters
    language: str

    def keep(
        self, data: bytes, status: dict[str, Any], places: Sequence[int]
    ) -> QuestionnaireResult | Aborted:
        """Verify a statement and write it into the folder.

        status: what the coordinator says about the survey
        places: of the counted participants in the roster, where they add unequal noise
        """
        record = {
            "version": 1,
            "opened_at": status["opened_at"],
            "ended_at": status["since"],
            "invited": status["invited"],
            "places": list(places),
        }
        ending = self._interpret(data, record)
        # The servers may delete the survey one day: the owner's folder keeps what was published.
        # The statement comes last, because a folder with it is complete.
        write_durably(self.folder.record_file, json.dumps(record).encode() + b"\n", PUBLIC)
        if isinstance(ending, QuestionnaireResult):
            write_durably(self.folder.result_file, export_result(ending, "json"), PUBLIC)
        write_durably(self.folder.statement_file, data, PUBLIC)
        return ending

    def read_kept(self) -> QuestionnaireResult | Aborted | None:
        """How the survey ended, from the folder; None if it does not know yet."""
        if not self.folder.statement_file.exists():
            return None
        hint = "read the result again, with faircount survey result"
        data = read_file(self.folder.statement_file, hint)
        try:
            record = json.loads(read_file(self.folder.record_file, hint))
            return self._interpret(data, record)
        except (ValueError, KeyError, TypeError):
            message = "record.json is damaged: restore it from a copy"
            raise FaircountError(message).with_code("file_damaged", file="record.json") from None

    def _interpret(self, data: bytes, record: dict[str, Any]) -> QuestionnaireResult | Aborted:
        """Verify a final statement and decode it."""
        ending = verify_final_statement(self.params, data).message
        if isinstance(ending, Aborted):
            return ending
        if not isinstance(ending, Published):
            raise RefusedError(
                "The coordinator shows a message that is not the final statement of the "
                "aggregator: ask both operators"
            ).with_code("unsigned_result")
        result = decode_release(self.params, ending, record["places"])
        about = SurveyRecord(
            survey=self.params.survey.hex(),
            name=self.folder.path.resolve().name,
            question=self.params.questionnaire.text,
            owner=self.params.owner,
            opened=record["opened_at"],
            ended=record["ended_at"],
            invited=record["invited"],
            # Signed by the aggregator: what the coordinator reports would also count people who
            # have withdrawn.
            responded=ending.included + ending.rejected,
            counted=ending.included,
            language=self.language,
            s1_operator=self.params.s1_operator,
            s2_operator=self.params.s2_operator,
            one_operator=has_one_operator(self.params),
            questions=len(self.params.questionnaire),
        )
        return replace(result, facts={**result.facts, "record": about})

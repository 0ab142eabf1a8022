"""Which key signs the aggregator's statements about a survey: known beside every backup.

Every survey has a signing key of its own. After a restore the aggregator is shown reservations of
surveys that its database may have forgotten, and must tell its own signatures from anybody's. So it
writes down, in the folder of keys, whose backups are none of the database's, which key it uses in
which survey, for which owner and from which budget. Nothing of that is secret, and it stays after
the survey is erased.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from faircount.core.errors import StorageError
from faircount.core.files import write_durably
from faircount.protocol import Ledger, SurveyParameters
from faircount.server.common.tokens import Caller
from faircount.storage.database import Transaction
from faircount.storage.keys import KeyFolder


@dataclass(frozen=True, slots=True)
class Signer:
    """The public key of the aggregator in one survey, and the owner who created the survey."""

    key: bytes
    owner: bytes


@dataclass(frozen=True, slots=True)
class SurveyRecord:
    """What the folder of keys knows about a survey: who signs, and the budget that it charges."""

    signer: Signer
    epsilon: float
    delta: float
    adaptive: bool

    def is_of(self, owner: Caller, ledger: Ledger) -> bool:
        """Whether this is the owner, and this the total budget, of the survey's population."""
        budget = (ledger.epsilon, ledger.delta, ledger.adaptive)
        return self.signer.owner == owner.id and budget == (self.epsilon, self.delta, self.adaptive)


def record_survey(keys: KeyFolder, params: SurveyParameters, owner: Caller, ledger: Ledger) -> None:
    """Write down which key signs the statements about a survey, before it signs any."""
    signer = Signer(params.keys.aggregator, owner.id)
    record = SurveyRecord(signer, ledger.epsilon, ledger.delta, ledger.adaptive)
    # One small file per survey, which is only ever added: no crash can spoil those of others.
    write_durably(_file(keys, params.population, params.survey), msgspec.json.encode(record))


async def find_signer(
    tx: Transaction, keys: KeyFolder, population: str, survey: bytes
) -> Signer | None:
    """Return who signs the statements about a survey; None if this aggregator does not know."""
    # The database first: the folder of keys may be a newer one, if that was lost.
    row = await tx.fetch_one("SELECT id, owner FROM survey_keys WHERE used_by = ?", survey)
    if row is not None:
        return Signer(bytes(row["id"]), bytes(row["owner"]))
    record = _read(_file(keys, population, survey))
    return None if record is None else record.signer


def find_record(keys: KeyFolder, population: str) -> SurveyRecord | None:
    """Return the record of a survey of this population, if the aggregator has ever had one.

    All surveys of a population name the same owner and budget, which never change.
    """
    for path in keys.path.glob(f"{_prefix(population)}*.signer"):
        return _read(path)
    return None


def _read(path: Path) -> SurveyRecord | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SurveyRecord)
    # Missing means never used here; a damaged one means that nobody knows, and stops everything:
    # "never" would give the budget out again.
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        raise StorageError("a record of a signing key in the key folder is damaged") from None


def _prefix(population: str) -> str:
    # The name of a population may have characters that no file name may have.
    return f"signer-{sha256(population.encode()).hexdigest()[:32]}-"


def _file(keys: KeyFolder, population: str, survey: bytes) -> Path:
    return keys.path / f"{_prefix(population)}{survey.hex()}.signer"

"""Which key signs the aggregator's statements about a survey: known beside every backup.

Every survey has a signing key of its own. After a restore the aggregator is shown reservations of
surveys that its database may have forgotten, and must tell its own signatures from anybody's. So it
writes down, in the folder of keys, whose backups are none of the database's, which key it uses in
which survey, for which population and owner. Nothing of that is secret, and it stays after the
survey is erased.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from faircount.core.errors import StorageError
from faircount.core.files import write_durably
from faircount.protocol import SurveyParameters
from faircount.server.common.tokens import Caller
from faircount.storage.database import Transaction
from faircount.storage.keys import KeyFolder


@dataclass(frozen=True, slots=True)
class Signer:
    """The public key of the aggregator in one survey, and the owner who created the survey."""

    key: bytes
    owner: bytes


def record_signer(keys: KeyFolder, params: SurveyParameters, owner: Caller) -> None:
    """Write down which key signs the statements about a survey, before it signs any."""
    signer = Signer(params.keys.aggregator, owner.id)
    write_durably(_file(keys, params.population, params.survey), msgspec.json.encode(signer))


async def find_signer(
    tx: Transaction, keys: KeyFolder, population: str, survey: bytes
) -> Signer | None:
    """Return who signs the statements about a survey; None if this aggregator does not know."""
    row = await tx.fetch_one("SELECT id, owner FROM survey_keys WHERE used_by = ?", survey)
    if row is not None:
        return Signer(bytes(row["id"]), bytes(row["owner"]))
    try:
        return msgspec.json.decode(_file(keys, population, survey).read_bytes(), type=Signer)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        raise StorageError("a record of a signing key in the key folder is damaged") from None


def has_signed_for(keys: KeyFolder, population: str) -> bool:
    """Whether this aggregator has ever had a survey of this population."""
    return any(keys.path.glob(f"{_prefix(population)}*.signer"))


def _prefix(population: str) -> str:
    # The name of a population may have characters that no file name may have.
    return f"signer-{sha256(population.encode()).hexdigest()[:32]}-"


def _file(keys: KeyFolder, population: str, survey: bytes) -> Path:
    return keys.path / f"{_prefix(population)}{survey.hex()}.signer"

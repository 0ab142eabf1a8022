"""faircount: frequencies of a few hundred users without seeing one answer.

    import faircount as fc
    result = fc.run(answers, fc.Laplace(items=cities, epsilon=1.0))
    result.estimates, result.interval(0.95), result.guarantee

Names are loaded when first used, so that importing the package and asking for help stay instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from faircount.mechanisms.registry import FREQUENCY, MEAN

if TYPE_CHECKING:
    from faircount.accounting.guarantee import Guarantee as Guarantee
    from faircount.analysis.histogram import histogram as histogram
    from faircount.analysis.ledger_file import LedgerFile as LedgerFile
    from faircount.analysis.questionnaire import questionnaire as questionnaire
    from faircount.analysis.run import run as run
    from faircount.auditing.runs import audit as audit
    from faircount.client.participation import connect as connect
    from faircount.core.entropy import SeededStream as SeededStream
    from faircount.core.errors import FaircountError as FaircountError
    from faircount.estimation.result import Result as Result
    from faircount.mechanisms.decoys import Decoys as Decoys
    from faircount.mechanisms.gaussian import DPDG as DPDG
    from faircount.mechanisms.laplace import Laplace as Laplace
    from faircount.mechanisms.local_frequency import GRR as GRR
    from faircount.mechanisms.local_frequency import OUE as OUE
    from faircount.mechanisms.local_mean import PM as PM
    from faircount.mechanisms.local_mean import Duchi as Duchi
    from faircount.mechanisms.placed_coins import PlacedCoins as PlacedCoins
    from faircount.mechanisms.registry import register as register
    from faircount.mechanisms.sampling import DPCS as DPCS
    from faircount.mechanisms.sampling import DPDS as DPDS
    from faircount.mechanisms.server_joint import ServerJoint as ServerJoint
    from faircount.mechanisms.server_noise import ServerCoins as ServerCoins
    from faircount.mechanisms.server_noise import ServerLaplace as ServerLaplace
    from faircount.mechanisms.two_stage import TSS as TSS
    from faircount.mechanisms.two_stage import TSSPrime as TSSPrime
    from faircount.owner.combining import combine_surveys as combine_surveys
    from faircount.owner.groups import GroupedSurvey as GroupedSurvey
    from faircount.owner.survey import Survey as Survey
    from faircount.owner.survey import survey as survey
    from faircount.planning.compose import compose as compose
    from faircount.planning.plan import plan as plan
    from faircount.planning.privacy_report import privacy as privacy

__version__ = "0.2.0.dev0"

_LAZY_MODULES = {
    **{kind: f"mechanisms.{module}" for module, kind in (*FREQUENCY.values(), *MEAN.values())},
    "FaircountError": "core.errors",
    "GroupedSurvey": "owner.groups",
    "combine_surveys": "owner.combining",
    "Guarantee": "accounting.guarantee",
    "LedgerFile": "analysis.ledger_file",
    "Result": "estimation.result",
    "SeededStream": "core.entropy",
    "Survey": "owner.survey",
    "audit": "auditing.runs",
    "histogram": "analysis.histogram",
    "plan": "planning.plan",
    "privacy": "planning.privacy_report",
    "compose": "planning.compose",
    "connect": "client.participation",
    "questionnaire": "analysis.questionnaire",
    "register": "mechanisms.registry",
    "run": "analysis.run",
    "survey": "owner.survey",
}

__all__ = [*sorted(_LAZY_MODULES)]


def __getattr__(name: str) -> object:
    if name in _LAZY_MODULES:
        return getattr(import_module(f"faircount.{_LAZY_MODULES[name]}"), name)
    raise AttributeError(f"faircount has no public name {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

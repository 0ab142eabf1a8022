"""Both servers in memory behind HTTP's own types, so that clients are tested without sockets."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest

from faircount.client.calls import RemoteServer, RetryPolicy
from faircount.client.invitation_codes import Code
from faircount.core.entropy import SystemEntropy
from faircount.core.questions import OneOf, Questionnaire
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import SurveyParameters, coordinator_step, decode, encode, end_phase
from faircount.protocol.simulator import SurveySetup, exchange_messages, set_up
from faircount.protocol.survey.operators import Operator
from faircount.protocol.survey.parameters import questionnaire_of
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.survey.topology import Topology
from faircount.protocol.topologies import SERVERS
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Rejection

ADDRESS = "https://count.example.org"
WITHOUT_PAUSES = RetryPolicy(attempts=4, sleep=lambda seconds: None)


@dataclass
class InMemory:
    """Both servers of one survey.

    `before` may answer instead of the coordinator; `after` may change or lose its answer.
    """

    setup: SurveySetup
    messages: list[bytes] = field(default_factory=list)
    before: Callable[[httpx.Request], httpx.Response | None] = lambda request: None
    after: Callable[[httpx.Response], httpx.Response] = lambda response: response

    def __post_init__(self) -> None:
        self.s1 = self.setup.s1
        self.s2 = self.setup.s2

    @property
    def params(self) -> SurveyParameters:
        return self.setup.params

    @property
    def codes(self) -> list[Code]:
        return [Code(self.params.survey, invitation) for invitation in self.setup.invitations]

    def _signatures(self) -> dict[str, str]:
        """The parameters, signed by the operators of both servers."""
        first = Operator("", self.setup.s1.state.key)
        second = Operator("", self.setup.s2.state.key)
        return {
            "s1": first.sign(self.params, Party.COORDINATOR).hex(),
            "s2": second.sign(self.params, Party.AGGREGATOR).hex(),
        }

    def http(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self._handle))

    def server(self) -> RemoteServer:
        name = "the survey's server"
        return RemoteServer(ADDRESS, name=name, retry=WITHOUT_PAUSES, http=self.http())

    def end_phase(self) -> None:
        self.s1, out = self.s1.make_step(end_phase)
        self.s1, self.s2 = exchange_messages(self.s1, self.s2, out)

    @property
    def is_over(self) -> bool:
        return self.s1.phase in FINAL

    def _handle(self, request: httpx.Request) -> httpx.Response:
        return self.before(request) or self.after(self._answer(request))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        survey_path = f"/v1/surveys/{self.params.survey.hex()}"
        if request.url.path == f"{survey_path}/params":
            return httpx.Response(200, content=self.params.published)
        if request.url.path == f"{survey_path}/operators":
            return httpx.Response(200, json=self._signatures())
        if request.url.path != f"{survey_path}/messages":
            return httpx.Response(404, json={"title": "no such survey"})
        self.messages.append(request.content)
        self.s1, (answer, *_) = self.s1.make_step(coordinator_step, decode(request.content))
        if isinstance(answer, Rejection):
            problem = {"detail": answer.detail.decode(), "reason": answer.reason}
            return httpx.Response(409, content=json.dumps(problem).encode())
        return httpx.Response(200, content=encode(answer))


def one_of(users: int) -> Questionnaire:
    """One question, with as many items as there are users."""
    items = tuple(str(user) for user in range(users))
    return Questionnaire((OneOf(text="Which city?", items=items),))


def joint_noise(questions: Questionnaire, users: int, epsilon: float) -> ServerSheets:
    """The mechanism of a survey with these questions, all in one group."""
    groups = split_epsilon(epsilon, [range(len(questions))])
    return ServerSheets(questionnaire=questions, groups=groups, epsilon=epsilon, users=users)


MakeServers = Callable[..., InMemory]


@pytest.fixture
def in_memory() -> MakeServers:
    """Makes the servers of a survey that is open."""

    def make(
        users: int = 6, topology: Topology = SERVERS, questions: Questionnaire | None = None
    ) -> InMemory:
        mechanism, terms = topology.example(users, 0)
        epsilon = 1.0
        if topology is SERVERS:
            # Noise of 0, as in the trials of the other topologies.
            epsilon = 40.0
            mechanism = joint_noise(questions or one_of(users), users, epsilon)
        defaults = {
            "epsilon": epsilon,
            "delta": 1.0,
            "minimum": min(3, users),
            "questionnaire": questionnaire_of(mechanism, "Which city?"),
        }
        return InMemory(set_up(mechanism, topology, SystemEntropy(), **{**defaults, **terms}))

    return make

"""The network client saves its state before it sends, and continues with the same bytes."""

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from faircount.client.participation import Participation, connect
from faircount.client.participation_status import Stage
from faircount.core.errors import (
    AnswerError,
    FaircountError,
    RefusedError,
    RemoteError,
    UnreachableError,
)
from faircount.protocol import SERVERS, Topology, decode, known_topologies
from faircount.protocol.simulator import result_of
from faircount.protocol.survey.acknowledgement import verify_acknowledgement
from faircount.protocol.wire.messages import Acknowledgement

ADDRESS = "https://count.example.org"


def connect_all(servers: Any, folder: Path) -> list[Participation]:
    """The participations of everybody who is invited."""
    connection = servers.server()
    participations = []
    for number, code in enumerate(servers.codes):
        path = folder / f"{number}.device"
        participations.append(connect(code.link(ADDRESS), state=path, connection=connection))
    return participations


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_survey_of_every_topology_from_link_to_result(
    in_memory: Any, tmp_path: Path, topology: Topology
) -> None:
    servers = in_memory(6, topology)
    participations = connect_all(servers, tmp_path)
    for number, participation in enumerate(participations):
        assert participation.status().stage is Stage.NOT_ANSWERED
        assert participation.answer(participation.items[number]).stage is Stage.SENT
    while not servers.is_over:
        servers.end_phase()
        for participation in participations:
            participation.visit()
    sheets: list[Any] = []
    for participation in participations:
        assert participation.status().stage is Stage.COUNTED
        client = participation._load_client()
        sheets += participation._client.counted_as(client).values()
    published = result_of(servers.s1).facts["published"]
    assert list(published.counts) == [sheets.count((position,)) for position in range(6)]


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_second_device_is_refused_and_the_first_one_is_told(
    in_memory: Any, tmp_path: Path, topology: Topology
) -> None:
    servers = in_memory(6, topology)
    first = connect_all(servers, tmp_path)[0]
    first.answer(first.items[0])
    link = servers.codes[0].link(ADDRESS)
    other = connect(link, state=tmp_path / "other.device", connection=servers.server())
    used = "somebody else has answered with your invitation"
    for refused in (other.answer(other.items[1]), other.withdraw(), other.visit()):
        assert (refused.stage, used in refused.description) == (Stage.REFUSED, True)
    told = first.visit()
    assert (told.stage, told.notices) == (Stage.SENT, ("other device",))
    assert "Another device has tried to use your invitation" in told.description
    # It is kept in the state file, and the answer can still be withdrawn.
    assert first.status().to_dict()["notices"] == ["other device"]
    assert first.withdraw().stage is Stage.WITHDRAWN


def test_a_killed_client_continues_with_the_same_bytes(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()

    def lose(response: httpx.Response) -> httpx.Response:
        raise httpx.ReadError("connection reset")

    servers.after = lose
    participation = connect_all(servers, tmp_path)[0]
    # As if fetched before: only the answer to the report is lost.
    participation.__dict__["parameters"] = servers.params
    with pytest.raises(
        UnreachableError, match=r"cannot be reached .connection reset.: nothing is lost, try again"
    ):
        participation.answer(participation.items[2])
    assert participation.status().stage is Stage.WAITING
    servers.after = lambda response: response
    again = connect_all(servers, tmp_path)[0]
    assert again.answer(again.items[2]).stage is Stage.SENT
    assert len(servers.messages) >= 5
    assert len(set(servers.messages[:5])) == 1


def test_the_state_is_saved_before_anything_is_sent(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    participation = connect_all(servers, tmp_path)[0]
    path = participation.file.path
    checked = []

    def check_file(request: httpx.Request) -> None:
        if request.method == "POST":
            # Nobody else may read the answer.
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            checked.append(request)

    servers.before = check_file
    participation.answer(participation.items[0])
    assert checked
    assert not path.with_name(path.name + ".new").exists()


def test_a_busy_server_is_called_again(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    left = [503, 429, 507]
    servers.before = lambda request: httpx.Response(left.pop()) if left else None
    participation = connect_all(servers, tmp_path)[0]
    assert participation.answer(participation.items[0]).stage is Stage.SENT
    left += [503] * 4
    with pytest.raises(UnreachableError, match=r"is not ready \(it answers 503\)"):
        participation.visit()


def test_an_answer_can_be_repeated_but_not_changed(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    participation = connect_all(servers, tmp_path)[0]
    participation.answer(participation.items[0])
    assert participation.answer(str(participation.items[0])).stage is Stage.SENT
    with pytest.raises(
        AnswerError, match="already used for another answer, which cannot be changed"
    ):
        participation.answer(participation.items[1])
    with pytest.raises(AnswerError, match="one of the 6 items") as refused:
        participation.answer("nowhere")
    # The items are public, and what was typed may be an answer.
    assert ", ".join(map(str, participation.items)) in str(refused.value)
    assert "nowhere" not in str(refused.value)


def test_parameters_of_another_survey_are_refused(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    other = in_memory()

    def show_others(request: httpx.Request) -> httpx.Response | None:
        if request.url.path.endswith("params"):
            return httpx.Response(200, content=other.params.published)
        return None

    servers.before = show_others
    with pytest.raises(RefusedError, match="other parameters than those of your invitation"):
        connect_all(servers, tmp_path)[0].answer(0)


def test_withdrawing_in_time_and_too_late(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory(20)
    participations = connect_all(servers, tmp_path)
    for number, participation in enumerate(participations):
        participation.answer(participation.items[number])
    assert participations[0].withdraw().stage is Stage.WITHDRAWN
    assert participations[0].withdraw().stage is Stage.WITHDRAWN
    with pytest.raises(AnswerError, match="you withdrew the answer"):
        participations[0].answer(participations[0].items[1])
    assert participations[0].answer(participations[0].items[0]).stage is Stage.WITHDRAWN
    servers.end_phase()
    late = participations[1].withdraw()
    assert late.stage is Stage.COUNTED or "too late" in late.description
    assert participations[1].visit().stage is Stage.COUNTED
    assert list(result_of(servers.s1).facts["published"].counts) == [0] + [1] * 19


def test_a_late_answer_is_refused_or_not_counted(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory(20)
    participations = connect_all(servers, tmp_path)
    for number, participation in enumerate(participations[1:]):
        participation.answer(participation.items[number])
    servers.end_phase()
    late = participations[0].answer(participations[0].items[0])
    assert late.stage in (Stage.REFUSED, Stage.NOT_COUNTED)


def test_a_survey_without_enough_answers_has_no_result(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory(20)
    participation = connect_all(servers, tmp_path)[0]
    participation.answer(participation.items[0])
    servers.end_phase()
    ended = participation.stay(sleep=lambda seconds: None)
    assert ended.stage is Stage.NO_RESULT
    assert "1 participants responded, 3 are needed" in ended.description


def test_state_files_of_others_and_damaged_ones_are_refused(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    first, second = connect_all(servers, tmp_path)[:2]
    first.answer(first.items[0])
    second.file.path.write_bytes(first.file.path.read_bytes())
    with pytest.raises(RefusedError, match="belongs to another invitation"):
        second.answer(second.items[0])
    data = first.file.path.read_bytes()
    first.file.path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FaircountError, match="changed or damaged"):
        first.visit()
    first.file.path.write_bytes(b"hello")
    with pytest.raises(FaircountError, match="is not a state file of faircount"):
        first.visit()


def test_two_programs_cannot_use_one_state_file_at_once(in_memory: Any, tmp_path: Path) -> None:
    participation = connect_all(in_memory(), tmp_path)[0]
    with participation.file.lock(), pytest.raises(RefusedError, match="another program works with"):
        participation.answer(participation.items[0])


def test_a_receipt_can_be_checked_by_others(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    participation = connect_all(servers, tmp_path)[0]
    participation.answer(participation.items[0])
    (written,) = participation.receipt()["written"]
    signed = decode(bytes.fromhex(written["acknowledgement"]))
    assert isinstance(signed, Acknowledgement)
    assert verify_acknowledgement(servers.params, signed, decode(servers.messages[0]))


def test_a_server_that_does_not_know_the_survey(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    link = in_memory().codes[0].link(ADDRESS)
    participation = connect(link, state=tmp_path / "x", connection=servers.server())
    with pytest.raises(RemoteError, match="the survey's server refuses: no such survey"):
        participation.answer(0)


def test_no_server_at_the_address(tmp_path: Path, in_memory: Any) -> None:
    servers = in_memory()

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused")

    servers.before = refuse
    with pytest.raises(
        UnreachableError, match=rf"at {ADDRESS} cannot be reached .connection refused."
    ):
        connect_all(servers, tmp_path)[0].answer(0)


def test_repr_shows_neither_answer_nor_token(in_memory: Any, tmp_path: Path) -> None:
    participation = connect_all(in_memory(), tmp_path)[0]
    participation.answer(participation.items[3])
    assert participation.code.invitation.token.hex() not in repr(participation)
    assert SERVERS is participation.parameters.topology

"""The network client: everything is on the disk before it is sent, and goes on with the same bytes whatever happens."""

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from faircount.core.errors import AnswerError, FaircountError, RefusedError, RemoteError, UnreachableError
from faircount.protocol import SERVERS, Topology, known_topologies
from faircount.protocol.play import result_of
from faircount.service.client import Participation, connect
from faircount.service.standing import Stage

ADDRESS = "https://count.example.org"


def parts_of(servers: Any, folder: Path) -> list[Participation]:
    connection = servers.server()
    return [
        connect(code.link(ADDRESS), state=folder / f"{number}.device", connection=connection)
        for number, code in enumerate(servers.codes)
    ]


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_survey_of_every_topology_from_link_to_result(in_memory: Any, tmp_path: Path, topology: Topology) -> None:
    servers = in_memory(6, topology)
    parts = parts_of(servers, tmp_path)
    for number, part in enumerate(parts):
        assert part.standing().stage is Stage.NOT_ANSWERED
        assert part.answer(part.items[number]).stage is Stage.SENT
    while not servers.over:
        servers.end_phase()
        for part in parts:
            part.visit()
    assert [part.standing().stage for part in parts] == [Stage.COUNTED] * len(parts)
    items = [each for part in parts for each in part._client.counted_as(part._begun()).values()]
    assert list(result_of(servers.s1).facts["published"].counts) == [items.count(each) for each in range(6)]


def test_a_killed_device_goes_on_with_the_same_bytes(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()

    def lost(response: httpx.Response) -> httpx.Response:
        raise httpx.ReadError("connection reset")

    servers.after = lost
    part = parts_of(servers, tmp_path)[0]
    part.__dict__["parameters"] = servers.params
    with pytest.raises(UnreachableError, match=r"cannot be reached .connection reset.: nothing is lost, try again"):
        part.answer(part.items[2])
    assert part.standing().stage is Stage.WAITING
    servers.after = lambda response: response
    again = parts_of(servers, tmp_path)[0]
    assert again.answer(again.items[2]).stage is Stage.SENT
    assert len(servers.bodies) >= 5
    assert len(set(servers.bodies[:5])) == 1


def test_the_device_is_on_the_disk_before_anything_is_sent(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    part = parts_of(servers, tmp_path)[0]
    path, seen = part.file.path, list[bool]()

    def look(request: httpx.Request) -> None:
        if request.method == "POST":
            seen.append(path.exists())
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    servers.before = look
    part.answer(part.items[0])
    assert seen
    assert all(seen)
    assert not path.with_name(path.name + ".new").exists()


def test_a_server_that_is_busy_is_asked_again(in_memory: Any, tmp_path: Path) -> None:
    servers, left = in_memory(), [503, 429, 507]
    servers.before = lambda request: httpx.Response(left.pop()) if left else None
    part = parts_of(servers, tmp_path)[0]
    assert part.answer(part.items[0]).stage is Stage.SENT
    left += [503] * 4
    with pytest.raises(UnreachableError, match=r"is not ready \(it answers 503\)"):
        part.visit()


def test_an_answer_is_not_changed_but_given_again(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    part = parts_of(servers, tmp_path)[0]
    part.answer(part.items[0])
    assert part.answer(str(part.items[0])).stage is Stage.SENT
    with pytest.raises(AnswerError, match="the first answer stands"):
        part.answer(part.items[1])
    with pytest.raises(AnswerError, match="one of the 6 items"):
        part.answer("nowhere")


def test_other_parameters_than_invited_to_are_refused(in_memory: Any, tmp_path: Path) -> None:
    servers, other = in_memory(), in_memory()
    servers.before = lambda request: (
        httpx.Response(200, content=other.params.published) if request.url.path.endswith("params") else None
    )
    with pytest.raises(RefusedError, match="other parameters than those of your invitation"):
        parts_of(servers, tmp_path)[0].answer(0)


def test_withdrawing_in_time_and_too_late(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory(20)
    parts = parts_of(servers, tmp_path)
    for number, part in enumerate(parts):
        part.answer(part.items[number])
    assert parts[0].withdraw().stage is Stage.WITHDRAWN
    assert parts[0].withdraw().stage is Stage.WITHDRAWN
    servers.end_phase()
    late = parts[1].withdraw()
    assert late.stage is Stage.COUNTED or "too late" in late.words
    assert parts[1].visit().stage is Stage.COUNTED
    assert list(result_of(servers.s1).facts["published"].counts) == [0] + [1] * 19


def test_a_late_answer_is_told_in_words(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory(20)
    parts = parts_of(servers, tmp_path)
    for number, part in enumerate(parts[1:]):
        part.answer(part.items[number])
    servers.end_phase()
    late = parts[0].answer(parts[0].items[0])
    assert late.stage in (Stage.REFUSED, Stage.NOT_COUNTED)


def test_a_survey_without_enough_answers_has_no_result(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory(20)
    part = parts_of(servers, tmp_path)[0]
    part.answer(part.items[0])
    servers.end_phase()
    ended = part.stay(sleep=lambda seconds: None)
    assert ended.stage is Stage.NO_RESULT
    assert "1 users answered" in ended.words


def test_files_of_others_and_damaged_ones_are_refused(in_memory: Any, tmp_path: Path) -> None:
    servers = in_memory()
    first, second = parts_of(servers, tmp_path)[:2]
    first.answer(first.items[0])
    second.file.path.write_bytes(first.file.path.read_bytes())
    with pytest.raises(RefusedError, match="belongs to another invitation"):
        second.answer(second.items[0])
    data = first.file.path.read_bytes()
    first.file.path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FaircountError, match="changed or damaged"):
        first.visit()
    first.file.path.write_bytes(b"hello")
    with pytest.raises(FaircountError, match="is no file of an answer"):
        first.visit()


def test_two_programs_do_not_use_one_device_at_once(in_memory: Any, tmp_path: Path) -> None:
    part = parts_of(in_memory(), tmp_path)[0]
    with part.file.alone(), pytest.raises(RefusedError, match="another program works with"):
        part.answer(part.items[0])


def test_a_receipt_can_be_checked_by_others(in_memory: Any, tmp_path: Path) -> None:
    from faircount.protocol import decode
    from faircount.protocol.survey.acknowledgement import acknowledges

    servers = in_memory()
    part = parts_of(servers, tmp_path)[0]
    part.answer(part.items[0])
    (written,) = part.receipt()["written"]
    signed = decode(bytes.fromhex(written["acknowledgement"]))
    assert acknowledges(servers.params, signed, decode(servers.bodies[0]))  # type: ignore[arg-type]  # it is Accepted


def test_no_survey_of_that_name(in_memory: Any, tmp_path: Path) -> None:
    servers, other = in_memory(), in_memory()
    part = connect(other.codes[0].link(ADDRESS), state=tmp_path / "x", connection=servers.server())
    with pytest.raises(RemoteError, match="the survey's server refuses: no such survey"):
        part.answer(0)


def test_nobody_at_the_address(tmp_path: Path, in_memory: Any) -> None:
    servers = in_memory()

    def refused(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused")

    servers.before = refused
    with pytest.raises(UnreachableError, match=rf"at {ADDRESS} cannot be reached .connection refused."):
        parts_of(servers, tmp_path)[0].answer(0)


def test_the_answer_does_not_print(in_memory: Any, tmp_path: Path) -> None:
    part = parts_of(in_memory(), tmp_path)[0]
    part.answer(part.items[3])
    assert part.code.invitation.token.hex() not in repr(part)
    assert SERVERS is part.parameters.topology

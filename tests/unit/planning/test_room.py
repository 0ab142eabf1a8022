"""What room for missing users costs a survey between devices, as `plan` states it."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import faircount as fc
from faircount.cli import main
from faircount.planning.room import usual_dropout
from faircount.protocol.survey.parameters import room_for_absent

ASKED = (800, 20, 1.0, 1e-6)


def test_the_cost_is_the_difference_of_two_plans() -> None:
    made, wide = fc.plan(*ASKED), fc.plan(*ASKED, dropout=0.05)
    name = made.recommended.name
    other = next(each for each in wide.options if each.name == name)
    room = made.room
    assert (room.users, room.missing) == (800, 40)
    assert (room.standard_error, room.half_width_95) == (other.standard_error, other.half_width_95)
    assert room.standard_error_without == made.recommended.standard_error
    assert room.half_width_95_without == made.recommended.half_width_95 < room.half_width_95


def test_room_that_was_asked_for_is_compared_with_none() -> None:
    room = fc.plan(*ASKED, dropout=0.25).room
    assert room.missing == 200
    assert room.standard_error_without == fc.plan(*ASKED).recommended.standard_error < room.standard_error


def test_text_and_json_say_it() -> None:
    options = ["plan", "--users", "800", "--items", "20", "--epsilon", "1"]
    shown = " ".join(CliRunner().invoke(main, options).stdout.split())
    assert "Room: between devices, room for 40 of 800 users to be missing: the 95% error is ±" in shown
    said = json.loads(CliRunner().invoke(main, [*options, "--json"]).stdout)["room"]
    assert said == fc.plan(*ASKED).room.to_dict()
    assert said["standard_error"] > said["standard_error_without"] > 0
    assert said["liars"] == {"servers": 40, "masked": 9, "explicit": 8, "two-stage": 1}
    assert "Lying clients who cannot stop it: servers 40, masked 9, explicit 8, two-stage 1" in shown
    assert "lying clients who cannot stop it: servers 40, masked 9" in str(fc.plan(*ASKED))


def test_there_is_no_room_where_no_shares_travel_or_nobody_may_be_missing() -> None:
    reports, few = fc.plan(100, 2, 20.0, colluding=0.98), fc.plan(2, 2, 5.0, liars=True)
    assert (reports.recommended.topology, reports.room) == (None, None)
    assert (few.recommended.topology, few.room) == ("servers", None)
    assert replace(few, options=()).room is None


def test_room_that_leaves_nobody_to_hide_among_meets_no_budget() -> None:
    room = fc.plan(20, 2, 8.0, 1e-2, colluding=0.95, liars=True).room
    assert (room.missing, room.standard_error) == (1, None)
    assert "room for 1 of 20 users to be missing: the budget is not met; without room the 95% error" in room.words


@pytest.mark.parametrize("users", [3, 20, 21, 299, 801, 12_345])
def test_the_share_names_the_same_number_of_users(users: int) -> None:
    assert fc.plan(users, 2, 8.0, dropout=usual_dropout(users)).question.lost == room_for_absent(users)

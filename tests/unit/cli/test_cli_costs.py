"""`faircount costs`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from faircount.cli.show import WIDTH

Call = Callable[..., Any]


def test_the_table_as_text_and_as_json(call: Call) -> None:
    shown = call("costs --users 12 --items 5 --runs 2").stdout
    assert "2nN+N" in shown
    assert "TSS (Algorithm 3)" in shown
    assert max(map(len, shown.splitlines())) <= WIDTH
    values = json.loads(call("costs --users 12 --items 5 --runs 2 --gamma 3 --json").stdout)
    assert values["gamma"] == 3.0
    counted = {row["cost"]: row["counted"] for row in values["protocols"]["dpds"]}
    assert counted["user: field elements sent"] == 60


def test_the_same_seed_gives_the_same_table(call: Call) -> None:
    first = call("costs --users 12 --items 5 --runs 2").stdout
    assert call("costs --users 12 --items 5 --runs 2").stdout == first


@pytest.mark.parametrize(("items", "alpha"), [(2, 1 / 2), (3, 1 / 3), (10, 0.4), (12, 5 / 12)])
def test_the_default_alpha_fits_any_number_of_items(call: Call, items: int, alpha: float) -> None:
    values = json.loads(call(f"costs --users 12 --items {items} --runs 1 --json").stdout)
    assert values["alpha"] == pytest.approx(alpha)


def test_wrong_use(call: Call) -> None:
    assert "whole number of items" in call("costs --items 7 --alpha 0.4").stderr
    assert "items must be at least 2" in call("costs --items 1").stderr
    assert call("costs --users 100000").exit_code == 2

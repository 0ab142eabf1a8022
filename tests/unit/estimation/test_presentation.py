"""Results are values, and show themselves in text, JSON, pandas, notebooks and figures."""

import datetime
import json
import pickle
import sys
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import faircount as fc
from faircount.analysis.groups import GroupedHistogram
from faircount.core.errors import FaircountError
from faircount.estimation.presentation import (
    OUTSIDE_MARK,
    OUTSIDE_NOTE,
    SIMULATION,
    Frequencies,
    is_outside,
)
from faircount.estimation.result import Result

matplotlib.use("Agg")
CITIES = ["Aldmoor", "Brackwater", "Carrow", "Dunholm", "<b>Eastmere</b>"]
TABLE = {"city": CITIES * 40, "level": ["open", "strict"] * 100}


def plain() -> Result:
    return fc.run(TABLE["city"], fc.Laplace(items=CITIES, epsilon=1.0), entropy=fc.SeededStream(1))


def histogram() -> Any:
    return fc.histogram(TABLE, "city", epsilon=1.0, domain=CITIES, entropy=fc.SeededStream(1))


def grouped() -> Any:
    levels = {"open": 2.0, "strict": 1.0}
    given = {
        "epsilon": levels,
        "domain": CITIES,
        "groups": "level",
        "public_groups": True,
        "entropy": fc.SeededStream(1),
    }
    return fc.histogram(TABLE, "city", **given)  # type: ignore[arg-type] # one dictionary for all of them


KINDS = pytest.mark.parametrize("make", [plain, histogram, grouped])


@KINDS
def test_equal_contents_are_equal_and_have_one_hash(make: Any) -> None:
    one, two = make(), make()
    assert one == two
    assert one != 1
    assert hash(one) == hash(two)
    assert len({one, two}) == 1
    assert one == pickle.loads(pickle.dumps(one))  # noqa: S301 - just written here
    assert one.interval() == two.interval()
    assert hash(one.interval()) == hash(two.interval())
    assert one.interval() != one.interval(0.9)


def test_other_contents_differ() -> None:
    one = plain()
    changed = one.aggregate.copy()
    changed[0] += 1
    assert one != replace(one, aggregate=changed)
    assert one != replace(one, facts={})
    assert one != histogram()
    assert grouped() != replace(grouped(), weights=np.array([0.4, 0.6]))


@KINDS
def test_arrays_cannot_be_changed(make: Any) -> None:
    made = make()
    arrays = [
        made.estimates,
        made.consistent,
        made.standard_errors,
        made.interval().low,
        made.interval().high,
    ]
    arrays.append(made.weights if isinstance(made, GroupedHistogram) else made.aggregate)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_the_callers_array_is_neither_kept_nor_locked() -> None:
    sums = np.array([60, 40])
    made = Result(fc.Laplace(items=2, users=100, epsilon=1.0), sums, 100)
    sums[0] = 0
    assert made.aggregate.tolist() == [60, 40]


LABELS = [
    [np.int64(1), np.int64(2)],
    [np.float32(0.5), np.float64(1.5)],
    [True, False],
    [np.True_, np.False_],
    [Decimal("1.10"), Decimal("2")],
    [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
    [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")],
    [np.datetime64("2024-01-01"), np.datetime64("2024-01-02")],
    [b"a", b"b"],
    [("a", 1), ("b", 2)],
    [float("inf"), 1.0],
    [np.str_("a"), None],
]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_every_kind_of_label_becomes_json(labels: list[Any]) -> None:
    made = Result(fc.Laplace(items=labels, users=40, epsilon=1.0), np.array([20, 20]), 40)
    said = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert len({str(row["item"]) for row in said["estimates"]}) == 2
    assert [type(row["item"]) for row in said["estimates"]] == [
        type(row["item"]) for row in made.to_dict()["estimates"]
    ]


def test_labels_out_of_an_array_can_be_surveyed() -> None:
    made = fc.run(np.array([3, 5] * 50), fc.Laplace(items=np.array([3, 5, 7]), epsilon=1.0))
    assert made.items == (3, 5, 7)
    assert made.topology == "servers"


def test_numbers_stay_numbers_in_json() -> None:
    labels = [np.int64(2), np.float64(2.5), np.True_]
    made = Result(fc.Laplace(items=labels, users=9, epsilon=1.0), np.array([3, 3, 3]), 9)
    assert [row["item"] for row in made.to_dict()["estimates"]] == [2, 2.5, True]


@KINDS
def test_json_carries_its_version_and_the_requested_budget(make: Any) -> None:
    said = make().to_dict()
    assert said["version"] == 1
    assert said["users"] == said["n"] == 200
    assert said["requested"]["epsilon"] == (2.0 if make is grouped else 1.0)
    assert said["requested"]["delta"] == (None if make is plain else 1e-6)


@KINDS
def test_a_frame_has_the_same_numbers(make: Any) -> None:
    made = make()
    frame = made.to_frame(0.9, covers="population")
    bounds = made.interval(0.9, covers="population")
    assert frame.index.tolist() == CITIES
    assert frame.index.name == "item"
    assert list(frame.columns) == ["estimate", "low", "high", "standard_error", "consistent", "raw"]
    assert frame["estimate"].tolist() == made.estimates.tolist()
    assert frame["low"].tolist() == bounds.low.tolist()
    assert frame.attrs["guarantee"] == made.guarantee.to_dict()
    assert frame.attrs["simulation"] is True


def test_without_pandas_a_frame_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(FaircountError, match="install pandas"):
        plain().to_frame()


class Page(HTMLParser):
    """Counts what a page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@KINDS
def test_a_notebook_shows_a_table_with_bars_and_the_guarantee(make: Any) -> None:
    made = make()
    page = Page(made._repr_html_())
    # Groups have a second table: the estimate that assumes that they answer alike.
    tables = 2 if make is grouped else 1
    assert page.tags.count("tr") == tables * (1 + len(CITIES))
    assert page.tags.count("div") == len(CITIES)
    assert page.text.startswith(SIMULATION)
    assert str(made.guarantee) in page.text
    assert "<b>Eastmere</b>" in page.text, "a label is text, whatever it looks like"
    assert all(note in page.text for note in made.notes)


@KINDS
def test_the_short_form_names_estimates(make: Any) -> None:
    words = repr(make())
    assert "SIMULATION" in words
    assert "200 users" in words
    assert f"Aldmoor {make().estimates[0]:.1%}" in words
    assert words.endswith(", 1 more>")
    assert len(words) < 250


@KINDS
def test_it_draws_itself(make: Any) -> None:
    from matplotlib import pyplot

    made = make()
    axes = made.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == CITIES
    assert [bar.get_width() for bar in axes.patches] == np.maximum(made.estimates, 0).tolist()
    assert made.plot(ax=axes) is axes
    pyplot.close("all")


def negative() -> Frequencies:
    """One estimate below zero, with an interval that is a single point, and one far inside."""
    return Result(
        fc.Laplace(items=["none", "all"], users=1000, epsilon=1.0), np.array([-40, 1040]), 1000
    )


def test_an_estimate_outside_its_interval_is_marked_and_explained() -> None:
    made = negative()
    assert is_outside(made, made.interval()).all()
    assert OUTSIDE_NOTE in str(made)
    assert str(made).count(f"] {OUTSIDE_MARK}") == 2
    assert OUTSIDE_NOTE in Page(made._repr_html_()).text
    whole = Result(fc.Laplace(items=2, users=1000, epsilon=1.0), np.array([400, 600]), 1000)
    assert OUTSIDE_MARK not in str(whole)


def test_means_are_values_too() -> None:
    values = np.linspace(-1, 1, 200)
    one, two = (fc.run(values, fc.PM(epsilon=1.0), entropy=fc.SeededStream(2)) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert f"{one.estimate:.4f}" in repr(one)
    said = json.loads(json.dumps(one.to_dict()))
    assert said["mean"] == {
        "estimate": one.estimate,
        "low": one.interval()[0],
        "high": one.interval()[1],
    }
    assert one.to_frame().loc["mean", "estimate"] == one.estimate
    assert SIMULATION in one._repr_html_()


def test_a_mean_draws_itself_with_its_interval() -> None:
    import matplotlib

    matplotlib.use("Agg")
    made = fc.run([0.5] * 40, fc.Duchi(epsilon=1.0), entropy=fc.SeededStream(1))
    axes = made.plot()
    (line,) = axes.collections
    np.testing.assert_allclose(line.get_segments()[0][:, 0], made.interval())
    assert axes.lines[0].get_xdata()[0] == made.estimate
    assert "SIMULATION" in axes.get_title(loc="left")
    assert made.plot(ax=axes) is axes

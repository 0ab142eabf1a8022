"""What `reproduce` writes: CSV files, pictures, and a page that needs nothing but itself."""

import re
import sys
from html.parser import HTMLParser

import pytest
from paper_lines import lines_at_theory, read_csv

from faircount.core.errors import ContradictionError, ParameterError
from faircount.reproduction.report import page, reproduce, tables
from faircount.reproduction.report.exact_figures import CURVE_PICTURES
from faircount.reproduction.report.figure_style import format_short, picture_style
from faircount.reproduction.report.figures import PICTURES
from faircount.reproduction.report.sections import CURVE_TITLES
from faircount.reproduction.report.sentences import (
    CURVE_FINDINGS,
    describe_equal_privacy,
    describe_local,
)
from faircount.reproduction.studies import exact_curves, squared_errors
from faircount.reproduction.studies.judging import AGREES, RUNS, Verdict
from faircount.reproduction.studies.registry import STUDIES, measure, plan_load
from faircount.reproduction.studies.study import COUNT_LEVEL, USER_LEVEL, Expected, Line


class Outline(HTMLParser):
    """Checks that tags are closed in order, and collects what readers and screen readers get."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.sources = []
        self.headings = []
        self.alternatives = []

    def handle_starttag(self, tag, attrs):
        # These have no end tag.
        if tag not in {"meta", "img"}:
            self.open.append(tag)
        values = dict(attrs)
        self.sources += [values[name] for name in ("src", "href") if name in values]
        if tag == "img":
            self.alternatives.append(values.get("alt"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in {"h1", "h2", "h3"}:
            self.headings.append(data)


def read_report(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def outline_of(text):
    outline = Outline()
    outline.feed(text)
    assert not outline.open
    return outline


def reproduce_table2(folder, **options):
    return reproduce.reproduce("table2", runs=3, out=folder, seed=5, workers=1, **options)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    assert reproduce_table2(folder) == folder / "report.html"
    return folder


def test_files_of_one_table(out):
    assert {path.name for path in out.iterdir()} == {
        "table2.csv",
        "table2.png",
        "table2.svg",
        "verdicts.csv",
        "agreement.csv",
        "checks.csv",
        "report.html",
    }
    assert (out / "table2.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / "table2.svg").read_text(encoding="utf-8")[:2000]


def test_table_2_has_weights_and_both_errors(out):
    rows = read_csv(out / "table2.csv")
    assert len(rows) == 4 * 2 * 4
    row = rows[1]
    assert (row["setting"], row["distribution"], row["method"]) == ("s1", "uniform", "VWA")
    weights = [round(float(row[f"weight_{place}"]), 4) for place in range(1, 5)]
    assert weights == [0.0316, 0.1477, 0.3045, 0.5162]
    assert row["printed_mse"] == "1.124e-3"
    assert float(row["theory_noise"]) == pytest.approx(1.20e-3, rel=0.01)
    measured = float(row["measured_population"])
    assert float(row["low_population"]) < measured < float(row["high_population"])
    # Both distributions have 30 items.
    per_item = float(row["measured_noise"]) / 30
    assert float(row["measured_noise_per_item"]) == pytest.approx(per_item)


def test_verdicts_are_written_with_their_reasons(out):
    rows = read_csv(out / "verdicts.csv")
    columns = ["study", "place", "claim", "printed", "ours", "verdict", "decided_by", "why"]
    assert list(rows[0]) == columns
    assert {row["verdict"] for row in rows} == {"agrees", "differs"}
    assert "" not in {row["why"] for row in rows}


def test_user_level_is_compared_with_count_level(out):
    rows = read_csv(out / "agreement.csv")
    assert rows
    for row in rows:
        assert row["study"] == "table2"
        assert row["runs"] == "3"
        # Three runs vary a lot; twenty standard errors would be an error of the program.
        assert abs(float(row["z"])) < 20


def test_the_page_needs_nothing_else(out):
    text = read_report(out)
    outline = outline_of(text)
    for source in outline.sources:
        assert source.startswith(("data:image/png;base64,", "#"))
    # Nothing that runs, and nothing that is loaded.
    assert not re.search(r"<script|<link|@import|url\(", text)
    anchors = {source[1:] for source in outline.sources if source.startswith("#")}
    for anchor in anchors:
        assert f'id="{anchor}"' in text


def test_the_page_says_what_was_run(out):
    text = read_report(out)
    outline = outline_of(text)
    # One picture, which has a description.
    assert len(outline.alternatives) == 1
    assert outline.alternatives[0]
    assert "What was run" in outline.headings
    assert "Table II" in " ".join(outline.headings)
    assert "3 (the paper: 20)" in text
    assert "seed of the runs" in text
    assert "95%" in text
    assert "filtered part of Gowalla" in text
    assert "test part only" in text


@pytest.mark.usefixtures("without_pictures")
def test_a_section_with_a_second_edition(tmp_path):
    reproduce.reproduce("fig4", runs=2, out=tmp_path, seed=5, workers=1)
    headings = outline_of(read_report(tmp_path)).headings
    editions = [heading for heading in headings if heading.startswith("Second edition")]
    assert editions == ["Second edition: Weighted groups at their own exact privacy"]
    files = {path.name for path in tmp_path.iterdir()}
    assert {"fig4.csv", "fig4_exact.csv", "fig4_exact.svg"} <= files
    row = read_csv(tmp_path / "fig4.csv")[0]
    per_item = float(row["mse_summed"]) / float(row["items"])
    assert float(row["mse_per_item"]) == pytest.approx(per_item)
    assert float(row["theory_summed"]) > 0


def test_an_interrupted_run_continues_with_the_same_numbers(tmp_path, out):
    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce_table2(tmp_path, progress=stop)
    (unfinished,) = tmp_path.iterdir()
    reported = []
    reproduce_table2(tmp_path, progress=lambda done, _: reported.append(done))
    # Finished blocks are reported again, so that progress starts where it stopped.
    assert len(reported) >= 5
    assert (tmp_path / "table2.csv").read_bytes() == (out / "table2.csv").read_bytes()
    assert (tmp_path / "table2.svg").read_bytes() == (out / "table2.svg").read_bytes()
    # A finished run leaves nothing to resume.
    assert not unfinished.exists()


def test_refusals(tmp_path):
    with pytest.raises(ParameterError, match="no figure or table 'fig9'"):
        reproduce.reproduce("fig9", out=tmp_path)
    with pytest.raises(ParameterError, match="runs must be at least 2"):
        reproduce.reproduce("fig2", runs=1, out=tmp_path)


def test_matplotlib_is_asked_for_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    reported = []
    folder = tmp_path / "out"
    with pytest.raises(ParameterError, match="pip install"):
        reproduce.reproduce(
            "fig2", runs=2, out=folder, progress=lambda *work: reported.append(work)
        )
    # Neither a run nor an empty folder.
    assert not reported
    assert not folder.exists()
    with pytest.raises(ParameterError, match="pip install"), picture_style():
        pass


def triple(channel, counts, rng, draw_sums=squared_errors._draw_sums):
    """Every draw three times as far from its mean as it should be."""
    others = counts.sum(axis=1, keepdims=True) - counts
    mean = counts * channel.hit + others * channel.miss
    return mean + 3 * (draw_sums(channel, counts, rng) - mean)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("name", ["fig2", "fig3", "table2"])
def test_runs_that_contradict_theory_fail_loudly(name, tmp_path, monkeypatch):
    monkeypatch.setattr(squared_errors, "_draw_sums", triple)
    with pytest.raises(ContradictionError, match=f"the runs contradict the theory in {name}"):
        reproduce.reproduce(name, runs=20, out=tmp_path, workers=1)
    text = read_report(tmp_path)
    assert 'class="banner failed"' in text
    # It stands above the first section.
    assert text.index("The runs contradict the theory") < text.index("<h2")
    assert read_csv(tmp_path / "checks.csv")[0]["result"] == "CONTRADICTS"
    for row in read_csv(tmp_path / "verdicts.csv"):
        if row["decided_by"] != "arithmetic":
            assert row["verdict"] == "undecided"


def test_the_page_begins_with_what_differs(out):
    text = read_report(out)
    assert 'class="banner passed"' in text
    assert "once in 1,000,000 reports" in text
    anchors = ("differences", "checks", "setup", "table2", "agreement")
    places = [text.index(f'id="{anchor}"') for anchor in anchors]
    assert places == sorted(places)
    # A claim that differs stands in the first section.
    assert "MSE = 1/N" in text[places[0] : places[1]]


def test_runs_at_user_level_are_capped():
    study = STUDIES["fig2"]
    loads = {point["how"]: plan_load(point, 1000) for point in study.named_points()}
    assert loads[COUNT_LEVEL].runs == 1000
    assert loads[USER_LEVEL].runs == 20
    # A block takes two seconds at most.
    assert loads[USER_LEVEL].block * loads[USER_LEVEL].cost <= 2.0


@pytest.mark.usefixtures("without_pictures")
def test_the_report_says_that_runs_were_capped(tmp_path):
    reproduce.reproduce("table1", runs=21, out=tmp_path, seed=5, workers=1)
    assert "20, not 21: they are capped" in read_report(tmp_path)


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_names_its_axes(name):
    with picture_style():
        picture = PICTURES[name](lines_at_theory(name))
    panels = list(picture.axes.flat)
    for panel in panels:
        assert panel.get_title() or panel.get_xlabel()
    assert "mean squared error" in panels[0].get_ylabel()
    assert len(picture.figure.legends) == 1
    assert picture.figure.get_size_inches()[0] == pytest.approx(7.2)


@pytest.fixture(scope="module")
def curves():
    """All curves, the two slow ones at fewer places."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_curves, "WIDE_EPSILONS", (0.5, 1.0))
        patch.setattr(exact_curves, "TWO_STAGE_FLOORS", (20, 50))
        return {name: compute() for name, compute in exact_curves.CURVES.items()}


@pytest.mark.parametrize("name", CURVE_PICTURES)
def test_every_curve_has_a_picture_and_a_sentence(name, curves):
    with picture_style():
        picture = CURVE_PICTURES[name](curves[name])
    for panel in picture.axes.flat:
        assert panel.get_ylabel() or panel.get_xlabel()
    assert re.search(r"\d", CURVE_FINDINGS[name](curves[name]))
    assert name in CURVE_TITLES


def test_sentences_of_measured_editions():
    assert "as a multiple of Laplace's" in describe_equal_privacy(lines_at_theory("fig1_exact"))
    # Local mechanisms have no delta.
    assert "is 0, computed" in describe_local()


def test_pictures_leave_the_users_settings_alone():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with picture_style():
        assert mpl.rcParams["font.size"] == 8
    assert dict(mpl.rcParams) == before


def test_records_of_table_1():
    lines = measure([STUDIES["table1"]], 2, seed=3, workers=1)["table1"]
    records = {}
    for record in tables.list_costs(lines):
        records[record["protocol"], record["cost"]] = record
    sent = records["DPDS", "user: field elements sent"]
    assert (sent["printed_value"], sent["corrected_value"], sent["counted"]) == (1210, 600, 600)
    # All its points are at user level, so there is nothing to compare them with.
    assert {line.point["how"] for line in lines} == {USER_LEVEL}
    assert tables.list_agreement({"table1": lines}) == []


def test_every_data_set_names_its_limits():
    for record in tables.list_data_sets():
        assert record["limits"]


def test_text_is_typeset_and_escaped():
    shown = page.typeset("epsilon* < 1e-07, +-2, e^-epsilon_g & delta")
    assert shown == "ε* &lt; 1e-7, ±2, e^-ε_g &amp; δ"
    # Parts of words are left alone.
    assert page.typeset("alphabet, deltas") == "alphabet, deltas"
    assert format_short(1e-7) == "1e-7"


def test_tables_are_escaped_and_fit_narrow_screens():
    verdict = Verdict("x", "<b>", "c", "p", "o", AGREES, RUNS, "w")
    shown = page.render_verdicts([verdict], "t")
    assert "&lt;b&gt;" in shown
    assert 'class="badge agrees"' in shown
    numbers = page.render_table([{"a": 14640.0, "b": 0.25}], {"a": "A", "b": "B"}, "t")
    assert numbers.count("number") == 2
    # A card repeats the heading in front of its value.
    assert 'data-head="A"' in page.render_table([{"a": 1}], {"a": "A"}, "t", cards=True)


def test_records_that_lack_a_column_leave_it_empty(tmp_path):
    tables.write_csv(tmp_path / "x.csv", [{"a": 1}, {"a": 2, "b": "ε"}])
    assert read_csv(tmp_path / "x.csv") == [{"a": "1", "b": ""}, {"a": "2", "b": "ε"}]


def test_lines_know_their_distance_from_theory():
    exact = Line("x", {}, "m", "count", 1, 20, 5.0, 0.0, 5.0, 5.0, Expected(5.0))
    wrong = Line("x", {}, "m", "count", 1, 20, 6.0, 0.0, 6.0, 6.0, Expected(5.0))
    assert exact.z == 0.0
    assert wrong.z == float("inf")

"""What `reproduce` writes: CSV files, pictures, and a page that needs nothing but itself."""

import csv
import re
import sys
from html.parser import HTMLParser

import pytest

from faircount.core.errors import ContradictionError, ParameterError
from faircount.experiments.report import page, reproduce, tables
from faircount.experiments.report.exact_figures import CURVE_PICTURES
from faircount.experiments.report.figure_style import short, style
from faircount.experiments.report.figures import PICTURES
from faircount.experiments.report.outcome import CURVE_TITLES
from faircount.experiments.report.sentences import CURVE_FINDINGS, equal_privacy, local
from faircount.experiments.studies import exact_curves, squared_errors
from faircount.experiments.studies.judging import AGREES, RUNS, Verdict
from faircount.experiments.studies.registry import STUDIES, load, measure
from faircount.experiments.studies.study import ACTING, COUNTS, Expected, Line


class Outline(HTMLParser):
    """Checks that tags are closed in order, and collects what a reader and a screen reader get."""

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.headings, self.alternatives = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "img"}:
            self.open.append(tag)
        found = dict(attrs)
        self.sources += [found[name] for name in ("src", "href") if name in found]
        if tag == "img":
            self.alternatives.append(found.get("alt"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in {"h1", "h2", "h3"}:
            self.headings.append(data)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    assert reproduce.reproduce("table2", runs=3, out=folder, seed=5, workers=1) == folder / "report.html"
    return folder


def test_files_of_one_table(out):
    assert {path.name for path in out.iterdir()} == {
        "table2.csv", "table2.png", "table2.svg", "verdicts.csv", "agreement.csv", "checks.csv", "report.html",
    }  # fmt: skip
    assert (out / "table2.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / "table2.svg").read_text(encoding="utf-8")[:2000]


def test_table_2_has_weights_and_both_errors(out):
    found = rows(out / "table2.csv")
    assert len(found) == 4 * 2 * 4
    first = found[1]
    assert (first["setting"], first["distribution"], first["method"]) == ("s1", "uniform", "VWA")
    assert [round(float(first[f"weight_{place}"]), 4) for place in range(1, 5)] == [0.0316, 0.1477, 0.3045, 0.5162]
    assert first["printed_mse"] == "1.124e-3"
    assert float(first["theory_noise"]) == pytest.approx(1.20e-3, rel=0.01)
    assert float(first["low_population"]) < float(first["measured_population"]) < float(first["high_population"])
    assert float(first["measured_noise_per_item"]) == pytest.approx(float(first["measured_noise"]) / 30)


def test_verdicts_are_written_with_their_reasons(out):
    found = rows(out / "verdicts.csv")
    assert list(found[0]) == ["study", "place", "claim", "printed", "ours", "verdict", "decided_by", "why"]
    assert {each["verdict"] for each in found} == {"agrees", "differs"}
    assert all(each["why"] for each in found)


def test_real_shares_stand_beside_the_count_level(out):
    found = rows(out / "agreement.csv")
    assert {each["study"] for each in found} == {"table2"}
    assert all(abs(float(each["z"])) < 20 and each["runs"] == "3" for each in found)


def test_the_page_needs_nothing_else(out):
    text = (out / "report.html").read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(text)
    assert not outline.open
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in outline.sources)
    assert not re.search(r"<script|<link|@import|url\(", text)
    assert len(outline.alternatives) == 1
    assert all(outline.alternatives)
    assert "What was run" in outline.headings
    assert any(each.startswith("Table II") for each in outline.headings)
    for said in ("3 (the paper: 20)", "seed of the runs", "95%", "filtered part of Gowalla", "test part only"):
        assert said in text
    anchors = {source[1:] for source in outline.sources if source.startswith("#")}
    assert all(f'id="{anchor}"' in text for anchor in anchors)


@pytest.mark.usefixtures("without_pictures")
def test_a_section_with_a_second_edition(tmp_path):
    reproduce.reproduce("fig4", runs=2, out=tmp_path, seed=5, workers=1)
    outline = Outline()
    outline.feed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [each for each in outline.headings if each.startswith("Second edition")] == [
        "Second edition: Weighted groups at their own exact privacy",
    ]
    assert {"fig4.csv", "fig4_exact.csv", "fig4_exact.svg"} <= {path.name for path in tmp_path.iterdir()}
    both = rows(tmp_path / "fig4.csv")[0]
    assert float(both["mse_per_item"]) == pytest.approx(float(both["mse_summed"]) / float(both["items"]))
    assert float(both["theory_summed"]) > 0


def test_an_interrupted_run_goes_on_with_the_same_numbers(tmp_path, out):
    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce.reproduce("table2", runs=3, out=tmp_path, seed=5, workers=1, progress=stop)
    (unfinished,) = tmp_path.iterdir()
    seen = []
    reproduce.reproduce("table2", runs=3, out=tmp_path, seed=5, workers=1, progress=lambda done, _: seen.append(done))
    assert len(seen) >= 5
    assert (tmp_path / "table2.csv").read_bytes() == (out / "table2.csv").read_bytes()
    assert (tmp_path / "table2.svg").read_bytes() == (out / "table2.svg").read_bytes()
    assert not unfinished.exists()


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="no figure or table 'fig9'"):
        reproduce.reproduce("fig9", out=tmp_path)
    with pytest.raises(ParameterError, match="runs must be at least 2"):
        reproduce.reproduce("fig2", runs=1, out=tmp_path)


def test_matplotlib_is_asked_for_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = []
    with pytest.raises(ParameterError, match="pip install"):
        reproduce.reproduce("fig2", runs=2, out=tmp_path / "out", progress=lambda *work: done.append(work))
    assert not done
    assert not (tmp_path / "out").exists()
    with pytest.raises(ParameterError, match="pip install"), style():
        pass


def triple(channel, counts, rng, honest=squared_errors._sums):
    """Every draw three times as far from its mean as it should be."""
    mean = counts * channel.hit + (counts.sum(axis=1, keepdims=True) - counts) * channel.miss
    return mean + 3 * (honest(channel, counts, rng) - mean)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("name", ["fig2", "fig3", "table2"])
def test_runs_that_contradict_theory_fail_loudly(name, tmp_path, monkeypatch):
    monkeypatch.setattr(squared_errors, "_sums", triple)
    with pytest.raises(ContradictionError, match=f"the runs contradict the theory in {name}"):
        reproduce.reproduce(name, runs=20, out=tmp_path, workers=1)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'class="banner failed"' in text
    assert text.index("The runs contradict the theory") < text.index("<h2")
    assert rows(tmp_path / "checks.csv")[0]["result"] == "CONTRADICTS"
    judged = rows(tmp_path / "verdicts.csv")
    assert {each["verdict"] for each in judged if each["decided_by"] != "arithmetic"} == {"cannot be told"}


def test_the_page_begins_with_what_differs(out):
    text = (out / "report.html").read_text(encoding="utf-8")
    assert 'class="banner passed"' in text
    assert "once in 1,000,000 reports" in text
    places = [text.index(f'id="{anchor}"') for anchor in ("differences", "checks", "setup", "table2", "agreement")]
    assert places == sorted(places)
    assert "MSE = 1/N" in text[places[0] : places[1]]


@pytest.mark.usefixtures("without_pictures")
def test_points_where_users_act_are_capped_and_say_so(tmp_path):
    loads = {point["how"]: load(point, 1000) for point in STUDIES["fig2"].named()}
    assert loads[COUNTS].runs == 1000
    assert loads[ACTING].runs == 20
    assert loads[ACTING].block * STUDIES["fig2"].seconds(STUDIES["fig2"].named()[-1]) <= 2.0
    reproduce.reproduce("table1", runs=21, out=tmp_path, seed=5, workers=1)
    assert "20, not 21: they are capped" in (tmp_path / "report.html").read_text(encoding="utf-8")


def theory_lines(name):
    study, lines = STUDIES[name], []
    for point in study.named():
        for key, expected in study.theory(point).items():
            method, _, against = key.rpartition("|")
            mean, who = expected.mean, method or str(point["method"])
            bounds = (mean, mean / 10, mean * 0.8, mean * 1.2)
            lines.append(Line(name, point, who, against, study.items(point), 20, *bounds, expected))
    return lines


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_names_its_axes(name):
    with style():
        picture = PICTURES[name](theory_lines(name))
    panels = list(picture.axes.flat)
    assert all(panel.get_title() or panel.get_xlabel() for panel in panels)
    assert "mean squared error" in panels[0].get_ylabel()
    assert len(picture.figure.legends) == 1
    assert picture.figure.get_size_inches()[0] == pytest.approx(7.2)


@pytest.fixture(scope="module")
def curves():
    """All curves, the two slow ones at fewer places."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_curves, "WIDE_EPSILONS", (0.5, 1.0))
        patch.setattr(exact_curves, "TWO_STAGE_FLOORS", (20, 50))
        return {name: make() for name, make in exact_curves.CURVES.items()}


@pytest.mark.parametrize("name", CURVE_PICTURES)
def test_every_curve_has_a_picture_and_a_sentence(name, curves):
    with style():
        picture = CURVE_PICTURES[name](curves[name])
    assert all(panel.get_ylabel() or panel.get_xlabel() for panel in picture.axes.flat)
    assert re.search(r"\d", CURVE_FINDINGS[name](curves[name]))
    assert name in CURVE_TITLES


def test_sentences_of_measured_editions():
    assert "as a multiple of Laplace's" in equal_privacy(theory_lines("fig1_exact"))
    assert "is 0, computed" in local()


def test_pictures_leave_the_users_settings_alone():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with style():
        assert mpl.rcParams["font.size"] == 8
    assert dict(mpl.rcParams) == before


def test_table_1_and_data_sets():
    lines = measure([STUDIES["table1"]], 2, seed=3, workers=1)["table1"]
    found = tables.costs(lines)
    sent = next(each for each in found if each["protocol"] == "DPDS" and each["cost"] == "user: field elements sent")
    assert (sent["printed_value"], sent["corrected_value"], sent["counted"]) == (1210, 600, 600)
    limits = {str(each["data"]): str(each["limits"]) for each in tables.data_sets()}
    assert all(limits.values())
    assert tables.agreement({"table1": lines}) == []
    assert all(line.point["how"] == ACTING for line in lines)


def test_text_is_typeset_and_escaped():
    assert page.typeset("epsilon* < 1e-07, +-2, e^-epsilon_g & delta") == "ε* &lt; 1e-7, ±2, e^-ε_g &amp; δ"
    assert page.typeset("alphabet, deltas") == "alphabet, deltas"
    assert short(1e-7) == "1e-7"
    shown = page.verdict_table([Verdict("x", "<b>", "c", "p", "o", AGREES, RUNS, "w")], "t")
    assert "&lt;b&gt;" in shown
    assert 'class="badge agrees"' in shown
    assert page.table([{"a": 14640.0, "b": 0.25, "c": 7}], {"a": "A", "b": "B", "c": "C"}, "t").count("number") == 3
    assert 'data-head="A"' in page.table([{"a": 1}], {"a": "A"}, "t", cards=True)


def test_records_that_lack_a_column_leave_it_empty(tmp_path):
    tables.write_csv(tmp_path / "x.csv", [{"a": 1}, {"a": 2, "b": "ε"}])
    assert rows(tmp_path / "x.csv") == [{"a": "1", "b": ""}, {"a": "2", "b": "ε"}]


def test_lines_know_their_distance_from_theory():
    exact = Line("x", {}, "m", "count", 1, 20, 5.0, 0.0, 5.0, 5.0, Expected(5.0))
    assert exact.z == 0.0
    assert Line("x", {}, "m", "count", 1, 20, 6.0, 0.0, 6.0, 6.0, Expected(5.0)).z == float("inf")

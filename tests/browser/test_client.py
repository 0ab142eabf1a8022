"""The browser's client: known answers in Node and Chromium, and its reports in the protocol."""

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import faircount
from faircount.accounting.exact import decoys_delta, sampling_delta
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError
from faircount.core.questions import (
    AnyOf,
    Bands,
    Branch,
    MostOf,
    Number,
    OneOf,
    QuestionGroup,
    Questionnaire,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.estimation.result import Result
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import SERVERS, SurveyParameters
from faircount.protocol.roles.coordinator import coordinator_step, end_phase
from faircount.protocol.simulator import exchange_messages, result_of, set_up
from faircount.protocol.wire import canonical_json as canonical
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.digests import audit_path, build_tree, entry_leaves, merkle_root
from faircount.protocol.wire.messages import Acknowledgement

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REPLAY = "files => import('/tests/browser/replay.mjs').then(replay => replay.replayAll(files))"
ITEMS = ("tea", "coffee", "water")


def in_node(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["node", *arguments], input=stdin, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answers(*surveys: dict) -> list[dict]:
    """What the client does with each survey: bodies, or a refusal."""
    return json.loads(in_node(str(HERE / "answer.mjs"), stdin=json.dumps({"surveys": surveys})))


def published(mechanism, **terms) -> str:
    return set_up(mechanism, SERVERS, SystemEntropy(), **terms).params.published.decode()


def test_known_answers_and_the_clients_own_tests_in_node() -> None:
    said = in_node("--test", "--test-reporter=tap", str(HERE / "client.test.mjs"))
    assert "# fail 0" in said
    assert "# skipped 0" in said
    assert said.count("known answers: ") >= 20


def test_known_answers_in_chromium_under_a_strict_policy(library_page) -> None:
    files = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (ROOT / "test_vectors").glob("*.json")
    }
    found = library_page.evaluate(REPLAY, files)
    assert found["problems"] == []
    assert found["cases"] >= 120


def test_a_changed_answer_is_noticed_by_the_replay(library_page) -> None:
    packing = json.loads((ROOT / "test_vectors" / "packing.json").read_text(encoding="utf-8"))
    packing["cases"][1]["packed"] = "00" + packing["cases"][1]["packed"][2:]
    found = library_page.evaluate(REPLAY, {"packing": packing})
    assert [problem.split(":")[0] for problem in found["problems"]] == ["packing 1"]


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(items=ITEMS, users=12, epsilon=50.0),  # no noise but once in 10^9 surveys
        Laplace(items=ITEMS, users=12, epsilon=50.0, spare_bits=40),
        ServerLaplace(items=ITEMS, users=12, epsilon=50.0),
        ServerLaplace(
            items=ITEMS, users=12, epsilon=50.0, spare_bits=24
        ),  # products of residues need two halves
    ],
    ids=["small field", "large field", "proven", "proven in a large field"],
)
def test_bodies_of_the_client_make_a_survey(mechanism) -> None:
    result = voted(mechanism, [at % 3 for at in range(11)])
    assert result.included == 11
    assert np.rint(result.estimates * 11).tolist() == [4, 4, 3]


SHEET = Questionnaire(
    (
        OneOf(text="Which site?", items=("North", "South", "East"), skip=True),
        YesNo(text="Would you recommend us?"),
        AnyOf(text="What do you use?", items=("a", "b", "c"), only_if=Branch(0, (0, 2))),
        MostOf(text="What matters most?", items=("a", "b", "c", "d"), most=2),
        ScaleMean(text="How tired?", items=("low", "middle", "high"), skip=True),
        Number(text="Euros?", low=Fraction(0), high=Fraction(100_000), step=Fraction(100)),
        Bands(text="Age?", edges=(0, 30, 99), only_if=Branch(1, (1,))),
        Table(text="Site?", columns_text="Shift?", rows=("N", "S"), columns=("early", "late")),
    )
)


def sheet_mechanism(users: int, **terms) -> ServerSheets:
    """Next to no noise: any at all has a probability below 10^-13."""
    groups = QuestionGroup.of(50.0, (0, 3, 1)), QuestionGroup.of(50.0, (2, 4, 5, 6, 7))
    return ServerSheets(questionnaire=SHEET, groups=groups, epsilon=100.0, users=users, **terms)


def test_sheets_of_the_client_make_a_survey_and_false_ones_are_refused() -> None:
    """The sum of Euros needs 15 bits; with spare bits the field has nearly 2^32 elements."""
    sheets = [
        [0, 1, [0, 2], [1, 3], 2, 1000, 0, 3],
        [1, 0, None, [], None, 0, 2, 0],
        [3, 1, None, [0], 0, 1, 1, 1],
        [2, 0, [], [2, 0], 1, 500, 2, 2],
    ]
    bits = SHEET.encode(sheets[0])
    # One bit changed under every constraint, and one number in place of a bit.
    places = [constraint.weights[0][0] for constraint in SHEET.constraints]
    lies = [{"forged": [*bits[:at], 1 - bits[at], *bits[at + 1 :]]} for at in places]
    lies.append({"forged": [*bits[:4], 2, *bits[5:]]})
    wanted = np.sum([SHEET.cells_from_bits(SHEET.encode(sheet)) for sheet in 3 * sheets], axis=0)
    for spare in (0, 17):
        mechanism = sheet_mechanism(20, dropouts=8, spare_bits=spare)
        result = surveyed(mechanism, [*sheets, *lies, *sheets, *sheets])
        found = result.facts["validity"]
        assert (found.counted, found.refused) == (12, len(lies))
        assert result.cells.tolist() == wanted.tolist()


def test_two_answers_share_one_draw_so_that_the_total_is_exact() -> None:
    result = voted(
        Laplace(items=["no", "yes"], users=40, epsilon=0.1), [at % 2 for at in range(40)]
    )
    assert sum(result.aggregate) == result.included == 40
    # The noise exceeds 200 with probability e^-20.
    assert abs(result.aggregate[0] - 20) <= 200


def voted(mechanism, people: list) -> Result:
    """The counts of a mechanism with one question."""
    return surveyed(mechanism, people).count_votes()


def surveyed(mechanism, people: list) -> QuestionnaireResult:
    """The result if everybody uses the browser's client, with answers or forged reports."""
    survey = set_up(mechanism, SERVERS, SystemEntropy())
    invited = [
        [invitation.token.hex(), [at] if isinstance(at, int) else at]
        for invitation, at in zip(survey.invitations, people, strict=False)
    ]
    (said,) = answers({"published": survey.params.published.decode(), "people": invited})
    s1, s2 = survey.s1, survey.s2
    for body in said["bodies"]:
        s1, (answer,) = s1.make_step(coordinator_step, parse(bytes.fromhex(body)))
        assert isinstance(answer, Acknowledgement)
    s1, out = s1.make_step(end_phase)
    s1, s2 = exchange_messages(s1, s2, out)
    return result_of(s1)


def test_what_is_not_one_vote_is_refused_by_the_servers_whatever_the_client_proves() -> None:
    honest = [at % 3 for at in range(9)]
    numbers = [[0, 0, 1], [50, -49, 0], [1, 1, 0], [0, 0, 0], [2, -1, 0]]
    lies = [{"forged": forged} for forged in numbers]  # the first is a vote after all
    mechanism = ServerLaplace(items=ITEMS, users=14, epsilon=50.0, dropouts=5)
    result = voted(mechanism, [*honest, *lies])
    assert (result.validity.counted, result.validity.refused) == (10, 4)
    assert np.rint(result.estimates * 10).tolist() == [3, 3, 4]


@pytest.mark.parametrize(
    ("mechanism", "flipped"),
    [
        (ServerCoins(items=ITEMS, users=40, epsilon=1.0, coins=150), 300),
        (PlacedCoins(items=ITEMS, users=40, epsilon=1.0, coins=30, dropouts=5), 30),
    ],
    ids=["server-coins", "placed-coins"],
)
def test_votes_with_coins_are_proven_too(mechanism, flipped: int) -> None:
    result = voted(mechanism, [1] * 40)
    assert (result.validity.counted, result.validity.refused) == (40, 0)
    for at, count in enumerate(result.aggregate):
        heads = count - 40 * (at == 1)
        assert (
            abs(heads - flipped / 2) <= 5.2 * np.sqrt(flipped) / 2
        )  # 6e-7 for three items, two-sided


COUNTED = """
const { isCounted } = await import(process.argv[1]);
const { readFileSync } = await import("node:fs");
const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const { root, included, user, key, proofs } = JSON.parse(readFileSync(0, "utf8"));
const published = { root: unhex(root), included };
const found = [];
for (const { index, size, path } of proofs) {
  const proof = { index, size, path: path.map(unhex) };
  found.push(await isCounted(published, proof, unhex(user), unhex(key)));
}
console.log(JSON.stringify(found));
"""


def test_a_proof_for_a_tree_of_another_size_proves_nothing() -> None:
    """In trees of three and of four entries the first one has a path of the same form."""
    entries = [(bytes([at]) * 16, bytes([at]) * 32) for at in range(3)]
    tree = build_tree(entry_leaves(entries))
    path = [node.hex() for node in audit_path(tree, 0)]
    user, key = entries[0]
    given = {
        "root": merkle_root(entry_leaves(entries)).hex(),
        "included": 3,
        "user": user.hex(),
        "key": key.hex(),
        "proofs": [{"index": 0, "size": size, "path": path} for size in (3, 4)],
    }
    # The installed script, which may be a changed one (tests/mutants.py).
    script = Path(faircount.__file__).parent / "web" / "client" / "signatures.js"
    found = in_node(
        "--input-type=module", "--eval", COUNTED, script.as_uri(), stdin=json.dumps(given)
    )
    assert json.loads(found) == [True, False]


def test_the_clients_coins_are_fair_and_as_many_as_published() -> None:
    decoys = Decoys(items=ITEMS, users=40, epsilon=1.0, delta=1e-3)
    survey = set_up(decoys, SERVERS, SystemEntropy())
    people = [[invitation.token.hex(), [1]] for invitation in survey.invitations]
    (said,) = answers({"published": survey.params.published.decode(), "people": people})
    s1, s2 = survey.s1, survey.s2
    for body in said["bodies"]:
        s1, _ = s1.make_step(coordinator_step, parse(bytes.fromhex(body)))
    s1, s2 = exchange_messages(s1, s2, s1.make_step(end_phase)[1])
    counts = s1.final.message.counts
    coins = survey.params.mechanism.D
    assert sum(counts) - 40 <= 3 * coins  # heads of D coins for each of three items
    for at, count in enumerate(counts):
        heads = count - 40 * (at == 1)
        assert abs(heads - coins / 2) <= 5.2 * np.sqrt(coins) / 2  # 6e-7 for three items, two-sided


def test_laplace_parameters_of_many_kinds_are_computed_alike() -> None:
    kinds = [
        Laplace(items=items, users=users, epsilon=epsilon, insiders=insiders, spare_bits=spare)
        for epsilon in (0.02, 0.3, 1.0, 3.7, 20.0)
        for items, users, insiders, spare in ((5, 10, 2, 0), (2, 333, 1, 10))
    ]
    assert answers(*({"published": published(kind), "people": []} for kind in kinds)) == [
        {"bodies": []}
    ] * len(kinds)


def test_other_mechanisms_are_computed_alike() -> None:
    kinds = [
        Decoys(items=4, users=30, epsilon=1.0, delta=1e-6),
        Decoys(items=4, users=30, epsilon=0.1, delta=1e-9, insiders=3),
        Decoys(items=2, users=10, epsilon=1.0, coins=500),
        DPDS(items=30, users=1000, p=0.39, floor=23, epsilon=0.5),
        DPDS(items=2, users=200, epsilon=1.0, delta=1e-4, floor=60, dropouts=10),
        DPDS(items=2, users=900, epsilon=1.0, delta=1e-4, floor=200, dropouts=45),
        *(
            ServerLaplace(items=items, users=users, epsilon=epsilon, spare_bits=spare)
            for epsilon in (0.1, 1.0, 20.0)
            for items, users, spare in ((5, 10, 0), (300, 333, 10), (2, 3000, 0))
        ),
        ServerLaplace(
            items=2000, users=10, epsilon=20.0, insiders=7
        ),  # q is larger for the bits' sake
        ServerCoins(items=4, users=30, epsilon=1.0, delta=1e-6),
        ServerCoins(items=30, users=1000, epsilon=0.1, delta=1e-9, insiders=3),
        ServerCoins(items=2, users=10, epsilon=1.0, coins=500),
        PlacedCoins(items=30, users=1000, epsilon=1.0, delta=1e-6, insiders=50, dropouts=100),
        PlacedCoins(items=4, users=300, epsilon=1.0, coins=200, dropouts=7, spare_bits=16),
    ]
    assert answers(*({"published": published(kind), "people": []} for kind in kinds)) == [
        {"bodies": []}
    ] * len(kinds)


def changed(text: str, **change) -> str:
    """The same parameters with something else in them, in canonical form."""
    plain = {**json.loads(text), **change}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_a_promise_that_does_not_hold_is_refused_at_the_edge() -> None:
    """The Python client refuses them too: they promise a little more than they keep."""
    laplace = published(Laplace(items=4, users=30, epsilon=1.0, dropouts=3), minimum=27)
    decoys = published(Decoys(items=4, users=30, epsilon=1.0, delta=1e-6))
    dpds = published(DPDS(items=3, users=100, epsilon=1.0, delta=1e-3, floor=30, dropouts=5))
    noisy = published(ServerLaplace(items=4, users=30, epsilon=1.0))
    coins = published(ServerCoins(items=4, users=30, epsilon=1.0, delta=1e-6))
    placed = published(PlacedCoins(items=4, users=300, epsilon=1.0, delta=1e-6, dropouts=20))
    less = {
        name: canonical.format_real(canonical.parse_real(json.loads(text)[name]) * 0.999)
        for name, text in (("epsilon", laplace), ("delta", dpds))
    }
    worse = [
        changed(noisy, epsilon=less["epsilon"]),
        changed(noisy, delta="0"),
        changed(coins, epsilon=canonical.format_real(0.9)),
        changed(placed, epsilon=canonical.format_real(0.9)),
        changed(placed, minimum=json.loads(placed)["derived"]["D"] - 1),
        changed(laplace, epsilon=less["epsilon"]),
        changed(laplace, minimum=26),
        changed(laplace, delta="0"),
        changed(decoys, minimum=json.loads(decoys)["minimum"] - 5),
        changed(dpds, delta=less["delta"]),
        changed(dpds, minimum=json.loads(dpds)["minimum"] - 1),
    ]
    assert answers(*({"published": text, "people": []} for text in worse)) == [
        {"refused": "promise"}
    ] * len(worse)
    for text in worse:
        with pytest.raises(RefusedError):
            SurveyParameters.parse(text.encode())


def test_values_that_do_not_follow_are_refused() -> None:
    laplace = published(Laplace(items=4, users=30, epsilon=1.0))
    plain = json.loads(laplace)
    derived = plain["derived"]
    bad = {
        "derived": [
            changed(laplace, derived={**derived, "tables": "00" * 32}),
            changed(laplace, derived={**derived, "h": derived["h"] + 1}),
            changed(laplace, derived={**derived, "q": "1009"}),
            changed(laplace, derived={**derived, "allocation": "first more"}),
            changed(laplace, phi=0),
        ],
        "mechanism": [changed(laplace, mechanism="dpdg")],
        "malformed": [
            changed(laplace, settings={**plain["settings"], "noise": 0}),
            changed(laplace, proof=1),
            changed(laplace, derived={**derived, "proof": {}}),
        ],
    }
    wanted = [{"refused": code} for code, texts in bad.items() for _ in texts]
    assert (
        answers(*({"published": text, "people": []} for texts in bad.values() for text in texts))
        == wanted
    )


def test_estimates_and_intervals_are_those_of_the_library() -> None:
    """Equal for added noise; for sampling the page's interval is the wider, equal-tailed one.

    Counts with noise of their own add up to the number counted, and two counts of Laplace already
    do.
    """
    many = np.random.default_rng(5).integers(-20, 60, 40).tolist()
    noisy = [
        (Laplace(items=2, users=60, epsilon=0.5, dropouts=10), 55, [61, -6]),
        (ServerLaplace(items=2, users=60, epsilon=8.0, dropouts=10), 52, [40, 13]),
        (ServerLaplace(items=40, users=300, epsilon=0.1, dropouts=10), 295, many),
        (ServerLaplace(items=40, users=300, epsilon=0.002, dropouts=10), 295, many),
        (Laplace(items=3, users=60, epsilon=0.5, dropouts=10), 55, [40, -3, 20]),
        (Laplace(items=3, users=60, epsilon=2.0, dropouts=10), 50, [30, 0, 20]),
        (Decoys(items=3, users=60, epsilon=1.0, delta=1e-4, dropouts=10), 52, [120, 130, 95]),
        (ServerLaplace(items=3, users=60, epsilon=0.5, dropouts=10), 52, [40, -5, 20]),
        (ServerCoins(items=3, users=60, epsilon=1.0, delta=1e-4, dropouts=10), 52, [100, 120, 95]),
        (
            PlacedCoins(items=3, users=200, epsilon=1.0, delta=1e-4, dropouts=10),
            195,
            [120, 130, 95],
        ),
    ]
    sampled = [
        (DPDS(items=3, users=300, p=0.5, floor=60, epsilon=1.0, dropouts=15), 290, [70, 40, 30])
    ]
    asked, wanted = [], []
    for mechanism, included, counts in (*noisy, *sampled):
        params = set_up(mechanism, SERVERS, SystemEntropy()).params
        asked.append(
            {"published": params.published.decode(), "included": included, "counts": counts}
        )
        wanted.append(Result(params.mechanism, np.array(counts), included, {}))
    said = json.loads(in_node(str(HERE / "estimate.mjs"), stdin=json.dumps({"surveys": asked})))
    for (rows,), result in zip(said, wanted, strict=True):
        low, high = result.interval(0.95).low, result.interval(0.95).high
        assert [row["estimate"] for row in rows] == pytest.approx(result.estimates)
        assert all(row["low"] <= one + 1e-12 for row, one in zip(rows, low, strict=True))
        assert all(row["high"] >= one - 1e-12 for row, one in zip(rows, high, strict=True))
        if not isinstance(result.mechanism, DPDS):
            assert [row["low"] for row in rows] == pytest.approx(low)
            assert [row["high"] for row in rows] == pytest.approx(high)
        assert max(row["high"] - row["low"] for row in rows) <= 1.2 * max(high - low)


DELTA = """
import { decoysDelta, samplingDelta } from "./src/faircount/web/client/privacy.js";
import { readFileSync } from "node:fs";
const { coins, sampled } = JSON.parse(readFileSync(0, "utf8"));
const found = [
  ...coins.map(([count, epsilon]) => decoysDelta(count, epsilon)),
  ...sampled.map(([crowd, p, epsilon]) => samplingDelta(crowd, p, epsilon)),
];
console.log(JSON.stringify(found));
"""


def test_deltas_of_large_surveys_are_those_of_the_accountant() -> None:
    """With thousands of coins the probabilities of single outcomes are the smallest of doubles."""
    coins = [(148, 1.0), (3000, 0.3), (20_175, 0.1), (20_175, 0.01), (500_000, 0.02)]
    sampled = [(500, 0.3, 0.5), (50_000, 0.02, 0.1), (2_000_000, 0.5, 0.01)]
    given = json.dumps({"coins": coins, "sampled": sampled})
    found = json.loads(in_node("--input-type=module", "--eval", DELTA, stdin=given))
    wanted = [decoys_delta(*case) for case in coins]
    wanted += [sampling_delta(crowd, p, epsilon) for crowd, p, epsilon in sampled]
    assert found == pytest.approx(wanted, rel=1e-8)

"""`masked` as a whole: costs, completion, guarantee, and terms that are refused."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.sampling import DPDS
from faircount.protocol import MASKED
from faircount.protocol.simulator import play as play_survey
from faircount.protocol.simulator import result_of
from faircount.protocol.survey.parameters import Keys, SurveyParameters, propose
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.topology import ATTEMPTS
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.graph import plan_graph
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.crypto import OVERHEAD, IdealCrypto
from faircount.sharing.packing import packed_size
from faircount.sharing.shamir import SHARE_BYTES


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


def costs(masked, n, k):
    """Bytes sent and received by user 0, message by message."""
    play = masked("enrolled", n=n, k=k, t=3, minimum=n // 2)
    member = play.people[0].member
    near = play.inquire(member)
    play.share_all()
    call = play.visit(0)
    gone = tuple(list(play.people[0].placed.neighbours)[:2])
    play.settle(play.sum_all(skip=gone))
    asked = play.visit(0)
    play.people[0], help_ = masked_user.answer_unmask_request(play.people[0], asked, play.entropy)
    sent = [member.enrolment, play.people[0].bundle, play.people[0].first_messages[0], help_]
    received = [near, call, asked]
    sent_sizes = [len(encode(message)) for message in sent]
    received_sizes = [len(encode(message)) for message in received]
    return sent_sizes, received_sizes


def test_a_user_sends_and_receives_k_parts_and_one_bit_per_user(masked) -> None:
    sizes = {(n, k): costs(masked, n, k) for n in (40, 160) for k in (8, 16)}
    for k in (8, 16):
        few = sizes[40, k]
        many = sizes[160, k]
        vector = packed_size(163, 160) - packed_size(41, 40)
        assert many[0][1] - few[0][1] == 0  # the bundle does not know n
        assert many[0][2] - few[0][2] == vector
        assert many[0][3] - few[0][3] == 0
        assert many[1][1] - few[1][1] == many[1][2] - few[1][2] == 15  # one bit per user
        for n, (_, received) in ((40, few), (160, many)):
            assert received[0] <= 250 + (k + 1) * (
                48 + 32 * (n - 1).bit_length()
            )  # entries, and the audit path of each
    assert sizes[40, 16][0][1] - sizes[40, 8][0][1] == 8 * (4 + SHARE_BYTES + OVERHEAD)
    assert sizes[40, 16][1][1] - sizes[40, 8][1][1] == 8 * (4 + SHARE_BYTES + OVERHEAD + 32)


def lossy(masked, n, seed):
    """Every visit is missed with probability 5%, independently of everything else."""
    rng, (k, t) = np.random.default_rng(seed), plan_graph(n)

    def missing():
        return frozenset(np.flatnonzero(rng.random(n) < 0.05).tolist())

    terms = {"minimum": n // 2, "attempts": 1, "crypto": IdealCrypto(), "seed": seed}
    play = masked("enrolled", n=n, k=k, t=t, skip=missing(), **terms)
    play.share_all(missing())
    play.settle(play.sum_all(missing()))
    if play.s1.phase is Phase.UNMASKING:
        play.settle(play.recover(missing()))
    return play


@pytest.mark.parametrize("seed", range(8))
def test_a_survey_of_a_hundred_completes_with_5_percent_loss_at_every_visit(masked, seed) -> None:
    """Fewer than half are left, or than t of k neighbours, with 1e-9 (Chernoff): no run may fail."""
    play = lossy(masked, 100, seed)
    included = set(play.s1.topology_state.accepted)
    assert play.counts() == [int(i in included) for i in range(100)]
    assert 70 <= len(included) < 100


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(items=4, epsilon=2.0),
        DPDG(items=4, epsilon=2.0, delta=1e-4),
        Decoys(items=4, epsilon=2.0, delta=1e-4),
        DPDS(items=4, epsilon=1.0, delta=1e-2, floor=6),
    ],
)
def test_played_surveys_carry_their_guarantee(mechanism) -> None:
    result = play_survey(np.arange(40) % 4, mechanism, MASKED, entropy=SeededStream(5))
    published = result.facts["published"]
    assert result.included == published.included == 40
    assert abs(result.count_votes().estimates - 0.25).max() < 0.5
    assert int(published.realized_delta) <= int(published.delta)


def test_decoys_count_the_coins_of_those_included_and_not_of_the_dropped(masked) -> None:
    mechanism = Decoys(items=4, users=12, epsilon=1.0, delta=1e-2, dropouts=4)
    play = masked("recovering", mechanism=mechanism, gone=(0, 5))
    play.settle(play.recover())
    ran = result_of(play.s1).mechanism
    assert mechanism.coins_of(np.array(sorted(set(range(12)) - {0, 5}))) == ran.D
    assert ran.n == 10


def test_it_runs_on_ideal_sealing_too(masked) -> None:
    """No key ever seals a second message: the ideal one would say so."""
    play = masked("recovering", crypto=IdealCrypto())
    play.settle(play.recover())
    assert play.counts() == without(20, 3, 7)


def test_secrets_do_not_print(masked) -> None:
    masker = masked("recovering").people[0]
    shown = repr(masker)
    kept = [
        masker.mask.secret,
        masker.member.keys.secret,
        masker.member.credential,
        *masker.secrets.values(),
    ]
    assert not any(repr(secret)[2:-1] in shown or secret.hex() in shown for secret in kept)
    assert "response" not in shown


@pytest.mark.parametrize(
    ("terms", "words"), [({"k": 7}, "even"), ({"t": 9}, "t"), ({"k": 0, "t": 0}, "k")]
)
def test_degrees_are_checked_before_anybody_enrols(masked, terms, words) -> None:
    with pytest.raises(ParameterError, match=words):
        masked("open", **terms)


def test_the_plan_for_5_percent_colluding_and_30_percent_missing_is_the_default(masked) -> None:
    params = masked("open", mechanism=Laplace(items=3, users=100, epsilon=1.0)).setup.params
    assert (params.k, params.t, params.attempts) == (*plan_graph(100), ATTEMPTS)
    with pytest.raises(ParameterError, match="both k and t"):
        propose(params.mechanism, params.keys, survey=bytes(16), topology=MASKED, k=20)
    many = masked(
        "open", mechanism=Laplace(items=3, users=100, epsilon=1.0, insiders=10)
    ).setup.params
    assert (many.k, many.t) == plan_graph(100, 0.10)
    assert SurveyParameters.parse(params.published) == params


def test_the_graph_needs_a_commitment(masked) -> None:
    params = masked("open").setup.params
    with pytest.raises(ParameterError, match="commit"):
        replace(params, keys=replace(params.keys, aggregator_commitment=bytes(32)))


def test_a_threshold_below_what_the_colluders_of_the_promise_need_is_refused_also_when_read() -> (
    None
):
    mechanism = Laplace(items=3, users=100, epsilon=1.0, insiders=10)
    keys = Keys(bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 32, bytes(32), bytes([4]) * 32)
    terms = {"survey": bytes(16), "topology": MASKED, "question": "?"}
    k, t = plan_graph(100, 0.10)
    fine = propose(mechanism, keys, k=k, t=t, **terms)
    with pytest.raises(ParameterError, match=f"t must be at least {t} for k = {k}"):
        propose(mechanism, keys, k=k, t=t - 1, **terms)
    weaker = fine.published.replace(f'"t":{t}'.encode(), f'"t":{t - 1}'.encode())
    assert weaker != fine.published
    with pytest.raises(ParameterError, match="t must be at least"):
        SurveyParameters.parse(weaker)


@pytest.mark.parametrize(
    ("insiders", "k", "cut"), [(1, 2, False), (2, 2, True), (2, 4, False), (10, 10, True)]
)
def test_neighbours_whom_the_colluders_of_the_promise_could_cut_off_are_refused_also_when_read(
    insiders, k, cut
) -> None:
    """With so few neighbours two colluders cut the ring, whatever the threshold."""
    keys = Keys(bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 32, bytes(32), bytes([4]) * 32)
    mechanism = Laplace(items=3, users=100, epsilon=1.0, insiders=insiders)
    fine = propose(mechanism, keys, survey=bytes(16), topology=MASKED, question="?")
    fewer = fine.published.replace(f'"k":{fine.k}'.encode(), f'"k":{k}'.encode())
    fewer = fewer.replace(f'"t":{fine.t}'.encode(), f'"t":{min(k, insiders + 1)}'.encode())
    assert fewer != fine.published
    if cut:
        with pytest.raises(ParameterError, match=r"t must be at least|cut the others into parts"):
            SurveyParameters.parse(fewer)
    else:
        assert SurveyParameters.parse(fewer).k == k

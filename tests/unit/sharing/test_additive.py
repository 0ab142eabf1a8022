import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream, SystemEntropy
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing import additive, field
from faircount.sharing.additive import combine, exchange, split
from faircount.sharing.field import _frugal_word, dtype_for, sum_rows, uniform

moduli = st.one_of(
    st.sampled_from([2, 3, 251, 1009, 10007, 65521, 100003, 2**32 - 5, 2**61 - 1]),
    st.integers(2, 2**62),
)


@given(moduli, st.integers(1, 9), st.integers(0, 5), st.integers(0, 99))
def test_shares_add_up_to_the_secret(q, parties, size, seed):
    secret = uniform(q, size, SeededStream(seed))
    shares = split(secret, parties, q, SystemEntropy())
    assert shares.shape == (parties, size)
    assert shares.dtype == dtype_for(q)
    assert np.array_equal(combine(shares, q), secret)


@given(moduli, st.integers(1, 5), st.integers(0, 99))
def test_sums_of_shares_are_shares_of_the_sum(q, parties, seed):
    secrets = uniform(q, (3, 4), SeededStream(seed))
    shares = np.stack([split(secret, parties, q, SystemEntropy()) for secret in secrets])
    assert np.array_equal(combine(sum_rows(shares, q), q), sum_rows(secrets, q))


@pytest.mark.parametrize(
    ("q", "parties"), [(2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (3, 4), (5, 2), (5, 3), (7, 3)]
)
def test_all_but_one_share_are_uniform_whatever_the_secret(q, parties, tape):
    """Exact, by enumeration: any m-1 shares are uniform, whatever the secret."""
    choices = list(itertools.product(range(q), repeat=parties - 1))
    for secret in range(q):
        dealt = [
            split([secret], parties, q, tape.of_words(words, np.uint16))[:, 0].tolist()
            for words in choices
        ]
        for missing in range(parties):
            seen = Counter(tuple(shares[:missing] + shares[missing + 1 :]) for shares in dealt)
            assert seen == Counter(choices)


def test_the_items_of_a_vector_are_shared_independently(tape):
    """Exact: over F_3 the first party's share of two items is uniform, whatever the secret."""
    choices = list(itertools.product(range(3), repeat=2))
    for secret in choices:
        dealt = [split(secret, 2, 3, tape.of_words(words, np.uint16)) for words in choices]
        for party in range(2):
            assert Counter(tuple(shares[party].tolist()) for shares in dealt) == Counter(choices)


def test_the_first_shares_are_drawn_and_the_last_is_what_is_left(tape):
    assert split([3, 0], 3, 1009, tape.of_words([1, 2, 1008, 5], np.uint16)).tolist() == [
        [1, 2],
        [1008, 5],
        [3, 1002],
    ]


def test_one_party_holds_the_secret_itself(tape):
    assert split([3, 1], 1, 5, tape(b"")).tolist() == [[3, 1]]
    assert exchange([[3, 1], [4, 1]], 1, 5, tape(b"")).tolist() == [[2, 2]]


def test_bad_input_is_refused():
    source = SystemEntropy()
    for parties in (0, -1, 2.0, True):
        with pytest.raises(ParameterError, match="parties"):
            split([1], parties, 5, source)
        with pytest.raises(ParameterError, match="parties"):
            exchange([[1]], parties, 5, source)
    for values in ([5], [-1], [0.5]):
        with pytest.raises(ShareError):
            split(values, 2, 5, source)
        with pytest.raises(ShareError):
            combine([values], 5)
        with pytest.raises(ShareError):
            exchange([values], 2, 5, source)
    for shares in (3, np.zeros((0, 2), dtype=np.uint8)):
        with pytest.raises(ShareError, match="no shares"):
            combine(shares, 5)
    with pytest.raises(ShareError, match="one row per user"):
        exchange([1, 2], 2, 5, source)


# everybody with everybody


@settings(max_examples=50)
@given(
    moduli,
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 6),
    st.sampled_from([1, 40, 300, 1 << 20]),
)
def test_exchange_keeps_the_sum(q, users, parties, items, tile):
    responses = uniform(q, (users, items), SeededStream(users))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additive, "_TILE_BYTES", tile)
        sums = exchange(responses, parties, q, SystemEntropy())
    assert sums.shape == (parties, items)
    assert np.array_equal(combine(sums, q), sum_rows(responses, q))


def test_exchange_is_every_user_sharing_with_everybody():
    """Algorithm 2, lines 8-10, in Python integers with the same random elements."""
    users, parties, items, q = 23, 17, 5, 1009
    responses = uniform(q, (users, items), SeededStream(1))
    drawn = uniform(q, (users, parties - 1, items), SeededStream(2)).tolist()
    received = [[0] * items for _ in range(parties)]
    for row, shares in zip(responses.tolist(), drawn, strict=True):
        last = [(value - sum(share[j] for share in shares)) % q for j, value in enumerate(row)]
        for party, share in enumerate([*shares, last]):
            received[party] = [(a + b) % q for a, b in zip(received[party], share, strict=True)]
    assert exchange(responses, parties, q, SeededStream(2)).tolist() == received


@pytest.mark.parametrize("tile", [1, 100, 1 << 10, 1 << 20])
@pytest.mark.parametrize(
    ("q", "share"), [(1009, 1000), (65521, 65520), (100003, 100002), (2**61 - 1, 2**61 - 2)]
)
def test_every_share_reaches_its_party_in_every_tile(tile, q, share, constant, monkeypatch):
    """All drawn shares are equal: the first m-1 parties hold n of them, the last one the rest."""
    monkeypatch.setattr(additive, "_TILE_BYTES", tile)
    users, parties, items = 37, 29, 3
    source = constant(share, _frugal_word(q).itemsize)
    sums = exchange(np.full((users, items), q - 1, dtype=dtype_for(q)), parties, q, source)
    assert sums[:-1].tolist() == [[users * share % q] * items] * (parties - 1)
    assert sums[-1].tolist() == [(users * (q - 1) - users * (parties - 1) * share) % q] * items


@pytest.mark.parametrize(
    ("q", "users", "parties"), [(2, 1, 3), (2, 2, 2), (3, 2, 2), (3, 1, 3), (2, 2, 3)]
)
def test_what_parties_send_says_no_more_than_the_sum(q, users, parties, tape):
    """Exact, by enumeration: any m-1 of the sums are uniform, whatever the users hold."""
    choices = list(itertools.product(range(q), repeat=users * (parties - 1)))
    expected = Counter(itertools.product(range(q), repeat=parties - 1))
    times = len(choices) // len(expected)
    for held in itertools.product(range(q), repeat=users):
        column = np.array(held)[:, np.newaxis]
        sent = [
            exchange(column, parties, q, tape.of_words(words, np.uint16))[:, 0].tolist()
            for words in choices
        ]
        for missing in range(parties):
            seen = Counter(tuple(sums[:missing] + sums[missing + 1 :]) for sums in sent)
            assert seen == Counter(dict.fromkeys(expected, times))


def test_progress_ends_with_all_users(monkeypatch):
    monkeypatch.setattr(additive, "_TILE_BYTES", 1 << 10)
    told = []
    exchange(np.zeros((50, 3), dtype=np.uint8), 20, 5, SystemEntropy(), progress=told.append)
    assert told == sorted(set(told))
    assert told[-1] == 50
    assert len(told) > 1


def test_memory_stays_bounded():
    """120 million shares of 2 bytes pass through; far less than a tenth of them is ever held."""
    responses = np.zeros((2000, 30), dtype=np.uint16)
    tracemalloc.start()
    exchange(responses, 2000, 2003, SystemEntropy())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000


def test_rows_of_unequal_length_are_refused() -> None:
    with pytest.raises(ShareError, match="equal length"):
        combine([[1, 2], [3]], 11)
    with pytest.raises(ShareError, match="equal length"):
        field.from_signed([[1, 2], [3]], 11)

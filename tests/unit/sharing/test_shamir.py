import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing import shamir
from faircount.sharing.primes import smallest_prime_above
from faircount.sharing.shamir import PRIME, SHARE_BYTES, KeyShare, combine_key, split_key

SECRET = bytes(range(32))


def split(secret=SECRET, threshold=3, count=5):
    return split_key(secret, threshold, count, SystemEntropy())


def test_the_prime_is_the_smallest_above_all_keys():
    assert smallest_prime_above(1 << 256) == PRIME


@pytest.mark.parametrize(("threshold", "count"), [(2, 2), (2, 5), (3, 5), (5, 6), (7, 7)])
@pytest.mark.parametrize("secret", [SECRET, bytes(32), b"\xff" * 32])
def test_every_set_of_enough_shares_gives_the_key(threshold, count, secret):
    shares = split(secret, threshold, count)
    assert [share.index for share in shares] == list(range(1, count + 1))
    for size in range(threshold, count + 1):
        for chosen in (
            itertools.permutations(shares, size)
            if count < 6
            else itertools.combinations(shares, size)
        ):
            assert combine_key(chosen, threshold) == secret


@settings(max_examples=30)
@given(st.binary(min_size=32, max_size=32), st.integers(2, 12), st.integers(0, 12), st.randoms())
def test_any_key_comes_back(secret, threshold, more, shuffler):
    shares = split(secret, threshold, threshold + more)
    shuffler.shuffle(shares)
    assert combine_key(shares[:threshold], threshold) == secret


def test_the_largest_graph_of_the_protocol():
    shares = split(SECRET, 33, 94)
    assert combine_key(shares[40:73], 33) == SECRET


# fewer shares say nothing


@pytest.mark.parametrize(
    ("prime", "threshold", "count"), [(5, 2, 4), (7, 2, 3), (5, 3, 4), (7, 3, 4), (5, 4, 4)]
)
def test_too_few_shares_are_uniform_whatever_the_secret(prime, threshold, count, tape):
    """Exact, by enumeration: threshold - 1 shares are uniform, whatever the secret."""
    choices = list(itertools.product(range(prime), repeat=threshold - 1))
    for secret in range(prime):
        dealt = [
            shamir._deal(secret, threshold, count, prime, tape(bytes(choice))) for choice in choices
        ]
        for holders in itertools.combinations(range(count), threshold - 1):
            assert Counter(tuple(values[i] for i in holders) for values in dealt) == Counter(
                choices
            )


@pytest.mark.parametrize(("prime", "threshold"), [(5, 2), (7, 3), (11, 4)])
def test_too_few_shares_fit_every_secret(prime, threshold):
    """Exact: for every secret there is one further share with which the known ones give it."""
    seen = [(index, (3 * index + 1) % prime) for index in range(1, threshold)]
    further = ((threshold, value) for value in range(prime))
    assert sorted(shamir._interpolate(0, [*seen, point], prime) for point in further) == list(
        range(prime)
    )


@pytest.mark.parametrize("prime", [2, 3, 5, 7, 127, 251, 257])
def test_coefficients_are_exactly_uniform(prime, tape):
    """Exact, over all byte strings: every number comes from equally many of them."""
    size = (prime.bit_length() + 7) // 8
    stop = (prime - 1).to_bytes(size, "big")
    drawn, again = Counter(), 0
    for octets in itertools.product(range(256), repeat=size):
        source = tape(bytes(octets) + stop)
        number = shamir._uniform_below(prime, source)
        if source.left:
            drawn[number] += 1
        else:
            again += 1
    per_number = 256**size >> prime.bit_length()
    assert drawn == Counter(dict.fromkeys(range(prime), per_number))
    assert again == 256**size - per_number * prime


def test_coefficients_reach_beyond_256_bits(tape):
    above, largest = PRIME.to_bytes(33, "big"), (PRIME - 1).to_bytes(33, "big")
    assert shamir._uniform_below(PRIME, tape(above + largest)) == PRIME - 1
    assert (
        shamir._uniform_below(PRIME, tape(b"\xfe" + largest[1:])) == 296
    )  # of the first byte one bit counts


# what does not belong together is refused


def test_too_few_shares_are_refused():
    for shares in ([], split()[:2]):
        with pytest.raises(ShareError, match="3 key shares are needed"):
            combine_key(shares, 3)


def test_the_same_share_twice_is_refused():
    shares = split()
    with pytest.raises(ShareError, match="same index"):
        combine_key([shares[0], shares[1], shares[0]], 3)
    with pytest.raises(ShareError, match="same index"):
        combine_key([*shares, shares[0]], 3)


def test_shares_of_two_dealings_are_refused():
    one, two = split(), split()
    with pytest.raises(ShareError, match="belong together"):
        combine_key([one[0], one[1], two[2]], 3)


@pytest.mark.parametrize("threshold", [2, 4])
def test_another_threshold_is_refused(threshold):
    with pytest.raises(ShareError, match="belong together"):
        combine_key(split(), threshold)


def test_a_changed_share_among_more_than_enough_is_seen():
    shares = split()
    for at, share in enumerate(shares):
        changed = [*shares[:at], replace(share, value=(share.value + 1) % PRIME), *shares[at + 1 :]]
        with pytest.raises(ShareError, match="no common polynomial"):
            combine_key(changed, 3)


def test_a_number_too_large_for_a_key_is_refused():
    values = shamir._deal(1 << 256, 3, 3, PRIME, SystemEntropy())
    with pytest.raises(ShareError, match="no common polynomial"):
        combine_key([KeyShare(i, 3, bytes(8), value) for i, value in enumerate(values, start=1)], 3)


@pytest.mark.parametrize(
    ("threshold", "count"), [(1, 3), (4, 3), (0, 2), (2, 1), (2, 65536), (2.0, 3), (True, 3)]
)
def test_numbers_of_shares_out_of_range(threshold, count):
    with pytest.raises(ParameterError):
        split(SECRET, threshold, count)


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33)])
def test_a_key_has_32_bytes(secret):
    with pytest.raises(ShareError, match="32 bytes"):
        split(secret)


# bytes and text


@given(
    st.integers(1, 65535),
    st.integers(2, 65535),
    st.binary(min_size=8, max_size=8),
    st.one_of(st.integers(0, PRIME - 1), st.sampled_from([0, PRIME - 1])),
)
def test_from_bytes_undoes_to_bytes(index, threshold, dealing, value):
    share = KeyShare(index, threshold, dealing, value)
    data = share.to_bytes()
    assert len(data) == SHARE_BYTES
    assert KeyShare.from_bytes(data) == share


def test_the_encoding_is_fixed():
    data = KeyShare(258, 3, b"dealing!", 2**256 + 5).to_bytes()
    assert data == b"\x01\x02\x00\x03dealing!\x01" + bytes(31) + b"\x05"


@pytest.mark.parametrize(
    "data",
    [
        *(b"", bytes(44), bytes(46)),
        b"\x00\x00\x00\x02" + bytes(41),  # index 0 would be the key itself
        b"\x00\x01\x00\x01" + bytes(41),  # threshold 1
        b"\x00\x01\x00\x02" + bytes(8) + PRIME.to_bytes(33, "big"),
        b"\x00\x01\x00\x02" + bytes(8) + b"\xff" * 33,
    ],
)
def test_malformed_bytes_are_refused(data):
    with pytest.raises(ShareError):
        KeyShare.from_bytes(data)


def test_repr_does_not_show_the_value():
    share = KeyShare(1, 2, bytes(8), 123456789123456789)
    for text in (repr(share), str(share), f"{[share]}"):
        assert "123456789" not in text
        assert f"{123456789123456789:x}" not in text

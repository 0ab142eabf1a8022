import os
import subprocess
import sys

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from faircount.core import entropy
from faircount.core.entropy import SeededStream, SystemEntropy, fill_from, key_stream
from faircount.core.errors import ParameterError

FORK = """
import os
from faircount.core.entropy import SystemEntropy
source = SystemEntropy()
source.bytes(16)
receive, send = os.pipe()
if os.fork() == 0:
    os.write(send, source.bytes(32))
    os._exit(0)
child = os.read(receive, 32)
os.wait()
print(child.hex(), source.bytes(32).hex())
"""


@pytest.fixture
def keys_drawn(monkeypatch):
    """Every key that the operating system was asked for, in order."""
    drawn = []

    def urandom(size):
        drawn.append(bytes([len(drawn)]) * size)
        return drawn[-1]

    monkeypatch.setattr(entropy.os, "urandom", urandom)
    return drawn


def stream_of(key, size):
    """The key stream from single encrypted counter blocks, without the library's counter mode."""
    blocks = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305 - a block at a time is what is tested
    count = -(-size // 16)
    return blocks.update(b"".join(t.to_bytes(16, "big") for t in range(count)))[:size]


@pytest.mark.parametrize(
    "size", [0, 1, 16, 100, entropy._BLOCK, entropy._BLOCK + 1, 3 * entropy._BLOCK + 7]
)
def test_key_stream_is_the_encrypted_counter(size):
    key = bytes(range(32))
    out = np.full(size, 7, dtype=np.uint8)
    fill_from(key_stream(key), out)
    assert out.tobytes() == stream_of(key, size)


def test_key_stream_goes_on_where_it_stopped():
    key, stream = bytes(32), key_stream(bytes(32))
    parts = [np.empty(size, dtype=np.uint8) for size in (5, 16, 0, 33)]
    for part in parts:
        fill_from(stream, part)
    assert b"".join(part.tobytes() for part in parts) == stream_of(key, 54)


def test_system_entropy_stretches_a_key_of_the_operating_system(keys_drawn):
    assert SystemEntropy().bytes(40) == stream_of(bytes(32), 40)
    assert [len(key) for key in keys_drawn] == [32]


def test_every_object_has_its_own_key(keys_drawn):
    assert SystemEntropy().bytes(32) != SystemEntropy().bytes(32)
    assert len(keys_drawn) == 2


def test_a_new_key_after_the_limit(keys_drawn, monkeypatch):
    monkeypatch.setattr(entropy, "_REKEY_AFTER", 64)
    source = SystemEntropy()
    drawn = [source.bytes(size) for size in (60, 4, 1, 200, 1)]
    assert len(keys_drawn) == 4
    assert drawn[0] + drawn[1] == stream_of(keys_drawn[0], 64)
    assert drawn[2:] == [stream_of(keys_drawn[i], size) for i, size in ((1, 1), (2, 200), (3, 1))]


def test_a_new_key_in_another_process(keys_drawn, monkeypatch):
    source = SystemEntropy()
    source.bytes(16)
    here = os.getpid()
    monkeypatch.setattr(entropy.os, "getpid", lambda: here + 1)
    assert source.bytes(16) == stream_of(keys_drawn[1], 16)


def test_parent_and_child_of_a_fork_draw_different_bytes():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FORK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    child, parent = done.stdout.split()
    assert len(child) == len(parent) == 64
    assert child != parent


@pytest.mark.parametrize(("args", "named"), [((1,), {}), ((), {"seed": 1}), ((b"key",), {})])
def test_system_entropy_takes_no_seed(args, named):
    with pytest.raises(TypeError):
        SystemEntropy(*args, **named)


def test_a_seeded_stream_repeats_itself():
    first, again, other = SeededStream(5), SeededStream(5), SeededStream(6)
    assert first.bytes(1000) == again.bytes(1000)
    assert first.bytes(16) == again.bytes(16)
    assert first.bytes(16) != other.bytes(16)


def test_a_seeded_stream_does_not_depend_on_how_it_is_read():
    first, again = SeededStream(5), SeededStream(5)
    assert first.bytes(3) + first.bytes(0) + first.bytes(61) == again.bytes(64)


@pytest.mark.parametrize("seed", [1.0, "1", None, True, -1])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ParameterError, match="seed"):
        SeededStream(seed)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_words_are_the_stream_in_the_machines_order(kind):
    words = SeededStream(1).words(9, kind)
    assert words.dtype == kind
    assert words.tobytes() == SeededStream(1).bytes(9 * words.itemsize)


def test_repr_shows_no_key(keys_drawn):
    source = SystemEntropy()
    source.bytes(1)
    assert repr(source) == "SystemEntropy()"
    assert repr(SeededStream(3)) == "SeededStream(3)"

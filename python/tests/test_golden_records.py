# SPDX-License-Identifier: Apache-2.0
"""Files that TensorFlow wrote (tests/golden), cut everywhere and with every bit flipped: no row is ever wrong, and none is lost unsaid."""

import io
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
from tensorflowonspark import _tfos, tfrecord  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
PLAIN = ["examples.tfrecord", "sequences.tfrecord"]
PACKED = ["examples.tfrecord.gz", "examples.tfrecord.zlib"]


def frame_ends(content):
    """Where the file may end without a record being cut: a size of 8 bytes, 4 of its checksum, the record, 4 of its own."""
    ends = [0]
    while ends[-1] < len(content):
        ends.append(ends[-1] + 16 + int.from_bytes(content[ends[-1]:ends[-1] + 8], "little"))
    return ends


def take_all(content, compression):
    """The records before the damage, and its words, or None."""
    records, iterator = [], tfrecord.read(io.BytesIO(content), form="bytes", batch_rows=1, compression=compression)
    while True:
        try:
            records.append(next(iterator))
        except StopIteration:
            return records, None
        except _tfos.CorruptError as error:
            return records, str(error)


@pytest.mark.parametrize("name", PLAIN)
def test_s68_plain_files(name):
    content = (GOLDEN / name).read_bytes()
    whole, damage = take_all(content, "none")
    assert damage is None and len(whole) > 1
    ends = frame_ends(content)
    for size in range(len(content)):
        records, damage = take_all(content[:size], "none")
        assert records == whole[:len(records)] and (damage is None) == (size in ends), size
        assert len(records) == sum(end <= size for end in ends) - 1
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        records, damage = take_all(bytes(flipped), "none")
        assert damage is not None, bit
        assert records == whole[:sum(end <= bit // 8 for end in ends) - 1], bit


@pytest.mark.parametrize("name", PACKED)
def test_s68_compressed_files(name):
    """A flip that changes nothing of what is held, as in the time that gzip's head tells, is no damage; any other is reported."""
    content, compression = (GOLDEN / name).read_bytes(), {"gz": "gzip", "zlib": "zlib"}[name.rsplit(".", 1)[1]]
    whole, damage = take_all(content, compression)
    assert damage is None and len(whole) > 1
    for size in range(1, len(content)):
        records, damage = take_all(content[:size], compression)
        assert damage is not None and records == whole[:len(records)], size
    harmless = 0
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        records, damage = take_all(bytes(flipped), compression)
        assert records == whole[:len(records)], bit
        assert damage is not None or records == whole, bit
        harmless += damage is None
    assert harmless < len(content) / 2

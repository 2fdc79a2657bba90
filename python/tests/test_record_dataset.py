# SPDX-License-Identifier: Apache-2.0
"""tfrecord.dataset: what TensorFlow's own reader and parser give, in the same order, and what is refused."""

import gc
import os

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tensorflowonspark import tfrecord

ROWS = 53
SCHEMA = pa.schema({
    "number": pa.int64(), "ratio": pa.float32(), "text": pa.string(), "raw": pa.binary(), "pixels": pa.list_(pa.float32()),
    "words": pa.list_(pa.string()), "ids": pa.list_(pa.int64()),
})  # fmt: skip
FEATURES = {
    "number": tf.io.FixedLenFeature([], tf.int64),
    "ratio": tf.io.FixedLenFeature([], tf.float32),
    "text": tf.io.FixedLenFeature([], tf.string),
    "raw": tf.io.FixedLenFeature([], tf.string),
    "pixels": tf.io.FixedLenFeature([2, 3], tf.float32),
    "words": tf.io.RaggedFeature(tf.string),
    "ids": tf.io.RaggedFeature(tf.int64),
}
SHAPES = {"pixels": (2, 3)}


def example(i):
    feature = {
        "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[i - 20])),
        "ratio": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 7])),
        "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"row {i} é".encode()])),
        "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([i % 256, 255]) * i])),
        "pixels": tf.train.Feature(float_list=tf.train.FloatList(value=range(i, i + 6))),
        "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w"] * (i % 4))),
        "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 5))),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def write(folder, counts, compression=""):
    paths, number = [], 0
    for k, count in enumerate(counts):
        paths.append(str(folder / f"part-{k:03d}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1], compression) as writer:
            for _ in range(count):
                writer.write(example(number))
                number += 1
    return paths


@pytest.fixture
def paths(tmp_path):
    return write(tmp_path, [20, 0, 1, 30, 2])


def open_files(folder):
    links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    return [link for link in links if link.startswith(str(folder))]


def numbers(dataset):
    return [batch["number"].numpy().tolist() for batch in dataset]


def assert_same(ours, theirs):
    assert list(ours) == list(theirs)
    for mine, other in zip(ours.values(), theirs.values()):
        assert type(mine) is type(other) and mine.dtype == other.dtype
        if isinstance(mine, tf.RaggedTensor):
            assert mine.to_list() == other.to_list()
        else:
            np.testing.assert_array_equal(mine.numpy(), other.numpy())


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("batch_size", [1, 7, 20, 100])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_as_tensorflow_reads_and_parses(tmp_path, compression, batch_size, drop_remainder):
    paths = write(tmp_path, [20, 0, 1, 30, 2], compression)
    ours = tfrecord.dataset(paths, SCHEMA, batch_size, columns=sorted(FEATURES), shapes=SHAPES, ragged=["words", "ids"], drop_remainder=drop_remainder)
    theirs = tf.data.TFRecordDataset(paths, compression).batch(batch_size, drop_remainder).map(lambda raw: tf.io.parse_example(raw, FEATURES))
    expected = list(theirs)
    for _ in range(2):  # each pass begins again
        batches = list(ours)
        assert len(batches) == len(expected)
        for mine, other in zip(batches, expected):
            assert_same({name: mine[name] for name in sorted(mine)}, {name: other[name] for name in sorted(other)})
    for name, spec in ours.element_spec.items():
        assert spec.dtype == theirs.element_spec[name].dtype
        rows = spec.shape[0]
        assert rows == (batch_size if drop_remainder else None)


def test_the_structure_is_known_without_reading(tmp_path):
    missing = str(tmp_path / "none")
    dataset = tfrecord.dataset(missing, SCHEMA, 4, shapes=SHAPES, padded=["words"], ragged="ids")
    assert dataset.element_spec["pixels"] == tf.TensorSpec([None, 2, 3], tf.float32)
    assert dataset.element_spec["words"] == tf.TensorSpec([None, None], tf.string)
    assert dataset.element_spec["ids"] == tf.RaggedTensorSpec([None, None], tf.int64)
    with pytest.raises(tf.errors.NotFoundError, match="cannot open .*none"):
        next(iter(dataset))


def test_the_first_batch_decides_what_is_left_open(paths):
    dataset = tfrecord.dataset(paths, SCHEMA, 10)
    assert not open_files(os.path.dirname(paths[0]))
    assert dataset.element_spec["pixels"] == tf.TensorSpec([None, 6], tf.float32)
    assert isinstance(dataset.element_spec["ids"], tf.RaggedTensorSpec)
    assert next(iter(tfrecord.dataset(paths, batch_size=10)))["pixels"].shape == [10, 6]  # the schema too
    padded = next(iter(tfrecord.dataset(paths, SCHEMA, 10, columns=["ids", "words"], padded={"ids": 6, "words": None})))
    assert list(padded) == ["ids", "words"]
    assert padded["ids"].numpy()[3].tolist() == [0, 1, 2, 0, 0, 0] and padded["words"].shape == [10, 3]


@pytest.mark.parametrize("reads", [0, 1, 2, 3, 8, -1])
def test_files_side_by_side(paths, reads):
    dataset = tfrecord.dataset(paths, SCHEMA, 6, shapes=SHAPES, columns=["number", "pixels"], num_parallel_reads=reads)
    first, second = numbers(dataset), numbers(dataset)
    assert first == second
    assert sorted(sum(first, [])) == [i - 20 for i in range(ROWS)]
    assert [len(batch) for batch in first[:-1]] == [6] * (len(first) - 1)


def test_files_and_rows_by_chance(tmp_path):
    paths = write(tmp_path, [5] * 10)
    options = {"columns": ["number"], "batch_size": 5}
    by_file = tfrecord.dataset(paths, SCHEMA, shuffle_files=True, seed=1, **options)
    passes = [numbers(by_file) for _ in range(3)]
    assert len({str(one) for one in passes}) == 3
    assert all(batch == list(range(batch[0], batch[0] + 5)) for one in passes for batch in one)
    assert all(sorted(sum(one, [])) == list(range(-20, 30)) for one in passes)
    assert numbers(tfrecord.dataset(paths, SCHEMA, shuffle_files=True, seed=1, **options)) == passes[0]
    by_row = tfrecord.dataset(paths, SCHEMA, shuffle_buffer=20, seed=1, num_parallel_reads=3, **options)
    passes = [numbers(by_row) for _ in range(3)]
    assert len({str(one) for one in passes}) == 3
    assert all(sorted(sum(one, [])) == list(range(-20, 30)) for one in passes)
    assert numbers(tfrecord.dataset(paths, SCHEMA, shuffle_buffer=20, seed=1, num_parallel_reads=3, **options)) == passes[0]


def test_passes_do_not_disturb_each_other(paths):
    dataset = tfrecord.dataset(paths, SCHEMA, 4, columns=["number"])
    expected = numbers(dataset)
    one, other = iter(dataset), iter(dataset)
    mixed = [(next(one)["number"].numpy().tolist(), next(other)["number"].numpy().tolist()) for _ in expected]
    assert mixed == list(zip(expected, expected))
    both = tf.data.Dataset.zip((dataset, dataset.skip(1))).map(lambda a, b: (a["number"][0], b["number"][0]))
    assert [(int(a), int(b)) for a, b in both] == [(a[0], b[0]) for a, b in zip(expected, expected[1:])]
    assert numbers(dataset.repeat(3)) == 3 * expected
    assert numbers(dataset.concatenate(dataset)) == 2 * expected
    interleaved = tf.data.Dataset.range(2).interleave(lambda _: dataset, cycle_length=2, num_parallel_calls=2, deterministic=True)
    assert numbers(interleaved) == [batch for batch in expected for _ in range(2)]


@pytest.mark.parametrize("reads", [1, 4])
def test_a_pass_that_is_given_up_is_closed(tmp_path, reads):
    paths = write(tmp_path, [200, 200])
    dataset = tfrecord.dataset(paths, SCHEMA, 4, columns=["number"], num_parallel_reads=reads)
    for _ in dataset:
        break
    iterator = iter(dataset)
    next(iterator)
    assert open_files(tmp_path)
    del iterator
    gc.collect()
    assert not open_files(tmp_path)
    list(dataset.take(2))
    list(dataset)
    assert not open_files(tmp_path)
    assert dataset.counts().records >= 400


def test_what_is_made_of_a_dataset_keeps_it(paths):
    def doubled():
        return tfrecord.dataset(paths, SCHEMA, 53, columns=["number"]).map(lambda batch: 2 * batch["number"])

    dataset = doubled()
    gc.collect()
    assert next(iter(dataset)).numpy().tolist() == [2 * (i - 20) for i in range(ROWS)]


def test_in_a_function_and_in_fit(paths):
    dataset = tfrecord.dataset(paths, SCHEMA, 8, columns=["pixels", "ratio"], shapes={"pixels": 6})

    @tf.function
    def total():
        sums = tf.constant(0.0)
        for batch in dataset:
            sums += tf.reduce_sum(batch["pixels"])
        return sums

    assert float(total()) == float(total()) == sum(sum(range(i, i + 6)) for i in range(ROWS))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(dataset.map(lambda batch: (batch["pixels"] / 60, batch["ratio"])), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


def test_s61_nulls(tmp_path):
    table = pa.table({"x": pa.array([1, None, 3], pa.int64())})
    tfrecord.write(tmp_path / "a", table)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{tmp_path}/a, row 1: column x"):
        list(tfrecord.dataset(tmp_path / "a", table.schema, 2))
    filled = tfrecord.dataset(tmp_path / "a", table.schema, 2, null_value={"x": -1})
    assert [batch["x"].numpy().tolist() for batch in filled] == [[1, -1], [3]]


@pytest.mark.parametrize("reads", [0, 2])
def test_s68_damage(tmp_path, reads):
    paths = write(tmp_path, [20, 20])
    with open(paths[0], "r+b") as file:
        file.seek(os.path.getsize(paths[0]) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    strict = tfrecord.dataset(paths, SCHEMA, 4, columns=["number"], num_parallel_reads=reads)
    with pytest.raises(tf.errors.DataLossError, match=f"{paths[0]}: offset [0-9]+: the checksum of a record"):
        list(strict)
    skipping = tfrecord.dataset(paths, SCHEMA, 4, columns=["number"], on_damage="skip_record", num_parallel_reads=reads)
    assert len(sum(numbers(skipping), [])) == 39
    assert skipping.counts().damages == 1 and skipping.counts().skipped_bytes > 0
    by_file = tfrecord.dataset(paths, SCHEMA, 4, columns=["number"], on_damage="skip_file", num_parallel_reads=reads)
    assert 20 <= len(sum(numbers(by_file), [])) < 40


def test_other_records(tmp_path):
    records = [b"", b"one", bytes(2000)]
    tfrecord.write(tmp_path / "raw", records, record_type="ByteArray")
    raw = tfrecord.dataset(tmp_path / "raw", batch_size=2, record_type="ByteArray")
    assert [text for batch in raw for text in batch["byteArray"].numpy().tolist()] == records
    table = pa.table({"context": [1, 2], "steps": [[[1.0], [2.0, 3.0]], []]}, pa.schema({"context": pa.int64(), "steps": pa.list_(pa.list_(pa.float32()))}))
    tfrecord.write(tmp_path / "sequence", table, record_type="SequenceExample")
    (batch,) = tfrecord.dataset(tmp_path / "sequence", table.schema, 2, record_type="SequenceExample", ragged=["steps"])
    assert batch["steps"].to_list() == [[[1.0], [2.0, 3.0]], []]


def test_wrong_arguments(tmp_path):
    [path] = write(tmp_path, [3])
    for wrong, words in [
        ({"batch_size": 0}, "batch_size must be an integer"),
        ({"num_parallel_reads": -2}, "num_parallel_reads must be a number of files"),
        ({"shuffle_files": 1}, "shuffle_files must be True or False"),
        ({"prefetch": -2}, "prefetch must be a number of batches"),
        ({"shapes": {"pixels": (4,)}}, "column pixels"),
        ({"shapes": {"none": (4,)}}, "there is no column none"),
        ({"columns": ["none"]}, "there is no column 'none'"),
        ({"dtypes": "nonsense"}, "dtypes must be dtypes"),
    ]:
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=words):
            list(tfrecord.dataset(path, SCHEMA, **{"batch_size": 3, **wrong}))
    with pytest.raises(ValueError, match="a dataset reads local files"), open(path, "rb") as file:
        tfrecord.dataset(file, SCHEMA)
    cast = tfrecord.dataset(path, SCHEMA, 3, columns=["number"], dtypes={"number": "float32"})
    assert next(iter(cast))["number"].dtype == tf.float32

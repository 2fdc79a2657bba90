# SPDX-License-Identifier: Apache-2.0
"""TFRecord files: what we write TensorFlow reads, what TensorFlow writes we read, and what cannot be is refused."""

import decimal
import io
import itertools
import os
import threading
import warnings

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorflowonspark import _tfos, tfrecord


def feature(values):
    """A Feature of a list of ints, floats or bytes; of no kind for None."""
    if values is None:
        return tf.train.Feature()
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature={name: feature(values) for name, values in features.items()}))


def write_with_tensorflow(path, messages, compression=""):
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for message in messages:
            writer.write(message.SerializeToString())


def values_of(one):
    """The values of a Feature, as a list, or None for one of no kind."""
    kind = one.WhichOneof("kind")
    return None if kind is None else list(getattr(one, kind).value)


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_s64_tensorflow_writes_and_we_read(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    write_with_tensorflow(path, [example(x=[i], y=[float(i), 0.5], s=[b"text"]) for i in range(1000)], compression)
    schema = tfrecord.infer_schema(path)
    assert {field.name: field.type for field in schema} == {"x": pa.int64(), "y": pa.list_(pa.float32()), "s": pa.string()}
    read = rows(tfrecord.read(path, batch_rows=300))
    assert len(read) == 1000 and read[7] == {"x": 7, "y": [7.0, 0.5], "s": "text"}
    arrays = list(tfrecord.read(path, form="numpy", columns=["x", "y"]))
    assert [len(batch["x"]) for batch in arrays] == [1000]
    assert arrays[0]["x"].dtype == np.int64 and arrays[0]["x"][-1] == 999


@pytest.mark.parametrize("on_damage", ["error", "skip_record"])
def test_the_schema_of_files_is_inferred_one_by_one_and_together(tmp_path, on_damage):
    """Many files to a call, and file objects between them, each of which has the limit's records."""
    paths = [tmp_path / f"part-{i:03}" for i in range(200)]
    for i, path in enumerate(paths):
        write_with_tensorflow(path, [example(x=[i]), example(**{f"only{i % 3}": [b"text"]})])
    types = {"x": pa.int64(), **{f"only{i}": pa.string() for i in range(3)}}
    with open(paths[1], "rb") as file:
        schema = tfrecord.infer_schema([paths[0], file, *paths[2:]], on_damage=on_damage)
    assert {field.name: field.type for field in schema} == types
    assert tfrecord.infer_schema(tmp_path, limit=1, on_damage=on_damage).names == ["x"]
    write_with_tensorflow(paths[100], [example(x=[0.5])])
    assert tfrecord.infer_schema(tmp_path, on_damage=on_damage).field("x").type == pa.float32()
    paths[150].write_bytes(paths[150].read_bytes()[:-1])
    if on_damage == "error":
        with pytest.raises(_tfos.CorruptError, match="part-150: offset "):
            tfrecord.infer_schema(paths[101:])
    else:
        assert tfrecord.infer_schema(paths[101:], on_damage=on_damage).names == ["x", "only2", "only0", "only1"]
    paths[151].unlink()
    with pytest.raises(_tfos.NotFoundError, match="part-151"):
        tfrecord.infer_schema(paths[149:], on_damage="skip_record")
    with pytest.raises(TypeError, match="paths: expected a list of one path"):
        _tfos.infer_schema([])


def test_arrays_are_written_as_they_are_read(tmp_path):
    rng = np.random.default_rng(7)
    arrays = {
        "label": np.arange(500),
        "pixels": rng.random((500, 28), np.float32),
        "text": np.array([f"n{i}" for i in range(500)], object),
        "tags": np.array([np.arange(i % 3) for i in range(500)] + [None], object)[:500],
    }
    assert tfrecord.write(tmp_path / "a", arrays) == 0
    tfrecord.write(tmp_path / "b", tfrecord.read(tmp_path / "a", form="numpy", batch_rows=7))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    [back] = tfrecord.read(tmp_path / "b", form="numpy")
    for name in ("label", "pixels"):
        np.testing.assert_array_equal(back[name], arrays[name])
        assert back[name].dtype == arrays[name].dtype
    assert list(back["text"]) == list(arrays["text"]) and [list(tags) for tags in back["tags"]] == [list(tags) for tags in arrays["tags"]]


def test_arrays_of_more_dimensions_are_lists_of_lists(tmp_path):
    cube = np.arange(24).reshape(2, 3, 4)
    tfrecord.write(tmp_path / "a", {"cube": cube, "none": np.zeros((2, 0), np.float32)}, record_type="SequenceExample")
    [batch] = tfrecord.read(tmp_path / "a", record_type="SequenceExample")
    assert batch.column("cube").to_pylist() == cube.tolist()
    with pytest.raises(_tfos.UnsupportedError, match="column cube"):
        tfrecord.write(tmp_path / "b", {"cube": cube})
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("data, words", [
    ("text", "data: expected a pyarrow.Table"),
    ([b"raw"], "data: expected batches or dicts of arrays, not <class 'bytes'>; with record_type='ByteArray' each is a record"),
    ([3], "data: expected batches or dicts of arrays, not <class 'int'>"),
])
def test_what_is_no_batch_is_refused(tmp_path, data, words):
    with pytest.raises(TypeError, match=words):
        tfrecord.write(tmp_path / "a", data)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_s64_we_write_and_tensorflow_reads(tmp_path, compression):
    table = pa.table({"i": pa.array([1, None, 3], pa.int32()), "f": pa.array([[0.5], [], None], pa.list_(pa.float32())), "b": [b"\xff", b"", b"x"]})
    path = tmp_path / "a.tfrecord"
    assert tfrecord.write(path, table, compression=compression) == 0
    kind = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}[compression]
    read = [tf.train.Example.FromString(raw.numpy()).features.feature for raw in tf.data.TFRecordDataset(str(path), kind)]
    assert [values_of(one["i"]) if "i" in one else None for one in read] == [[1], None, [3]]
    assert [values_of(one["f"]) if "f" in one else None for one in read] == [[0.5], [], None]
    assert [values_of(one["b"]) for one in read] == [[b"\xff"], [b""], [b"x"]]


SCALARS = {
    "int64_list": st.integers(-(2**63), 2**63 - 1),
    "float_list": st.floats(width=32, allow_nan=False),
    "bytes_list": st.binary(max_size=8),
}
NAMES = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # what a column can be called
FEATURES = {"int64_list": "Int64List", "float_list": "FloatList", "bytes_list": "BytesList"}


@st.composite
def examples(draw):
    """Messages whose features of one name are of one kind, if of any; some have none."""
    kinds = draw(st.dictionaries(st.text(NAMES, max_size=5), st.sampled_from(sorted(SCALARS)), max_size=5))
    messages = []
    for _ in range(draw(st.integers(1, 5))):
        features = {}
        for name, kind in kinds.items():
            values = draw(st.none() | st.lists(SCALARS[kind], max_size=4))
            if values is not None or draw(st.booleans()):
                features[name] = tf.train.Feature() if values is None else tf.train.Feature(**{kind: getattr(tf.train, FEATURES[kind])(value=values)})
        messages.append(tf.train.Example(features=tf.train.Features(feature=features)))
    return messages


@settings(deadline=None, max_examples=150)
@given(examples())
def test_any_examples_go_both_ways(tmp_path_factory, messages):
    """Every value is where TensorFlow's own parser has it, and our copy of the file says the same."""
    folder = tmp_path_factory.mktemp("both")
    write_with_tensorflow(folder / "theirs", messages)
    schema = tfrecord.infer_schema(folder / "theirs")
    read = rows(tfrecord.read(folder / "theirs"))
    assert len(read) == len(messages)
    for row, message in zip(read, messages):
        for field in schema:
            one = message.features.feature[field.name] if field.name in message.features.feature else tf.train.Feature()
            values, got = values_of(one), row[field.name]
            if pa.types.is_string(field.type) and got is not None:
                got = got.encode()
            elif pa.types.is_list(field.type) and pa.types.is_string(field.type.value_type) and got is not None:
                got = [text.encode() for text in got]
            assert got == (values if pa.types.is_list(field.type) or values is None else values[0])
    batches = list(tfrecord.read(folder / "theirs"))
    if batches and len(schema):
        tfrecord.write(folder / "ours", pa.Table.from_batches(batches))
        assert rows(tfrecord.read(folder / "ours", schema=schema)) == read


def test_sequences_go_both_ways(tmp_path):
    steps = [feature([b"a"]), feature([b"b", b"c"]), tf.train.Feature(bytes_list=tf.train.BytesList())]
    message = tf.train.SequenceExample(
        context=tf.train.Features(feature={"id": feature([5])}),
        feature_lists=tf.train.FeatureLists(feature_list={"words": tf.train.FeatureList(feature=steps)}),
    )
    write_with_tensorflow(tmp_path / "theirs", [message])
    (row,) = rows(tfrecord.read(tmp_path / "theirs", record_type="SequenceExample"))
    assert row == {"id": 5, "words": [["a"], ["b", "c"], []]}
    batches = list(tfrecord.read(tmp_path / "theirs", record_type="SequenceExample"))
    tfrecord.write(tmp_path / "ours", batches, record_type="SequenceExample")
    (raw,) = tf.data.TFRecordDataset(str(tmp_path / "ours"))
    assert tf.train.SequenceExample.FromString(raw.numpy()) == message


def test_plain_records_go_both_ways(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for raw in (b"", b"\x00\xff", b"x" * 100000):
            writer.write(raw)
    batches = list(tfrecord.read(tmp_path / "theirs", record_type="ByteArray"))
    assert [row["byteArray"] for row in rows(batches)] == [b"", b"\x00\xff", b"x" * 100000]
    tfrecord.write(tmp_path / "ours", batches, record_type="ByteArray")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_s65_codecs_that_tensorflow_cannot_read(tmp_path):
    with pytest.raises(ValueError, match="compression: expected one of None, 'none', 'gzip', 'zlib', not 'snappy'"):
        tfrecord.write(tmp_path / "a", pa.table({"x": [1]}), compression="snappy")


def test_s67_s94_losses_are_counted_and_told_or_refused(tmp_path):
    table = pa.table({"x": [0.5, 1.1], "y": [[0.25, 0.1], [1e300]], "i": [2**53 + 1, 0], "d": [decimal.Decimal("16777217"), decimal.Decimal("2")]})
    for refusing in ({"exact": True}, {"allow_rounding": False}):
        with pytest.raises(_tfos.InvalidError, match=r"row 0: column y: 0\.1 is no float"):
            tfrecord.write(tmp_path / "a", table, **refusing)
    assert not list(tmp_path.iterdir())
    words = r"^4 numbers were rounded to float, .*, and 1 of them, beyond its range, became infinite: column x \(1\), y \(2\), d \(1\)\. exact=True refuses"
    with pytest.warns(UserWarning, match=words) as told:
        assert tfrecord.write(tmp_path / "a", table) == 4
    assert len(told) == 1 and told[0].filename == __file__
    assert rows(tfrecord.read(tmp_path / "a"))[0] == {"x": 0.5, "y": [0.25, np.float32(0.1)], "i": 2**53 + 1, "d": 16777216.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfrecord.write(tmp_path / "a", table, allow_rounding=True) == 4
        assert tfrecord.write(tmp_path / "b", {"x": np.float32([1.1])}) == 0
    with pytest.raises(ValueError, match="do not go together"):
        tfrecord.write(tmp_path / "a", table, allow_rounding=True, exact=True)
    exact = pa.schema(
        [pa.field("x", pa.float64(), metadata={"tfos.encoding": "exact"}), pa.field("d", pa.decimal128(20, 3), metadata={"tfos.encoding": "exact"})]
    )
    table = pa.table({"x": [0.1], "d": [decimal.Decimal("12345678901234567.891")]}, schema=exact)
    assert tfrecord.write(tmp_path / "exact", table) == 0
    assert rows(tfrecord.read(tmp_path / "exact", schema=exact)) == table.to_pylist()


def test_s68_damage_is_told(tmp_path):
    for name in ("a", "b"):
        write_with_tensorflow(tmp_path / name, [example(x=[i]) for i in range(10)])
    data = bytearray((tmp_path / "a").read_bytes())
    frame = len(data) // 10
    data[3 * frame + 14] ^= 1
    (tmp_path / "a").write_bytes(data)
    schema = pa.schema({"x": pa.int64()})
    with pytest.raises(_tfos.CorruptError, match=rf"a: offset {3 * frame}: the checksum of a record is wrong"):
        list(tfrecord.read(tmp_path, schema=schema))
    damages = []
    assert len(rows(tfrecord.read(tmp_path, schema=schema, on_damage="skip_record", damages=damages))) == 19
    assert [(damage.path, damage.offset, damage.size) for damage in damages] == [(str(tmp_path / "a"), 3 * frame, frame)]
    assert len(rows(tfrecord.read(tmp_path, schema=schema, on_damage="skip_file", damages=damages))) == 13
    with pytest.raises(_tfos.CorruptError, match="a: offset 0: column x: a list of 1, where each of .* has 2"):
        list(tfrecord.read(tmp_path, schema=pa.schema({"x": pa.list_(pa.int64(), 2)})))


def test_features_of_several_kinds_have_the_common_type(tmp_path):
    """1 beside 1.5, as Python writes them; a list without values is of any kind."""
    records = [example(x=[1], many=[1, 2], text=[2], sparse=[b"a"], wide=[2**24]),
               example(x=[1.5], many=[0.5], text=[b"one"], sparse=[], wide=[0.5]), example(text=[0.5])]
    expected = [{"x": 1.0, "many": [1.0, 2.0], "text": "2", "sparse": ["a"], "wide": 2.0**24},
                {"x": 1.5, "many": [0.5], "text": "one", "sparse": [], "wide": 0.5},
                {"x": None, "many": None, "text": "0.5", "sparse": None, "wide": None}]
    types = {"x": pa.float32(), "many": pa.list_(pa.float32()), "text": pa.string(), "sparse": pa.list_(pa.string()), "wide": pa.float32()}
    for order in itertools.permutations(range(3)):
        write_with_tensorflow(tmp_path / "one", [records[i] for i in order])
        parts = [tmp_path / f"part-{i}" for i in order]
        for i, part in zip(order, parts):
            write_with_tensorflow(part, [records[i]])
        for paths in (tmp_path / "one", parts):
            schema = tfrecord.infer_schema(paths)
            assert {field.name: field.type for field in schema} == types
            assert rows(tfrecord.read(paths, schema)) == rows(tfrecord.read(paths)) == [{name: expected[i][name] for name in schema.names} for i in order]
    batch = next(iter(tfrecord.dataset(tmp_path / "one", pa.schema({"x": pa.float32(), "text": pa.string()}), null_value=0.0, columns=["x"])))
    assert sorted(batch["x"].numpy()) == [0.0, 1.0, 1.5]
    write_with_tensorflow(tmp_path / "one", [example(wide=[0.5]), example(wide=[2**24 + 1])])
    with pytest.raises(_tfos.CorruptError, match=r"one: offset \d\d: column wide: .* int64_list, and its 16777217 does not fit float: read it as double"):
        list(tfrecord.read(tmp_path / "one"))
    assert [row["wide"] for row in rows(tfrecord.read(tmp_path / "one", pa.schema({"wide": pa.float64()})))] == [0.5, 2**24 + 1]
    exact = pa.schema([pa.field("wide", pa.float64(), metadata={"tfos.encoding": "exact"})])
    with pytest.raises(_tfos.CorruptError, match="one: offset 0: column wide: the feature is a float_list, which double cannot hold: read it as float"):
        list(tfrecord.read(tmp_path / "one", exact))


@pytest.mark.parametrize("first", [0, 1])
def test_files_of_features_that_contradict_are_named(tmp_path, first):
    steps = tf.train.FeatureLists(feature_list={"x": tf.train.FeatureList(feature=[feature([1.0])])})
    messages = [tf.train.SequenceExample(context=example(x=[1]).features), tf.train.SequenceExample(feature_lists=steps)]
    for order in ([first], [1 - first], [first, 1 - first]):
        write_with_tensorflow(tmp_path / "".join(map(str, order)), [messages[i] for i in order])
    paths = [tmp_path / str(first), tmp_path / str(1 - first)]
    words = r"offset \d+: feature x: a .*, and a .* in .*offset 0: no column holds both"
    for found in (paths, tmp_path / f"{first}{1 - first}"):
        with pytest.raises(_tfos.CorruptError, match=f"/{1 - first}: {words}" if found is paths else f"/{first}{1 - first}: {words}"):
            tfrecord.infer_schema(found, record_type="SequenceExample")
    with pytest.raises(_tfos.CorruptError, match=f"/{1 - first}: {words}"):  # neither file is damaged
        tfrecord.infer_schema(paths, record_type="SequenceExample", on_damage="skip_file")


def test_s84_records_that_are_other_messages_are_errors(tmp_path):
    steps = tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=[feature([1.0])])})
    sequence = tf.train.SequenceExample(context=example(x=[1]).features, feature_lists=steps)
    write_with_tensorflow(tmp_path / "sequences", [sequence])
    tf.summary.create_file_writer(str(tmp_path / "events")).close()
    with tf.io.TFRecordWriter(str(tmp_path / "tensors")) as writer:
        writer.write(tf.io.serialize_tensor(tf.range(10)).numpy())
    schema = pa.schema({"x": pa.int64()})
    for name, words in (("sequences", r"SequenceExample, with feature lists \(steps\) .* the record type SequenceExample"),
                        ("events", "no Example but another message, or none: the record type ByteArray"), ("tensors", "no Example")):
        for look in (tfrecord.infer_schema, lambda path: list(tfrecord.read(path, schema))):
            with pytest.raises(_tfos.CorruptError, match=f"{name}.*: offset 0: the record is .*{words}"):
                look(tmp_path / name)
        damages = []
        assert not rows(tfrecord.read(tmp_path / name, schema, on_damage="skip_record", damages=damages)) and "the record is" in damages[0].message
    with pytest.raises(_tfos.CorruptError, match="no good record to find columns in: 2 places were passed over"):
        tfrecord.infer_schema(tmp_path, on_damage="skip_record")
    assert rows(tfrecord.read(tmp_path / "sequences", record_type="SequenceExample")) == [{"x": 1, "steps": [[1.0]]}]


def test_s80_a_name_in_another_letter_case_gives_no_nulls(tmp_path):
    write_with_tensorflow(tmp_path / "a", [example(x=[1], X=[2]), example(X=[3])])
    with pytest.raises(_tfos.CorruptError, match=r"a: offset \d+: column x: the record has no such feature, but X, .*: name the column as the feature"):
        list(tfrecord.read(tmp_path / "a", schema=pa.schema({"x": pa.int64()})))
    assert rows(tfrecord.read(tmp_path / "a", columns=["x"])) == [{"x": 1}, {"x": None}]  # X is a column too
    assert rows(tfrecord.read(tmp_path / "a")) == [{"x": 1, "X": 2}, {"x": None, "X": 3}]
    both = pa.schema({"X": pa.int64(), "x": pa.int64()})
    assert rows(tfrecord.read(tmp_path / "a", schema=both, columns=["x"])) == [{"x": 1}, {"x": None}]


def test_wrong_arguments(tmp_path):
    write_with_tensorflow(tmp_path / "a", [example(x=[1])])
    with pytest.raises(FileNotFoundError, match="there is no file in or for"):
        list(tfrecord.read(str(tmp_path / "b*")))
    with pytest.raises(_tfos.NotFoundError, match="cannot open .*/none"):
        list(tfrecord.read(tmp_path / "none", schema=pa.schema({"x": pa.int64()})))
    with pytest.raises(ValueError, match="there is no column 'y'; the records have 'x'"):
        tfrecord.read(tmp_path / "a", columns=["y"])
    with pytest.raises(TypeError, match="columns: expected a list of names"):
        tfrecord.read(tmp_path / "a", columns="x")
    with pytest.raises(ValueError, match="record_type: expected one of 'Example', 'SequenceExample', 'ByteArray', not 'Row'"):
        tfrecord.read(tmp_path / "a", record_type="Row")
    with pytest.raises(ValueError, match="form: expected one of arrow, numpy, bytes, not 'rows'"):
        tfrecord.read(tmp_path / "a", form="rows")
    with pytest.raises(_tfos.UnsupportedError, match="column m"):
        tfrecord.write(tmp_path / "m", pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
    with pytest.raises(TypeError, match="data: expected a pyarrow.Table"):
        tfrecord.write(tmp_path / "m", 5)


def test_readers_in_several_threads(tmp_path):
    """Each thread has its own file and its own rows."""
    counts = {}

    def work(number):
        path = tmp_path / str(number)
        tfrecord.write(path, pa.table({"x": pa.array([number] * 20000, pa.int64())}))
        counts[number] = sum(sum(batch.column("x").to_pylist()) for batch in tfrecord.read(path, batch_rows=100))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {number: number * 20000 for number in range(4)}


def test_an_iterator_that_is_given_up_leaves_nothing(tmp_path):
    write_with_tensorflow(tmp_path / "a", [example(x=[i]) for i in range(100)])
    batches = tfrecord.read(tmp_path / "a", batch_rows=1)
    next(batches)
    batches.close()
    writer = _tfos.ExampleWriter(str(tmp_path / "b"), pa.schema({"x": pa.int64()}))
    writer.append(pa.record_batch({"x": [1]}))
    writer.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


# ---- forms, file objects, URIs


class Trickle(io.RawIOBase):
    """A file object that gives a few bytes at a time, by read() only, and cannot seek."""

    def __init__(self, data, step=7, fail_at=None):
        super().__init__()
        self.data, self.step, self.fail_at, self.at, self.name = data, step, fail_at, 0, "trickle"

    def readable(self):
        return True

    def readinto(self, view):
        if self.fail_at is not None and self.at >= self.fail_at:
            raise KeyError("the far end has gone")
        part = self.data[self.at : self.at + min(self.step, len(view))]
        view[: len(part)] = part
        self.at += len(part)
        return len(part)


class ReadOnly:
    """The least that a file object may be."""

    def __init__(self, data):
        self._stream = io.BytesIO(data)

    def read(self, size):
        return self._stream.read(size)


RECORDS = [b"", b"first", b"\x00" * 3000, b"last"]
NUMBERS = pa.table({"x": pa.array(range(100), pa.int64())})


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_records_as_bytes(tmp_path, compression):
    path = tmp_path / "raw"
    assert tfrecord.write(path, RECORDS, record_type="ByteArray", compression=compression) == 0
    assert [raw.numpy() for raw in tf.data.TFRecordDataset(str(path), "" if compression == "none" else compression.upper())] == RECORDS
    assert list(tfrecord.read(path, form="bytes")) == RECORDS
    assert list(tfrecord.read(path, form="bytes", batch_rows=1)) == RECORDS
    tfrecord.write(path, iter([]), record_type="ByteArray")
    assert list(tfrecord.read(path, form="bytes")) == []
    many = [b"%d" % i for i in range(5000)]
    tfrecord.write(path, iter(many), record_type="ByteArray")
    assert list(tfrecord.read(path, form="bytes")) == many


def test_s69_file_objects(tmp_path):
    memory = io.BytesIO(b"before")
    memory.seek(6)
    tfrecord.write(memory, NUMBERS)
    assert not memory.closed
    data = memory.getvalue()[6:]
    memory.seek(6)
    assert rows(tfrecord.read(memory)) == NUMBERS.to_pylist()  # found and read, both from where it was
    assert not memory.closed
    schema = NUMBERS.schema
    assert rows(tfrecord.read(Trickle(data), schema)) == NUMBERS.to_pylist()
    assert rows(tfrecord.read([ReadOnly(data), Trickle(data, 1)], schema)) == 2 * NUMBERS.to_pylist()
    packed = tmp_path / "a.gz"
    tfrecord.write(packed, NUMBERS)
    with open(packed, "rb") as file:
        assert rows(tfrecord.read(file)) == NUMBERS.to_pylist()
    with pytest.raises(ValueError, match="trickle can be read only once"):
        tfrecord.read(Trickle(data))
    with pytest.raises(TypeError, match="binary file object"):
        tfrecord.write(ReadOnly(data), NUMBERS)


def test_what_file_objects_raise(tmp_path):
    with io.BytesIO() as memory:
        tfrecord.write(memory, NUMBERS)
        data = memory.getvalue()
    with pytest.raises(_tfos.IoError, match="cannot read trickle: .*the far end has gone") as caught:
        list(tfrecord.read(Trickle(data, fail_at=70), NUMBERS.schema))
    assert isinstance(caught.value.__cause__, KeyError)

    class Interrupted(Trickle):
        def readinto(self, view):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(tfrecord.read(Interrupted(data), NUMBERS.schema))
    with pytest.raises(_tfos.CorruptError, match="trickle: offset .*: the file ends within a record"):
        list(tfrecord.read(Trickle(data[:-3]), NUMBERS.schema))

    class Text:
        def read(self, size):
            return "text"

    class Liar:
        def read(self, size):
            return bytes(size + 1)

    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    for wrong in (Text(), Liar()):
        with pytest.raises(_tfos.IoError, match=f"cannot read <{type(wrong).__name__}>"):
            list(tfrecord.read(wrong, NUMBERS.schema))
    with pytest.raises(_tfos.IoError, match="cannot write to <Full>: .*No space left"):
        tfrecord.write(Full(), NUMBERS)


def test_a_loop_that_is_left_closes_its_file(tmp_path):
    path = tmp_path / "a"
    tfrecord.write(path, NUMBERS)

    def is_open():
        return any(os.path.realpath(f"/proc/self/fd/{fd}") == str(path) for fd in os.listdir("/proc/self/fd"))

    batches = tfrecord.read(path, NUMBERS.schema, batch_rows=10)
    assert not is_open()
    next(batches)
    assert is_open()
    batches.close()
    assert not is_open()
    for _ in tfrecord.read(path, NUMBERS.schema, batch_rows=10):
        break
    assert not is_open()


def test_uris(tmp_path):
    folder = f"file://{tmp_path}"
    for name in ("b.tfrecord", "a.tfrecord", "_SUCCESS"):
        tfrecord.write(f"{folder}/{name}", NUMBERS)
    assert sorted(os.listdir(tmp_path)) == ["_SUCCESS", "a.tfrecord", "b.tfrecord"]
    assert rows(tfrecord.read(f"{folder}/a.tfrecord")) == NUMBERS.to_pylist()
    assert rows(tfrecord.read(folder)) == 2 * NUMBERS.to_pylist()
    assert rows(tfrecord.read(f"{folder}/*.tfrecord")) == 2 * NUMBERS.to_pylist()
    with pytest.raises(FileNotFoundError, match="none"):
        tfrecord.read(f"{folder}/none*")
    bad = pa.table({"x": [[1, None]]})
    with pytest.raises(ValueError, match="column x"):
        tfrecord.write(f"{folder}/c.tfrecord", bad)
    assert sorted(os.listdir(tmp_path)) == ["_SUCCESS", "a.tfrecord", "b.tfrecord"]
    with open(tmp_path / "a.tfrecord", "r+b") as file:
        file.truncate(40)
    with pytest.raises(_tfos.CorruptError, match=f"{tmp_path}/a.tfrecord: offset"):
        list(tfrecord.read(f"{folder}/a.tfrecord", NUMBERS.schema))
    with pytest.raises(_tfos.UnsupportedError, match="nosuch://x/y: Hadoop knows no file system of this scheme"):
        tfrecord.read("nosuch://x/y")


def test_threads_read_file_objects_side_by_side():
    memory = io.BytesIO()
    tfrecord.write(memory, NUMBERS)
    data = memory.getvalue()
    results = []

    def work():
        results.append(rows(tfrecord.read(Trickle(data, 50), NUMBERS.schema)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == 4 * [NUMBERS.to_pylist()]


def test_a_feature_of_100_mb(tmp_path):
    """TensorFlow reads it, and we read it; a limit below it is an error."""
    path, value = str(tmp_path / "large.tfrecord"), os.urandom(1 << 20) * 100
    tfrecord.write(path, pa.table({"x": pa.array([value], pa.binary())}))
    record, = tf.data.TFRecordDataset(path)
    assert tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([], tf.string)})["x"].numpy() == value
    batch, = tfrecord.read(path)
    assert batch.column("x")[0].as_py() == value
    with pytest.raises(_tfos.CorruptError, match="large.tfrecord.*too large"):
        list(tfrecord.read(path, form="bytes", max_record_size=100 << 20))

# SPDX-License-Identifier: Apache-2.0
"""Plain Arrow batches, as Spark and pyarrow write them: as rows, as arrays, and through a feed."""

import contextlib
import datetime
import decimal
import os
import time

import numpy as np
import pytest

from tensorflowonspark import _tfos

pa = pytest.importorskip("pyarrow")
Row = pytest.importorskip("pyspark.sql").Row

WIDE = decimal.Decimal("-12345678901234567890123456789012345.678")


@contextlib.contextmanager
def time_zone(name):
    old = os.environ.get("TZ")
    try:
        os.environ["TZ"] = name
        time.tzset()
        yield
    finally:
        os.environ.pop("TZ")
        if old is not None:
            os.environ["TZ"] = old
        time.tzset()


def batch(**columns):
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def column(values, type_=None):
    return batch(x=pa.array(values, type_))


def values(*args):
    """The column's values in rows."""
    return [row.x for row in _tfos.unpack(column(*args))]


def array(*args):
    return _tfos.unpack_arrays(column(*args))["x"]


def same(a, b):
    """Whether two objects are equal all the way down, arrays in their dtypes too."""
    if isinstance(a, np.ndarray):
        if not isinstance(b, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return all(map(same, a, b)) if a.dtype == object else np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def objects(*items):
    result = np.empty(len(items), object)
    for i, item in enumerate(items):
        result[i] = item
    return result


# -- flat columns


NUMBERS = [
    ("int8", [-128, 0, 127]), ("uint8", [0, 200, 255]), ("int16", [-(2**15), 0, 5]), ("uint16", [0, 2**16 - 1, 7]),
    ("int32", [-(2**31), 0, 5]), ("uint32", [0, 2**32 - 1, 7]), ("int64", [-(2**63), -1, 2**63 - 1]), ("uint64", [0, 2**64 - 1, 7]),
    ("float32", [1.5, -0.25, float("inf")]), ("float64", [1.1, -1e300, 5e-324]),
]


@pytest.mark.parametrize(("name", "numbers"), NUMBERS)
def test_numbers(name, numbers):
    type_ = getattr(pa, name)()
    got = values([*numbers, None], type_)
    assert got == [*numbers, None]
    assert {type(number) for number in got[:3]} == {float if "float" in name else int}
    assert same(array(numbers, type_), np.array(numbers, name))


def test_float32_is_as_wide_as_it_was():
    assert values([0.1], pa.float32()) == [float(np.float32(0.1))]


def test_half_floats():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = pa.array(halves)
    assert array(numbers).dtype == np.float16
    assert np.array_equal(np.array(values(numbers)), halves.astype(float), equal_nan=True)


def test_booleans_are_bits():
    bits = [i % 3 == 0 for i in range(21)]
    got = values([*bits, None])
    assert got == [*bits, None] and {type(bit) for bit in got[:-1]} == {bool}
    assert same(array(bits), np.array(bits))
    sliced = column(bits).slice(5, 11)
    assert [row.x for row in _tfos.unpack(sliced)] == bits[5:16]
    assert same(_tfos.unpack_arrays(sliced)["x"], np.array(bits[5:16]))


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_text(type_):
    texts = ["", "ü", "words", None]
    assert values(texts, type_) == texts
    assert same(array(texts, type_), objects(*texts))


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary(3)])
def test_bytes(type_):
    texts = [b"abc", b"\0\xff\0", None]
    assert values(texts, type_) == texts
    assert same(array(texts, type_), objects(*texts))


def test_dates():
    days = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), None]
    assert same(objects(*values(days)), objects(*days))
    assert same(array(days[:3]), np.array(days[:3], "M8[D]"))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps(unit):
    fraction = {"s": 0, "ms": 123000, "us": 123456, "ns": 123456}[unit]
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 58, fraction), datetime.datetime(2024, 7, 1, 12, 0, 0, fraction)]
    with time_zone("America/New_York"):
        assert values(moments, pa.timestamp(unit)) == moments
        # As collect() gives them: in the time zone of the process, without its name.
        assert values(moments, pa.timestamp(unit, "UTC")) == [
            datetime.datetime(1969, 12, 31, 18, 59, 58, fraction), datetime.datetime(2024, 7, 1, 8, 0, 0, fraction)]
        for zone in (None, "Asia/Tokyo"):
            got = array(pa.array(moments, pa.timestamp(unit)).cast(pa.timestamp(unit, zone)))
            assert same(got, np.array(moments, f"M8[{unit}]"))


@pytest.mark.parametrize("type_", [pa.decimal128(38, 3), pa.decimal256(50, 3)])
def test_decimals(type_):
    numbers = [WIDE, decimal.Decimal("0.000"), decimal.Decimal("-0.001"), decimal.Decimal("1.500"), None]
    with decimal.localcontext() as context:
        context.prec = 3  # has no say in values
        got = values(numbers, type_)
    assert [str(number) for number in got] == [str(number) for number in numbers]
    assert same(array(numbers, type_), objects(*numbers))


def test_decimals_of_negative_scale():
    assert values([decimal.Decimal("1200")], pa.decimal128(5, -2)) == [decimal.Decimal("1.2E3")]


# -- nested columns


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_ragged_lists(make):
    lists = [[1, 2], [], None, [3, 4, 5]]
    assert values(lists, make(pa.int32())) == lists
    assert same(array(lists, make(pa.int32())),
                objects(np.array([1, 2], "i4"), np.array([], "i4"), None, np.array([3, 4, 5], "i4")))
    deep = [[["a"], []], [["b", None]]]
    assert values(deep, make(make(pa.string()))) == deep
    assert same(array(deep, make(make(pa.string()))), objects(objects(objects("a"), objects()), objects(objects("b", None))))


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_lists_of_one_length_are_one_array(make):
    pairs = [[1.5, -2.0], [0.25, 4.0], [5.0, 6.0]]
    got = array(pairs, make(pa.float32()))
    assert same(got, np.array(pairs, "f4")) and got.flags.owndata and got.flags.writeable and got.flags.c_contiguous
    assert same(array([[True, False]] * 3, make(pa.bool_())), np.array([[True, False]] * 3))
    days = [[datetime.date(2024, 1, i), datetime.date(1969, 12, 31)] for i in (1, 2)]
    assert same(array(days, make(pa.date32())), np.array(days, "M8[D]"))
    assert same(array([[7]], make(pa.int64())), np.array([[7]]))  # also where there is but one row
    assert same(array([[], []], make(pa.int16())), np.zeros((2, 0), "i2"))
    sliced = column([[9], *pairs, [8]], make(pa.float64())).slice(1, 3)
    assert same(_tfos.unpack_arrays(sliced)["x"], np.array(pairs))
    # Of text they are arrays of arrays, whatever their length, as is a row that is none.
    assert same(array([["a", "b"]] * 2, make(pa.string())), objects(objects("a", "b"), objects("a", "b")))
    assert same(array([[1, 2], None], make(pa.int8())), objects(np.array([1, 2], "i1"), None))


def test_nested_lists_of_one_length_are_one_array():
    cubes = np.arange(24, dtype="i4").reshape(2, 3, 4)
    deep = pa.list_(pa.list_(pa.int32()))
    assert same(array(cubes.tolist(), deep), cubes)
    assert same(array(cubes.tolist(), pa.list_(pa.list_(pa.int32(), 4))), cubes)
    assert same(array(cubes.tolist(), pa.list_(pa.list_(pa.int32()), 3)), cubes)
    assert same(array([[], []], deep), np.zeros((2, 0, 0), "i4"))
    # Where one length differs, each row is an array by the same rule.
    ragged = [[[1, 2], [3, 4]], [[5], [6]], [[7, 8], [9]]]
    assert same(array(ragged, deep), objects(np.array(ragged[0], "i4"), np.array(ragged[1], "i4"), objects(np.array([7, 8], "i4"), np.array([9], "i4"))))
    assert same(array([[[1, 2], None]], deep), objects(objects(np.array([1, 2], "i4"), None)))
    structs = pa.struct([("a", pa.list_(pa.int8()))])
    assert same(array([{"a": [1, 2]}, {"a": [3, 4]}], structs), {"a": np.array([[1, 2], [3, 4]], "i1")})
    too_deep, nine = pa.int8(), 5
    for _ in range(9):
        too_deep, nine = pa.list_(too_deep), [nine]
    assert array([nine], too_deep).dtype == object


def test_fixed_lists():
    lists = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    type_ = pa.list_(pa.float32(), 2)
    assert values([*lists, None], type_) == [*lists, None]
    assert same(array(lists, type_), np.array(lists, "f4"))
    cubes = np.arange(24).reshape(2, 3, 4)
    type_ = pa.list_(pa.list_(pa.int64(), 4), 3)
    assert same(array(cubes.tolist(), type_), cubes)
    assert values(cubes.tolist(), type_) == cubes.tolist()
    sliced = column(lists, pa.list_(pa.float32(), 2)).slice(1)
    assert same(_tfos.unpack_arrays(sliced)["x"], np.array(lists[1:], "f4"))
    assert same(array([["a", "b"]], pa.list_(pa.string(), 2)), objects(objects("a", "b")))
    assert array([[True, False, True]], pa.list_(pa.bool_(), 3)).tolist() == [[True, False, True]]


STRUCT = pa.struct([("a", pa.int16()), ("inner", pa.struct([("b", pa.string()), ("c", pa.bool_())]))])


def test_structs():
    structs = [{"a": 1, "inner": {"b": "x", "c": True}}, {"a": 2, "inner": {"b": None, "c": False}}]
    got = values([*structs, None, {"a": None, "inner": None}], STRUCT)
    assert got == [Row(a=1, inner=Row(b="x", c=True)), Row(a=2, inner=Row(b=None, c=False)), None, Row(a=None, inner=None)]
    assert got[0].inner.b == "x" and got[0].asDict(recursive=True) == structs[0]
    expected = {"a": np.array([1, 2], "i2"), "inner": {"b": objects("x", None), "c": np.array([True, False])}}
    assert same(array(structs, STRUCT), expected)
    lists = [structs, []]
    assert values(lists, pa.list_(STRUCT)) == [got[:2], []]
    got = array(lists, pa.list_(STRUCT))
    assert got.dtype == object and same(got[0], expected) and len(got[1]["a"]) == 0


def test_maps():
    maps = [{"a": [1], "b": None}, {}, None]
    type_ = pa.map_(pa.string(), pa.list_(pa.int64()))
    pairs = [None if map_ is None else list(map_.items()) for map_ in maps]
    assert values(pairs, type_) == maps
    assert same(array(pairs, type_), objects(*maps))


def test_slices_of_everything():
    table = pa.table({
        "bit": [i % 3 == 0 for i in range(40)], "text": [str(i) for i in range(40)], "list": [[i] * (i % 4) for i in range(40)],
        "struct": [{"n": i, "t": [str(i)]} for i in range(40)], "map": pa.array([[(i, "v")] for i in range(40)], pa.map_(pa.int8(), pa.string())),
        "fixed": pa.array([[i, i + 1] for i in range(40)], pa.list_(pa.int8(), 2)), "none": pa.array([None if i % 5 else i for i in range(40)]),
    })
    whole = table.to_batches()[0]
    rows = _tfos.unpack(whole)
    assert [row.asDict(recursive=True) for row in rows] == [{**row, "map": dict(row["map"])} for row in whole.to_pylist()]
    for first, count in ((0, 1), (7, 9), (8, 32), (39, 1), (5, 0)):
        assert _tfos.unpack(whole.slice(first, count)) == rows[first:first + count]
    arrays = _tfos.unpack_arrays(whole.slice(13, 9).drop_columns(["none"]))
    assert arrays["struct"]["n"].tolist() == list(range(13, 22)) and arrays["fixed"].tolist() == [[i, i + 1] for i in range(13, 22)]
    assert [element.tolist() for element in arrays["list"]] == [[i] * (i % 4) for i in range(13, 22)]
    assert arrays["map"][0] == {13: "v"}


# -- what has no form


@pytest.mark.parametrize(
    ("values", "type_", "words"),
    [
        ([1, None], pa.int64(), r"row 1, column 'x': is None among values that are bigint"),
        ([True, None], pa.bool_(), "row 1, column 'x': is None"),
        ([datetime.date(2000, 1, 1), None], None, r"row 1, column 'x': is None among values that are date"),
        ([[1, 2], None], pa.list_(pa.int8(), 2), "row 1, column 'x': is None"),
        ([[1, 2], [3, 4], [5, None]], pa.list_(pa.int8(), 2), "row 2, column 'x': has a None among values"),
        ([[1], [3, None]], pa.list_(pa.int8()), "row 1, column 'x': has a None among values that are array<tinyint>"),
        ([[1, 2], [3, None]], pa.list_(pa.int8()), "row 1, column 'x': has a None among values that are array<tinyint>"),
        ([[[1], [2]], [[3], [None]]], pa.list_(pa.list_(pa.int8())), "row 1, column 'x': has a None among values that are array<array<tinyint>>"),
        ([{"a": 1, "inner": None}], STRUCT, r"row 0, column 'x'\.inner: is None among values that are struct"),
        ([{"a": 1, "inner": {"b": "", "c": None}}], STRUCT, r"row 0, column 'x'\.inner\.c: is None"),
        ([None], STRUCT, "row 0, column 'x': is None among values that are struct"),
    ],
)
def test_none_among_numbers_is_refused_by_name(values, type_, words):
    with pytest.raises(_tfos.InvalidError, match="partition 0, " + words):
        array(values, type_)


@pytest.mark.parametrize("type_", [pa.null(), pa.date64(), pa.struct([("t", pa.time32("s"))])])
def test_formats_without_values_are_refused_by_name(type_):
    with pytest.raises(_tfos.UnsupportedError, match="column '[xt]': rows have no values of its type"):
        _tfos.unpack(column([None], type_))
    with pytest.raises(_tfos.UnsupportedError, match="dictionary"):
        _tfos.unpack(batch(x=pa.array(["a"]).dictionary_encode()))


def test_only_batches_are_taken():
    for wrong in ([1], pa.schema([]), None):
        with pytest.raises(TypeError, match="expected an Arrow batch"):
            _tfos.unpack(wrong)
    with pytest.raises(TypeError, match="expected a struct of columns"):
        _tfos.unpack(pa.array([1]))
    with pytest.raises(_tfos.InvalidError, match="rows that are null"):
        _tfos.unpack(pa.array([{"a": 1}, None]))
    assert _tfos.unpack(column([], pa.int8())) == []


# -- through a feed


READ_BOTH = """
feed, got = link.open_feed(), []
while True:
    rows = feed.next_rows(100, True)
    if rows is None:
        break
    got.extend(rows)
save(got)
"""

READ_ARRAYS = """
feed, got = link.open_feed(), []
while True:
    arrays = feed.next_arrays(1000)
    if arrays is None:
        break
    got.append(arrays)
save(got)
"""


def everything(first, count):
    numbers = range(first, first + count)
    return pa.RecordBatch.from_pylist([
        {"n": i, "bit": i % 2 == 0, "text": str(i), "when": datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=i),
         "price": decimal.Decimal(i).scaleb(-2), "list": [float(i)] * (i % 3), "struct": {"a": i, "b": [i, -i]}} for i in numbers
    ], pa.schema([
        ("n", pa.int32()), ("bit", pa.bool_()), ("text", pa.string()), ("when", pa.timestamp("us", "UTC")), ("price", pa.decimal128(10, 2)),
        ("list", pa.list_(pa.float64())), ("struct", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int8(), 2))])),
    ]))


def test_batches_arrive_as_rows(start):
    cluster = start(READ_BOTH)
    with cluster.writer() as writer:
        for first in range(0, 100, 20):
            assert writer.append(everything(first, 20)) is True
        with pytest.raises(_tfos.InvalidError, match="open one for each attempt"):
            writer.feed([])
        assert writer.finish() == 100
        with pytest.raises(_tfos.InvalidError, match="open one for each attempt"):
            writer.append(everything(0, 1))
    assert cluster.saved() == _tfos.unpack(everything(0, 100))


def test_batches_arrive_as_arrays(start):
    cluster = start(READ_ARRAYS)
    with cluster.writer(channel_size=1 << 16) as writer:
        for first in (0, 50):
            assert writer.append(everything(first, 50).slice(0, 50))
        assert writer.finish() == 100
    (got,) = cluster.saved()
    assert same(got, _tfos.unpack_arrays(everything(0, 100)))


def lists(*rows):
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.list_(pa.float32()))], names=["x"])


def test_lists_of_one_length_across_batches(start):
    """What one call gives decides, however many batches it is made of."""
    cluster = start(READ_ARRAYS.replace("1000", "4"))
    with cluster.writer() as writer:
        for batch in (lists([1, 2], [3, 4]), lists([5, 6], [7, 8], [9]), lists([10], [11]), lists([12], [13]), lists([], [14]), lists(None)):
            writer.append(batch)
        writer.finish()
    got = [arrays["x"] for arrays in cluster.saved()]
    assert same(got[0], np.array([[1, 2], [3, 4], [5, 6], [7, 8]], "f4"))
    assert same(got[1], np.array([[9], [10], [11], [12]], "f4"))
    assert same(got[2], objects(np.array([13], "f4"), np.array([], "f4"), np.array([14], "f4"), None))
    assert all(row.flags.owndata for row in got[2][:3])
    assert len(got) == 3


def test_a_retry_skips_the_rows_of_batches_that_were_delivered(start):
    cluster = start(READ_BOTH)
    with cluster.writer() as writer:
        writer.append(everything(0, 30))
    with cluster.writer(attempt=1) as writer:
        for first in range(0, 100, 20):
            writer.append(everything(first, 20))
        assert writer.finish() == 70
    assert [row.n for row in cluster.saved()] == list(range(100))


def test_batches_are_for_training_and_end_with_it(start):
    cluster = start("feed = link.open_feed()\nfeed.next_rows(10, True)\nfeed.terminate()\nsave(1)")
    with cluster.writer(results=True) as writer:
        for call in (lambda: writer.append(everything(0, 1)), writer.finish):
            with pytest.raises(_tfos.InvalidError, match="use results()"):
                call()
    with cluster.writer(attempt=1) as writer:
        while writer.append(everything(0, 100)):
            pass
        assert writer.append(everything(0, 100)) is False
        assert writer.finish() > 0


def test_a_format_that_is_not_carried_is_refused_by_the_writer(start):
    cluster = start(READ_BOTH)
    with cluster.writer() as writer:
        with pytest.raises(_tfos.InvalidError, match='column x: the feed does not carry values of type void'):
            writer.append(column([None]))
        writer.append(everything(0, 1))
        writer.finish()
    assert len(cluster.saved()) == 1


# -- as Spark


@pytest.mark.long
def test_rows_are_those_of_collect(sc):
    from pyspark.sql import SparkSession

    spark = SparkSession(sc)
    frame = spark.createDataFrame([Row(i=i) for i in range(3)]).selectExpr(
        "i", "cast(i as byte) byte", "cast(i as short) short", "cast(i / 3 as float) narrow", "i / 7 as wide", "i > 1 as bit",
        "cast(i as string) text", "cast(cast(i as string) as binary) data", "date_add(date'1999-12-31', cast(i as int)) day",
        "timestamp'2024-03-10 06:30:00.123456' + make_interval(0, 0, 0, 0, cast(i as int)) moment",
        "timestamp_ntz'2024-03-10 06:30:00.5' naive", "cast(i / 3 as decimal(38, 18)) price",
        "array(i, null) list", "map('k', struct(i, array(struct(i as deep)) as more)) map", "if(i = 1, null, struct(i as a)) struct")
    if not hasattr(frame, "toArrow"):
        pytest.skip("this Spark gives no Arrow tables")
    batches = frame.toArrow().to_batches()
    assert [row for batch in batches for row in _tfos.unpack(batch)] == frame.collect()

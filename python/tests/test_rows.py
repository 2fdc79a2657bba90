# SPDX-License-Identifier: Apache-2.0
"""Packing: what is fed comes out equal in value and in type, as rows and as arrays, whatever it is."""

import collections
import datetime
import decimal
import enum
import gc
import math
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from packing import pack, pack_arrays, pack_columns
from tensorflowonspark import _tfos


def same(a, b):
    """Whether two values are equal in value and type, all the way down; NaN is the same as NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return all(map(same, a.ravel(), b.ravel()))
        return a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    return a == b


def assert_round_trip(rows):
    unpacked = pack(rows)
    assert same(unpacked, list(rows)), (unpacked, rows)


class Color(enum.IntEnum):
    RED = 1


class Text(str):
    pass


class Real(float):
    pass


class Matrix(np.ndarray):
    pass


Point = collections.namedtuple("Point", "x y")

numeric_dtypes = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="="), hnp.unsigned_integer_dtypes(endianness="="),
    hnp.floating_dtypes(endianness="="), hnp.complex_number_dtypes(endianness="="),
)
other_dtypes = st.one_of(
    hnp.integer_dtypes(endianness=">"), hnp.datetime64_dtypes(endianness="="), hnp.unicode_string_dtypes(endianness="="),
    hnp.array_dtypes(max_size=3),
)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
arrays = hnp.arrays(st.one_of(numeric_dtypes, other_dtypes), shapes)
numpy_scalars = numeric_dtypes.flatmap(hnp.from_dtype)
texts = st.text(st.characters(), max_size=8)  # lone surrogates too
elements = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-5, 5), st.floats(), texts, st.binary(max_size=8),
)
sequences = st.one_of(
    st.lists(st.floats(), max_size=5), st.lists(st.integers(), max_size=5), st.lists(st.booleans(), max_size=5),
    st.lists(texts, max_size=5), st.lists(st.binary(max_size=4), max_size=5), st.lists(elements, max_size=5),
    st.lists(st.one_of(st.booleans(), st.integers(-5, 5), st.floats()), max_size=5), st.lists(numpy_scalars, max_size=4),
    numeric_dtypes.flatmap(lambda dtype: st.lists(hnp.from_dtype(dtype), max_size=4)),
    st.lists(st.lists(st.one_of(st.integers(), st.floats(), st.none()), max_size=3), max_size=3),
)
others = st.sampled_from(
    [Color.RED, Text("t"), Real(1.5), Point(1, 2.0), decimal.Decimal("1.10"), datetime.date(2020, 1, 2), bytearray(b"x"),
     2**63, -(2**63), -(2**63) - 1, 1j, {"a": 1}, {1: 2}, frozenset([1]), np.longdouble(1) / 3, np.datetime64("2020-01-01"),
     np.arange(4).view(Matrix), range(3), (), [], ""]
)
values = st.one_of(elements, sequences, sequences.map(tuple), numpy_scalars, arrays, others, st.lists(sequences, max_size=3))
names = st.text(max_size=4)


@st.composite
def uniform_rows(draw):
    """Rows of one kind whose columns draw from few sources each, so that columns form, and break now and then."""
    sources = draw(st.lists(st.sampled_from([elements, sequences, sequences.map(tuple), numpy_scalars, arrays, others]), max_size=4))
    columns = st.tuples(*sources)
    kind = draw(st.sampled_from([tuple, list, dict]))
    keys = draw(st.lists(names, min_size=len(sources), max_size=len(sources), unique=True))
    rows = draw(st.lists(columns, max_size=20))
    return [dict(zip(keys, row)) if kind is dict else kind(row) for row in rows]


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(uniform_rows())
def test_uniform_rows_come_back(rows):
    assert_round_trip(rows)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(st.lists(values, max_size=20))
def test_any_rows_come_back(rows):
    assert_round_trip(rows)


@settings(max_examples=200, deadline=None)
@given(numeric_dtypes, st.data())
def test_arrays_equal_stacked_numpy(dtype, data):
    rows = data.draw(st.lists(hnp.arrays(dtype, data.draw(shapes)), min_size=1, max_size=8))
    assert same(pack_arrays(rows), np.stack(rows))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [()] * 3,
        [[]] * 3,
        [{}] * 3,
        [None] * 20,
        [True, False, None, True],
        [1, True, 2],
        [None, None, 1, None],
        [1, 2**63 - 1, -(2**63), 2**63, 1],
        [1.0, float("nan"), float("inf"), -0.0, 5e-324],
        ["", "a", "\0b", "日本", None, "\ud800", "c"],
        [b"", b"\0", None, bytearray(b"x")],
        [([], 1), ([1.0], 2), ([], 3), ([1.0, 2.0], 4)],
        [([1, 2],), ([1, 2.0],), ([1, True],), ([None],)],
        [((1.0, 2.0),), ([1.0, 2.0],)],
        [(["a", "b"],), (["c"],), ([],), ([b"x"],), (None,)],
        [(1, 2), (1, 2, 3), [1, 2], 5, {"a": 1}],
        [{"a": 1, "b": 2}, {"b": 3, "a": 4}, {"a": 1, "c": 2}, {"a": 1}],
        [{"a\0b": 1}], [{"\ud800": 1}], [{1: 2}],
        [np.float64(1.5), np.float32(1.5), 1.5],
        [np.array(1.0), np.array([1.0])[0], np.array([1.0])],
        [np.arange(6).reshape(2, 3).T, np.arange(6).reshape(3, 2)],
        [np.arange(10)[::2], np.arange(3), np.arange(0)],
        [np.array([1], dtype=">i4"), np.array([1], dtype="<i4")],
        [np.zeros(2, dtype="q"), np.zeros(2, dtype="l")],
        [np.array([None, "x"], dtype=object), np.array([(1, 2.0)], dtype="i4,f8")],
        [np.zeros((1,) * 9)],
        [Color.RED, 1], [Text("a"), "a"], [Real(1.0), 1.0], [Point(1, 2), (1, 2)],
        [list(range(5000))] * 2,
    ],
    ids=lambda rows: repr(rows)[:40],
)
def test_rows_come_back(rows):
    assert_round_trip(rows)


def test_lengths_that_alternate_come_back():
    assert_round_trip([([1.0] * (1 + i % 3), i) for i in range(10_000)])


def test_many_batches_come_back():
    assert_round_trip([([float(i + j) for j in range(784)], i) for i in range(1_000)])
    assert_round_trip([(str(i), i if i % 3 else None) for i in range(20_000)])


def test_a_value_larger_than_a_batch_comes_back():
    assert_round_trip([(b"x" * (3 << 20), "y" * (2 << 20)), (b"", "")])


def test_spark_rows_come_back():
    sql = pytest.importorskip("pyspark.sql")
    rows = [sql.Row(a=1, b="x"), sql.Row(a=2, b=None), sql.Row("n", "m")(1, "y"), sql.Row(1, "bare")]
    unpacked = pack(rows)
    assert same(unpacked, rows)
    assert [getattr(row, "__fields__", None) and list(row.__fields__) for row in unpacked] == [
        ["a", "b"], ["a", "b"], ["n", "m"], None]
    assert unpacked[0].b == "x"
    assert unpacked[0].asDict() == {"a": 1, "b": "x"}


def test_a_value_that_cannot_be_pickled_is_named():
    with pytest.raises(TypeError, match=r"row 1 cannot be fed: its column 'f' .*pickle") as caught:
        pack([{"f": 1}, {"f": threading.Lock()}])
    assert caught.value.__cause__ is not None
    with pytest.raises(TypeError, match="rows: expected a list, not <class 'tuple'>"):
        pack((1, 2))


def test_arrays_of_features_and_labels():
    rows = [([float(i), 2.0, 3.0], i) for i in range(5000)]
    features, labels = pack_arrays(rows)
    assert features.dtype == np.float64 and labels.dtype == np.int64
    assert features.shape == (5000, 3) and labels.shape == (5000,)
    assert features.tolist() == [row[0] for row in rows] and labels.tolist() == [row[1] for row in rows]
    for array in (features, labels):
        assert array.flags.owndata and array.flags.writeable and array.flags.c_contiguous and array.base is None


def test_arrays_of_all_kinds():
    rows = [{"b": True, "s": "x", "y": b"z", "f": np.float32(1), "l": [True, False], "v": [1.0] * n, "w": np.arange(n), "m": np.ones((2, 2), np.int8),
             "t": ["p"] * n, "d": decimal.Decimal(n)} for n in range(3)]
    arrays_ = pack_arrays(rows[1:])
    assert {name: array.dtype.name for name, array in arrays_.items()} == {
        "b": "bool", "s": "object", "y": "object", "f": "float32", "l": "bool", "v": "object", "w": "object", "m": "int8", "t": "object",
        "d": "object"}
    assert arrays_["l"].shape == (2, 2) and arrays_["m"].shape == (2, 2, 2)
    assert arrays_["s"].tolist() == ["x", "x"]
    assert arrays_["d"].tolist() == [decimal.Decimal(1), decimal.Decimal(2)]


def test_arrays_of_varying_length_are_arrays_of_arrays():
    result = pack_arrays([(["x"], []), (["y", "z"], [1.5])])
    assert result[0].tolist() == [["x"], ["y", "z"]]
    assert [array.tolist() for array in result[1]] == [[], [1.5]]
    assert all(array.dtype == np.float64 and array.flags.owndata for array in result[1])


def test_arrays_of_scalars_and_arrays():
    assert same(pack_arrays([1, 2, 3]), np.array([1, 2, 3]))
    assert same(pack_arrays([np.ones((2, 3), np.float16)] * 2), np.ones((2, 2, 3), np.float16))
    assert pack_arrays([]) == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([([1.0] * 4, 0)] * 9 + [([1.0] * 3, 0)], "partition 0, row 9, column 0: was list of 4 float, is now list of float of varying length"),
        ([(1, 1.0)] * 3 + [(1, "a")], "partition 0, row 3, column 1: was float, is now objects"),
        ([{"x": np.ones((2, 2))}, {"x": np.ones((2, 3))}], r"row 1, column 'x': was array of float64, shape \(2, 2\), is now objects"),
        ([np.float32(1), "a"], "row 1, column 0: was numpy.float32, is now objects"),
        ([[np.int8(1)] * 2, {"a"}], "row 1: rows are of kind 'value' with 1 columns here, and of kind 'list' with 2 before"),
        ([([np.int8(1)] * 2,), (b"a",)], "row 1, column 0: was list of 2 numpy.int8, is now objects"),
        ([(np.array(["2024-01-01"], "M8[D]"),), (b"a",)], r"row 1, column 0: was array of datetime64\[D\], shape \(1,\), is now objects"),
        ([(1, 2), (1, 2, 3)], "row 1: rows are of kind 'value' with 1 columns here, and of kind 'tuple' with 2 before"),
        ([(1.0,), (None,)], "row 1, column 0: is None among values that are float"),
    ],
)
def test_arrays_that_change_are_refused_by_name(rows, message):
    with pytest.raises(_tfos.InvalidError, match=message):
        pack_arrays(rows)


def test_the_collector_is_left_as_it_was():
    rows = [([1.0] * 10, 1)] * 100
    assert gc.isenabled()
    pack(rows)
    assert gc.isenabled()
    gc.disable()
    try:
        pack(rows)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.long
def test_packing_leaks_nothing():
    rows = [({"a": [1.0, 2.0], "b": "x", "c": np.float32(i), "d": np.ones(3), "e": {i}, "f": [1] * (i % 3), "g": None,
              "h": [i, 0.5, [1]] if i == 40 else [i, 0.5], "i": [np.float32(i)], "j": np.array([i], ">i4"), "k": Color.RED, "l": [[i] * (i % 3)]})
            for i in range(50)]
    named = [Point(i, [1, i / 2]) for i in range(50)] + [(1, 2)]
    broken = rows + [{"a": threading.Lock()}]

    def work():
        for _ in range(50):
            pack(rows)
            pack(named)
            pack([[i] * (i % 4) for i in range(20)])
            pack_arrays(rows[:1])
            pack_arrays(named[:50])
            pack_columns(rows)
            with pytest.raises(TypeError):
                pack(broken)
            with pytest.raises(_tfos.InvalidError):
                pack_arrays([1.0] * 9 + ["x"])

    tracemalloc.start()
    try:
        sizes = []
        for _ in range(8):  # caches of the interpreter fill in the first rounds
            work()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # A leak grows in each round, a cache in some.
    assert min(later - earlier for earlier, later in zip(sizes[4:], sizes[5:])) < 2_600, sizes


def test_packing_in_threads():
    rows = [([float(i)] * 5, str(i)) for i in range(2000)]
    results = []
    threads = [threading.Thread(target=lambda: results.append(pack(rows))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [rows] * 4


# -- columns, for a DataFrame


def nested(leaves, depth):
    """Lists of lists of leaves that all are ``depth`` deep, with None anywhere."""
    values = st.none() | leaves
    for _ in range(depth):
        values = st.none() | st.lists(values, max_size=3) | st.lists(values, max_size=3).map(tuple)
    return values


def as_lists(value):
    return [as_lists(item) for item in value] if isinstance(value, (list, tuple, np.ndarray)) else value


def kinds_in(value):
    """The types of a value's leaves, at any depth."""
    return set().union(*map(kinds_in, value)) if isinstance(value, list) else {type(value)} - {type(None)}


NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)


@settings(deadline=None)
@given(st.integers(1, 3).flatmap(lambda depth: st.lists(nested(NUMBERS, depth), max_size=12)))
def test_numbers_in_lists_become_columns_of_equal_values(values):
    got = [row["x"] for row in pack_columns([{"x": value} for value in values])]
    assert [as_lists(value) for value in got] == [as_lists(value) for value in values]


ONE_TYPE = st.sampled_from([st.text("aü\0", max_size=3), st.binary(max_size=3), st.booleans(), st.integers(-(2**63), 2**63 - 1)])


@settings(deadline=None)
@given(ONE_TYPE.flatmap(lambda leaves: st.integers(0, 3).flatmap(
    lambda depth: st.lists(st.tuples(nested(leaves, depth), nested(leaves, depth)), max_size=12))))
def test_lists_of_one_type_become_columns_of_the_same_values(rows):
    got = pack_columns(rows)
    assert [as_lists(row) for row in got] == [as_lists(row) for row in rows]
    assert all(kinds_in(as_lists(row)) == kinds_in(as_lists(packed)) for row, packed in zip(rows, got))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 0.5, None, 2], [1.0, 0.5, None, 2.0]),
        ([[1, 0.5], [], None, [None, 3]], [[1.0, 0.5], [], None, [None, 3.0]]),
        ([[[1], [2, 3]], [], [None, []]], [[[1], [2, 3]], [], [None, []]]),
        ([[[]], [None], [[[]]], [[[1]]]], [[[]], [None], [[[]]], [[[1]]]]),
        ([np.ones((1, 2)), np.zeros((2, 1)), [np.arange(3), [np.float32(0.5)]]], [[[1.0, 1.0]], [[0.0], [0.0]], [[0.0, 1.0, 2.0], [0.5]]]),
        ([[1, 2], None, [3]], [[1, 2], None, [3]]),
        ([None, [1, 2], (3,)], [None, [1, 2], [3]]),
        ([["a", None], [], ["b\0", "ü"]], [["a", None], [], ["b\0", "ü"]]),
        ([[True, None], [False]], [[True, None], [False]]),
    ],
)
def test_values_that_become_columns(values, wanted):
    assert list(map(as_lists, pack_columns(values))) == wanted
    assert [as_lists(row) for (row,) in pack_columns([(value,) for value in values])] == wanted
    assert [as_lists(row["x"]) for row in pack_columns([{"x": value} for value in values])] == wanted


@pytest.mark.parametrize("values", [
    [2**53 + 1, 0.5], [[2**53 + 1, 0.5]], [1, "a"], [True, 1], [[1], 2], [[1], [[2]]], [[{"a": 1}]], [datetime.date(2024, 1, 1)], [2**70], ["\ud800"],
    [b"a", "a"], [np.datetime64("2024-01-01"), 1], [np.longdouble(1), 0.5],
])
def test_what_is_no_column_stays_the_same_objects(values):
    assert same(pack_columns(values), values)


def test_lists_that_contain_themselves_are_refused():
    loop = []
    loop.extend([loop, loop])
    assert isinstance(pack_columns([loop, [1]])[0], list)


def test_columns_hold_more_than_a_batch():
    rows = [[[i] * (i % 3), None] for i in range(10_000)]
    assert pack_columns([(row,) for row in rows]) == [(row,) for row in rows]

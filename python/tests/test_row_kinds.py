# SPDX-License-Identifier: Apache-2.0
"""Kinds of rows: arrays that came through pickle, lists as people write them, classes with names. All are columns, and come back as they were."""

import collections
import dataclasses
import enum
import pickle
import typing

import numpy as np
import pytest

from packing import pack, pack_arrays, pack_columns
from test_rows import Color, Real, assert_round_trip, same

# -- numpy's arrays and scalars, wherever they come from (S72)


def copies(array):
    """The same array as Spark and numpy hand it on: through each protocol of pickle, and in other layouts."""
    yield from (pickle.loads(pickle.dumps(array, protocol)) for protocol in range(6))
    buffers = []
    data = pickle.dumps(array, 5, buffer_callback=buffers.append)
    yield pickle.loads(data, buffers=[bytearray(buffer.raw()) for buffer in buffers])  # out of band
    yield array.astype(pickle.loads(pickle.dumps(array.dtype)))
    yield array.astype(np.dtype(array.dtype, metadata={"unit": "m"}))
    yield np.asfortranarray(array)
    yield np.repeat(array, 2, -1)[..., ::2]
    yield array[::-1][::-1]
    yield np.lib.stride_tricks.as_strided(array.copy(), array.shape, array.strides)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "u8", "i4", "b1", "c8", "M8[us]", "m8[D]"])
def test_s72_arrays_through_pickle_are_dense(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    rows = [({"x": copy}) for copy in copies(array)]
    found = pack_arrays(rows)["x"]
    assert found.dtype == array.dtype and found.shape == (len(rows), 2, 3) and (found == array).all()
    assert_round_trip(rows)


def test_s72_scalars_and_arrays_of_no_dimension_through_pickle_are_numbers():
    for value in (np.float32(1.5), np.bool_(True), np.int64(-1), np.array(2.5), np.array(3, "u1"), np.datetime64("2024-01-01", "ms"), np.timedelta64(5, "s")):
        rows = [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(6)]
        assert same(pack_arrays(rows), np.stack([np.asarray(value)] * 6)), value
        assert_round_trip(rows)


@pytest.mark.parametrize("order", [">", "<"])
def test_s72_arrays_of_either_byte_order_are_dense_and_come_back(order):
    rows = [(np.array([[1, 2], [3, 4 + i]], order + "f4"), np.array([i], order + "i8")) for i in range(3)]
    images, numbers = pack_arrays(rows)
    assert images.dtype == np.float32 and images[2].tolist() == [[1, 2], [3, 6]]
    assert numbers.dtype == np.int64 and numbers.tolist() == [[0], [1], [2]]
    assert_round_trip(rows)


def test_s72_a_mapped_file_is_an_array(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "f4", (4, 3))
    mapped[:] = np.arange(12).reshape(4, 3)
    rows = [mapped[i] for i in range(4)]
    found = pack_arrays(rows)
    assert found.dtype == np.float32 and found.tolist() == mapped.tolist()
    assert [type(row) for row in pack(rows)] == [np.ndarray] * 4
    assert pack_arrays(pickle.loads(pickle.dumps(rows))).tolist() == mapped.tolist()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_s72_subclasses_are_columns_and_come_back():
    rows = [np.matrix([[1, 2], [3, i]]) for i in range(3)]
    found = pack_arrays(rows)
    assert type(found) is np.ndarray and found.dtype == np.int64 and found.shape == (3, 2, 2)
    assert [type(row) for row in pack(rows)] == [np.matrix] * 3
    masked = np.ma.masked_array([1, 2], [False, True])  # what is masked is no value
    assert str(pack([masked])[0]) == "[1 --]"
    assert pack_arrays([masked]).tolist() == [[1, None]]


def test_s72_types_of_others_are_no_numbers():
    """Structured ones, objects, texts, and what another package calls a number."""
    record = np.array([(1, 2.0)], "i4,f8")
    for rows in ([record] * 2, [record[0]] * 2, [np.array([None, 1], object)] * 2, [np.array(["a", "bc"])] * 2, [np.array([b"a"])] * 2):
        assert pack_arrays(rows).dtype == object
        assert_round_trip(rows)
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    rows = pickle.loads(pickle.dumps([np.array([1.5, 2], bfloat16)] * 2))
    assert pack_arrays(rows).dtype == object and pack(rows)[0].dtype == bfloat16


# -- lists as people write them (S87)


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        ([[np.float32(1), np.float32(2)], [np.float32(3), np.float32(4)]], "f4", None),
        ([(np.int64(1), np.int64(2)), (np.int64(3), np.int64(4))], "i8", None),
        ([[np.bool_(True), np.bool_(False)]], "b1", None),
        ([[np.uint8(1), 2, 3.5]], "f8", [[1, 2, 3.5]]),
        ([list(np.arange(3))] * 2, "i8", None),
        ([[np.datetime64("2024-01-01"), np.datetime64("2024-01-02")]], "M8[D]", None),
        ([[1, 2.5, 3], [4, 5, 6]], "f8", None),
        ([[1, 2, 3], [4, 5.5, 6]], "f8", None),
        ([[1.5, 2.5], [3, 4]], "f8", None),
        ([(1, 2.5), (3, 4)], "f8", None),
        ([[True, False], [False, True]], "b1", None),
        ([[True, 2], [3, False]], "i8", [[1, 2], [3, 0]]),
        ([[True, 2.5]], "f8", [[1, 2.5]]),
        ([[True, np.True_]], "b1", None),
        ([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "i8", None),
        ([[[1, 2.0], [3, 4]]], "f8", None),
        ([[(1.5, 2.5)] * 3] * 2, "f8", None),
        ([[[[1]], [[2]]]] * 2, "i8", None),
        ([[np.arange(3, dtype="f4"), np.ones(3, "f4")]] * 2, "f4", None),
        ([[np.arange(3, dtype="u1"), [4, 5, 6]]], "i8", [[[0, 1, 2], [4, 5, 6]]]),
        ([[np.float16(1.5), 2.0]], "f8", [[1.5, 2]]),
        ([1, 2.5, 3], "f8", None),
        ([True, 2, 3], "i8", [1, 2, 3]),
        ([np.float32(1.5), 2, 3.5], "f8", None),
        ([np.int8(1), np.int16(300)], "i8", None),
        ([Color.RED, 2], "i8", [1, 2]),
        ([Real(1.5), 2], "f8", [1.5, 2]),
        ([[Color.RED, Color.RED]], "i8", [[1, 1]]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_s87_lists_of_numbers_are_columns_and_come_back(values, dtype, wanted):
    rows = [(value, i) for i, value in enumerate(values)]
    found = pack_arrays(rows)[0]
    assert found.dtype == np.dtype(dtype) and found.tolist() == np.array(wanted or values).tolist()
    assert_round_trip(rows)
    assert_round_trip([{"x": value} for value in values])


def test_s87_lists_of_several_lengths_are_ragged():
    for rows in ([[1, 2], [1, 2, 3], []], [[1.5], [2, 3]], [[np.int8(1)], [np.int8(2)] * 2]):
        found = pack_arrays(rows)
        assert found.dtype == object and [row.tolist() for row in found] == [list(map(float, row)) for row in rows]
        assert_round_trip(rows)
    nested = pack_arrays([([[1], [2, 3]],), ([],)])[0]
    assert [[part.tolist() for part in row] for row in nested] == [[[1], [2, 3]], []]


def test_s87_a_number_of_another_kind_may_come_late():
    """Within the first batch, and in those behind it."""
    first = [([i, i + 1],) for i in range(100)] + [([0.5, 1],)]
    assert pack_arrays(first)[0].dtype == np.float64
    assert_round_trip(first)
    late = [([i, i + 1],) for i in range(5_000)] + [([0.5, 1],), ([1, 2],)]
    found = pack_arrays([(row[0][0],) for row in late])[0]
    assert found.dtype == np.float64 and found.tolist() == [float(row[0][0]) for row in late]
    assert_round_trip(late)


def test_s87_lists_with_none_are_objects():
    rows = [([1, 2],), ([1, None],), (None,), ([3.5, 4],)]
    assert [value if value is None else list(value) for value in pack_arrays(rows)[0]] == [[1, 2], [1, None], None, [3.5, 4]]
    assert pack_arrays([([None, None],)] * 2)[0].tolist() == [[None, None]] * 2
    assert_round_trip(rows)


def test_s87_what_no_float_holds_stays_what_it_is():
    for rows in ([(2**53 + 1,), (0.5,)], [([2**53 + 1, 0.5],)], [([2**64, 1],)], [(1,), ("a",)], [([1, "a"],)], [([1, [2]],)]):
        assert_round_trip(rows)


# -- rows of classes with names (S83)


@dataclasses.dataclass
class Example:
    image: typing.Any
    label: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    image: typing.Any
    label: int = 0
    count: typing.ClassVar[int] = 3


@dataclasses.dataclass
class Cached:
    image: typing.Any
    label: int

    def __post_init__(self):
        self.extra = {"state": self.label}


class Pair(typing.NamedTuple):
    image: typing.Any
    label: int


class Checked(collections.namedtuple("Checked", "image label")):
    def __new__(cls, image, label):
        assert label >= 0
        return super().__new__(cls, image, int(label))

    def __getnewargs__(self):
        return self.image, self.label


class Custom(collections.namedtuple("Custom", "image label")):
    def __reduce__(self):
        return Custom, (self.image, self.label)


class Shade(enum.Enum):
    DARK = "dark"


NAMED = [Example, Frozen, Pair, Checked, collections.namedtuple("Anonymous", "image label")]
if hasattr(dataclasses, "KW_ONLY"):  # from Python 3.10 on
    NAMED += [dataclasses.make_dataclass("Slotted", ["image", "label"], slots=True),
              dataclasses.make_dataclass("FrozenSlotted", ["image", "label"], slots=True, frozen=True)]


def of_main(namespace):
    """The classes of ``namespace`` as the driver's ``__main__`` or a notebook has them: no other process can import them."""
    for made in namespace.values():
        if isinstance(made, type):
            made.__module__ = "__main__"
    return namespace


@pytest.mark.parametrize("class_", NAMED, ids=lambda class_: class_.__name__)
def test_s83_rows_with_names_are_columns_and_come_back(class_):
    class_ = of_main({class_.__name__: class_})[class_.__name__] if class_.__name__ in ("Anonymous", "Slotted", "FrozenSlotted") else class_
    rows = [class_([i, 0.5], i) for i in range(3)]
    found = pack_arrays(rows)
    assert found["image"].tolist() == [[0, 0.5], [1, 0.5], [2, 0.5]] and found["label"].tolist() == [0, 1, 2]
    unpacked = pack(rows)
    assert unpacked == rows and [type(row) for row in unpacked] == [class_] * 3
    assert [type(row.image[0]) for row in unpacked] == [int] * 3


def test_s83_rows_with_a_state_of_their_own_come_back():
    for rows in ([Cached(1, 2)] * 2, [Custom(1, 2)] * 2, [Pair(1, 2), Example(1, 2)], [Example(1, 2), (1, 2)], [Shade.DARK] * 2, [(Shade.DARK, Color.RED)] * 2):
        unpacked = pack(rows)
        assert unpacked == rows and [type(row) for row in unpacked] == [type(row) for row in rows]
    assert pack([Cached(1, 2)])[0].extra == {"state": 2}
    odd = Example(1, 2)
    odd.more = 3
    assert pack([Example(1, 2), odd])[1].more == 3
    del odd.more, odd.label
    assert not hasattr(pack([odd])[0], "label") or "label" not in vars(pack([odd])[0])


def test_s83_what_cannot_be_imported_goes_by_value():
    space = of_main({"Mood": enum.Enum("Mood", "GOOD BAD"), "Level": enum.IntEnum("Level", "LOW HIGH"), "Other": type("Other", (), {})})
    other = space["Other"]()
    other.value = 5
    rows = [(space["Mood"].GOOD, space["Level"].HIGH, other, lambda number: number + 1)] * 2
    mood, level, again, function = pack(rows)[1]
    assert mood is space["Mood"].GOOD and level is space["Level"].HIGH and again.value == 5 and function(1) == 2
    assert pack_arrays(rows)[1].tolist() == [2, 2]


def test_s83_results_with_names_are_columns():
    assert pack_columns([Pair([1, 0.5], 1), Pair([2], 2)]) == [{"image": [1, 0.5], "label": 1}, {"image": [2], "label": 2}]
    assert pack_columns([Example(1, Color.RED)]) == [{"image": 1, "label": 1}]

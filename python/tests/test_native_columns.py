# SPDX-License-Identifier: Apache-2.0
"""Arrow batches in native memory as Spark's columns: every value of every type is what pyarrow says, whole and sliced."""

import ctypes
import datetime
import decimal

import pytest

pa = pytest.importorskip("pyarrow")


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.c_void_p), ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]


class Memory:
    """Native memory of the JVM, another process."""

    def __init__(self, jvm):
        self._platform = jvm.org.apache.spark.unsafe.Platform
        self._blocks = []

    def put(self, data):
        """A copy of the bytes; its address."""
        address = self._platform.allocateMemory(len(data) + 1)
        self._blocks.append(address)
        self._platform.copyMemory(bytes(data), self._platform.BYTE_ARRAY_OFFSET, None, address, len(data))
        return address

    def put_words(self, words):
        return self.put(b"".join(word.to_bytes(8, "little", signed=True) for word in words))

    def put_array(self, array, buffers):
        """A copy of the struct and all below it; ``buffers`` gives theirs in order."""
        mine = [next(buffers) for _ in range(array.n_buffers)]
        pointers = self.put_words([self.put(buffer) if buffer is not None else 0 for buffer in mine])
        children = self.put_words([self.put_array(array.children[i].contents, buffers) for i in range(array.n_children)])
        return self.put_words([array.length, array.null_count, array.offset, array.n_buffers, array.n_children, pointers, children, 0, 0, 0])

    def put_schema(self, schema):
        children = self.put_words([self.put_schema(schema.children[i].contents) for i in range(schema.n_children)])
        return self.put_words([self.put(schema.format + b"\0"), self.put((schema.name or b"") + b"\0"), 0, schema.flags, schema.n_children, children,
                               0, 0, 0])

    def move(self, source, target, size):
        self._platform.copyMemory(None, source, None, target, size)

    def free(self):
        for address in self._blocks:
            self._platform.freeMemory(address)


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


def read(holder, kind, index):
    """The value at ``index`` of a column, a row or an array, as Python has it."""
    if holder.isNullAt(index):
        return None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        array = holder.getArray(index)
        return [read(array, kind.value_type, i) for i in range(array.numElements())]
    if pa.types.is_struct(kind):
        row = holder.getStruct(index, kind.num_fields) if holder.getClass().getSimpleName() != "NativeColumnVector" else holder.getStruct(index)
        return {field.name: read(row, field.type, i) for i, field in enumerate(kind)}
    if pa.types.is_decimal(kind):
        return decimal.Decimal(holder.getDecimal(index, kind.precision, kind.scale).toString())
    plain = {
        pa.bool_(): "getBoolean", pa.int8(): "getByte", pa.int16(): "getShort", pa.int32(): "getInt", pa.int64(): "getLong", pa.float32(): "getFloat",
        pa.float64(): "getDouble", pa.date32(): "getInt", pa.timestamp("us", "UTC"): "getLong", pa.timestamp("us"): "getLong",
        pa.duration("us"): "getLong", pa.string(): "getUTF8String", pa.large_string(): "getUTF8String", pa.binary(): "getBinary",
        pa.large_binary(): "getBinary",
    }
    value = getattr(holder, plain[kind])(index)
    return value.toString() if "string" in str(kind) else bytes(value) if "binary" in str(kind) else value


def plain(value):
    """What Spark stores for a value of pyarrow's."""
    if isinstance(value, datetime.datetime):
        return round((value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    if isinstance(value, datetime.timedelta):
        return round(value / datetime.timedelta(microseconds=1))
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 1, 999999)
COLUMNS = {
    "boolean": (pa.bool_(), [True, None, False, True, True] * 3),
    "tinyint": (pa.int8(), [-128, None, 127, 0, 1]),
    "smallint": (pa.int16(), [-2**15, None, 2**15 - 1, 0, 1]),
    "int": (pa.int32(), [-2**31, None, 2**31 - 1, 0, 1]),
    "bigint": (pa.int64(), [-2**63, 0, 2**63 - 1, None, 1]),
    "float": (pa.float32(), [1.5, None, -0.25, float("inf"), 3.0]),
    "double": (pa.float64(), [1.1, None, -1e300, 0.0, 3.0]),
    "date": (pa.date32(), [datetime.date(1969, 12, 31), None, datetime.date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=datetime.timezone.utc), None]),
    "timestamp_ntz": (pa.timestamp("us"), [None, MOMENT]),
    "interval day to second": (pa.duration("us"), [datetime.timedelta(days=-3, microseconds=1), None]),
    "decimal(7,2)": (pa.decimal128(7, 2), [decimal.Decimal("-99999.99"), None, decimal.Decimal("0.01")]),
    "decimal(38,5)": (pa.decimal128(38, 5), [decimal.Decimal("-" + "9" * 33 + ".12345"), None, decimal.Decimal(2**63), decimal.Decimal(-(2**64))]),
    "string": (pa.string(), ["", None, "Ünï\0code", "x" * 40]),
    "binary": (pa.binary(), [b"", None, b"\x00\xff", b"x" * 40]),
    "array<float>": (pa.list_(pa.float32()), [[1.0, None], [], None, [2.0, 3.0, 4.0]]),
    "array<string>": (pa.large_list(pa.large_string()), [["a", None], [], None, ["bc"]]),
    "array<binary>": (pa.list_(pa.large_binary()), [[b"a", None], [], None, [b"bc"]]),
    "array<array<bigint>>": (pa.list_(pa.list_(pa.int64())), [[[1, 2], [], None], None, [], [[3]]]),
    "array<int>": (pa.list_(pa.int32(), 2), [[1, None], None, [3, 4], [5, 6]]),
    "struct<a:int,b:struct<c:string,d:array<double>>>": (
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.float64()))]))]),
        [{"a": 1, "b": {"c": "x", "d": [0.5]}}, None, {"a": None, "b": None}, {"a": 4, "b": {"c": None, "d": []}}]),
}


@pytest.fixture
def open_batch(spark):
    """Makes a NativeBatch of a RecordBatch; gives it and its columns."""
    from tensorflowonspark import jar

    jar.add_to(spark)
    memory, batches = Memory(spark._jvm), []

    def make(record_batch, type_texts):
        array, schema = ArrowArray(), ArrowSchema()
        rows = pa.StructArray.from_arrays(record_batch.columns, fields=list(record_batch.schema))
        rows._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
        batch = spark._jvm.org.tfos.NativeBatch()
        batches.append(batch)
        memory.move(memory.put_array(array, iter(rows.buffers())), batch.address(), ctypes.sizeof(array))
        kind = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(
            spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {text}) AS c{i}" for i, text in enumerate(type_texts))).schema.json())
        try:
            return batch, batch.columns(kind, spark._jvm.org.tfos.NativeSchema.at(memory.put_schema(schema)))
        finally:
            for struct in (array, schema):
                ctypes.CFUNCTYPE(None, ctypes.c_void_p)(struct.release)(ctypes.addressof(struct))

    yield make
    for batch in batches:
        batch.close()
    memory.free()


@pytest.mark.parametrize("begin", [0, 1])
def test_every_value_of_every_type(open_batch, begin):
    length = max(len(values) for _, values in COLUMNS.values())
    whole = pa.record_batch([pa.array((values * length)[:length], kind) for kind, values in COLUMNS.values()], [f"c{i}" for i in range(len(COLUMNS))])
    rows = whole.slice(begin, length - 2 * begin)
    batch, columns = open_batch(rows, list(COLUMNS))
    assert batch.rowCount() == rows.num_rows
    for column, expected in zip(columns, rows.columns):
        assert [read(column, expected.type, i) for i in range(rows.num_rows)] == [plain(value) for value in expected.to_pylist()], expected.type
        assert column.hasNull() and column.numNulls() == expected.null_count


def test_many_values_at_once(open_batch):
    kinds = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64()}
    rows = pa.record_batch([pa.array([[0], list(range(100))], pa.list_(kind)) for kind in kinds.values()], list(kinds))
    _, columns = open_batch(rows.slice(1), [f"array<{text}>" for text in kinds])
    names = ("toByteArray", "toShortArray", "toIntArray", "toLongArray", "toFloatArray", "toDoubleArray")
    for column, name in zip(columns, names):
        assert list(getattr(column.getArray(0), name)()) == list(range(100)) and not column.hasNull()


def test_memory_goes_back_with_the_last_column(open_batch):
    batch, columns = open_batch(pa.record_batch([pa.array([1]), pa.array([2])], ["a", "b"]), ["bigint", "bigint"])
    columns[0].close()
    columns[0].close()
    assert batch.address() != 0 and columns[1].getLong(0) == 2
    columns[1].close()
    assert batch.address() == 0
    batch.close()


@pytest.mark.parametrize("kind, text", [
    (pa.int32(), "bigint"), (pa.float64(), "float"), (pa.decimal128(9, 2), "decimal(10,2)"), (pa.list_(pa.int32()), "array<bigint>"),
    (pa.string(), "binary"), (pa.struct([("a", pa.int32())]), "struct<a:int,b:int>"), (pa.map_(pa.int32(), pa.int32()), "map<int,int>"),
    (pa.duration("us"), "interval year to month"),
])
def test_types_that_do_not_agree_are_refused(open_batch, kind, text):
    with pytest.raises(Exception, match=r"UnsupportedError: java: column .*cannot be read from"):
        open_batch(pa.record_batch([pa.array([None], kind)], ["c"]), [text])

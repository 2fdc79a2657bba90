# SPDX-License-Identifier: Apache-2.0
"""DataFrames of every type and shape, both ways: the same rows and arrays come to a trainer, as collect() has them."""

import datetime
import decimal
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import our_processes, wait_until
from tensorflowonspark import TFCluster, _tfos
from test_cluster import local

pytest.importorskip("pyarrow")


def save_epochs(args, ctx):
    """Writes each epoch's rows or arrays, as they were read, to a file of its own."""
    import os
    import pickle

    feed = ctx.mgr.link.open_feed()
    read = feed.next_rows if args["how"] == "rows" else feed.next_arrays
    number, parts = 0, []
    while True:
        part = read(args["count"], False, stop_at_epoch=True)
        if part is None:
            return
        if len(part):
            parts.append(part)
            continue
        path = f"{args['out']}/{number}"
        with open(path + ".new", "wb") as file:
            pickle.dump(parts, file)
        os.rename(path + ".new", path)
        number, parts = number + 1, []


class Readers:
    """Two trainers for all tests of this module, of which one reads rows and the other arrays. Each feed is an epoch."""

    def __init__(self, sc, make_folder):
        self._sc, self._make_folder = sc, make_folder
        self._running, self._epochs = {}, {}

    def cluster(self, how):
        if how not in self._running:
            folder = self._make_folder(how)
            args = {"how": how, "out": str(folder), "count": 1000}
            self._running[how] = TFCluster.run(self._sc, local(save_epochs), args, 1, 0, input_mode=TFCluster.InputMode.SPARK)
            self._epochs[how] = (folder / str(number) for number in itertools.count())
        return self._running[how]

    def feed(self, how, frame, **options):
        try:
            self.cluster(how).train(frame, 1, **options)
            path = next(self._epochs[how])
            wait_until(path.exists, 60, "the epoch's end")
            return pickle.loads(path.read_bytes())
        except BaseException:
            self._running.pop(how)._abort()  # some of the rows may have come
            raise

    def rows(self, frame, **options):
        return [row for part in self.feed("rows", frame, **options) for row in part]

    def arrays(self, frame, **options):
        """The arrays of a frame of 1,000 rows at most."""
        return self.feed("arrays", frame, **options)[0]

    def close(self):
        for cluster in self._running.values():
            cluster.shutdown()


@pytest.fixture(scope="module")
def readers(sc, tmp_path_factory):
    readers = Readers(sc, tmp_path_factory.mktemp)
    yield readers
    readers.close()
    wait_until(lambda: not our_processes(), what="the end of the nodes")


@pytest.fixture
def nothing_left():
    """The trainers outlive a test: what is left is looked for at the end of them all."""


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


@pytest.fixture(params=["jvm", pytest.param("arrow", marks=pytest.mark.long)])
def via(request):
    return request.param


def same(a, b):
    """Whether two objects are equal all the way down, arrays in their dtypes too."""
    if isinstance(a, np.ndarray):
        if not isinstance(b, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return all(map(same, a, b)) if a.dtype == object else np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, bytearray):  # as collect() gives binary before Spark 4.1
        return type(a) is bytes and a == b
    return type(a) is type(b) and (a == b or (a != a and b != b))


# -- types

FLAT = {
    "boolean": "i % 2 = 0",
    "byte": "cast(i - 64 as byte)",
    "short": "cast(i * -3 as short)",
    "integer": "cast(i as int) - 2",
    "long": "i * 1000000007",
    "float": "cast(i / 3 as float)",
    "double": "if(i = 1, double('nan'), i / 7)",
    "string": "concat('ü', repeat('x', cast(i as int)))",
    "binary": "cast(concat(i, 'x') as binary)",
    "date": "date_add(date'1969-12-25', cast(i as int))",
    "timestamp": "timestamp'1969-12-31 23:59:59.5' + make_dt_interval(cast(i as int), 0, 0, 0.000001)",
    "timestamp_ntz": "timestamp_ntz'2024-03-10 06:30:00.000001' + make_dt_interval(cast(i as int))",
    "narrow_decimal": "cast(i / 3 as decimal(18, 6))",
    "wide_decimal": "cast(-i / 3 as decimal(38, 18))",
}
NESTED = {
    **{f"array_{name}": f"array({text}, null, {text})" for name, text in FLAT.items()},
    "ragged": "sequence(0, i % 4)",
    "empty": "cast(array() as array<int>)",
    "deep": "array(array(i), array(), null, array(i, null))",
    "struct": "named_struct('a', i, 'b c', named_struct('d', array(cast(i as string)), 'e', cast(null as date)))",
    "structs": "array(named_struct('a', i, 'b', 'x'), null)",
    "map": "map(cast(i as string), i / 2, 'k', null)",
    "maps": "map(i, map('a', array(i)), -1L, map())",
    "map_array": "array(map('k', i), map())",
}
FIXED = {
    **{f"list_{name}": f"array({FLAT[name]}, {FLAT[name]})" for name in ("byte", "short", "integer", "long", "float", "double", "boolean")},
    "list_string": "array('a', cast(i as string))",
    "struct": "named_struct('a', i, 'b', i / 2)",
    "matrix": "array(array(i, 1L), array(2L, i))",
    "ragged": "sequence(0, i % 4)",
}


def with_nulls(columns):
    return [f"if(i % 5 = 3, null, {text}) as {name}" for name, text in columns.items()]


def test_rows_of_every_type(spark, readers, via):
    frame = spark.range(0, 23, 1, 3).withColumnRenamed("id", "i").selectExpr("i", *with_nulls(FLAT), *with_nulls(NESTED))
    rows = sorted(readers.rows(frame, via=via), key=lambda row: row.i)
    expected = frame.collect()
    assert [row.__fields__ for row in rows] == [row.__fields__ for row in expected]
    for row, wanted in zip(rows, expected):
        for name in row.__fields__:
            assert same(row[name], wanted[name]), (name, row[name], wanted[name])
    assert len(rows) == 23


def test_arrays_of_every_type(spark, readers):
    columns = [f"{text} as {name}" for name, text in {**FLAT, **FIXED}.items()]
    frame = spark.range(0, 23, 1, 1).withColumnRenamed("id", "i").selectExpr("i", *columns)
    arrays = readers.arrays(frame, via="jvm")
    others = readers.arrays(frame, via="arrow")
    for name in frame.columns:
        assert same(arrays[name], others[name]), (name, arrays[name], others[name])
    numbers = np.arange(23)
    assert same(arrays["float"], (numbers / 3).astype("f4"))
    assert same(arrays["list_short"], np.stack([numbers * -3] * 2, axis=1).astype("i2"))
    assert same(arrays["boolean"], numbers % 2 == 0)
    assert same(arrays["matrix"], np.array([[[i, 1], [2, i]] for i in range(23)]))
    assert arrays["list_string"].dtype == object and arrays["list_string"][3].tolist() == ["a", "3"]
    assert [len(value) for value in arrays["ragged"]] == [i % 4 + 1 for i in range(23)]
    assert arrays["date"].dtype == "M8[D]"


SPANS = {
    "months": "make_ym_interval(cast(i as int), 2)",
    "years": "interval '3' year",
    "all_months": "array(make_ym_interval(0, cast(i as int)), null)",
    "duration": "make_dt_interval(0, 1, -2, i + 0.000004)",
    "hours": "interval '5' hour",
    "calendar": "make_interval(1, 2, 0, cast(i as int), 0, 0, -1.5)",
    "calendars": "named_struct('a', make_interval(0, 0, 1))",
}


def test_intervals(spark, readers, via):
    columns = [f"if(i = 1, null, {text}) as {name}" for name, text in SPANS.items()]
    frame = spark.range(0, 3, 1, 1).withColumnRenamed("id", "i").selectExpr(*columns)
    minutes = datetime.timedelta(minutes=58)
    first, nothing, last = readers.rows(frame, via=via)
    assert first == (2, 36, [0, None], minutes + datetime.timedelta(microseconds=4), datetime.timedelta(hours=5), (14, 0, -1500000), ((0, 7, 0),))
    assert nothing == (None,) * 7
    assert last == (26, 36, [2, None], minutes + datetime.timedelta(seconds=2, microseconds=4), datetime.timedelta(hours=5), (14, 2, -1500000),
                    ((0, 7, 0),))
    arrays = readers.arrays(frame.where("months is not null").drop("all_months"), via=via)
    assert same(arrays["months"], np.array([2, 26], "i4")) and same(arrays["hours"], np.array([18000000000] * 2, "m8[us]"))
    assert arrays["calendar"].tolist() == [(14, 0, -1500000), (14, 2, -1500000)]


def test_times_of_the_day(spark, readers, via):
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 1):
        pytest.skip("Spark has the type TIME from 4.1 on")
    spark.conf.set("spark.sql.timeType.enabled", "true")
    frame = spark.sql("select time'12:34:56.000001' as t, array(time'23:59:59', null) as ts")
    row, = readers.rows(frame, via=via)
    assert row == (datetime.time(12, 34, 56, 1), [datetime.time(23, 59, 59), None])
    assert same(readers.arrays(frame.select("t"), via=via)["t"], np.array([45296000001000]))


def test_vectors_as_what_they_store(spark, readers, via):
    from pyspark.ml.linalg import Vectors

    vectors = [Vectors.dense([1.5, -2.0]), Vectors.sparse(4, {1: 3.0, 3: -1.0}), Vectors.dense([]), None]
    frame = spark.createDataFrame([(vector,) for vector in vectors], _vector_schema()).coalesce(1)
    rows = readers.rows(frame, via=via)
    assert [row.v and tuple(row.v) for row in rows] == [
        (1, None, None, [1.5, -2.0]), (0, 4, [1, 3], [3.0, -1.0]), (1, None, None, []), None]
    assert rows[0].v.__fields__ == ["type", "size", "indices", "values"]


def _vector_schema():
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField("v", VectorUDT())])


INTS = {"byte": 8, "short": 16, "int": 32, "long": 64}
LEAVES = {
    **{name: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in INTS.items()},
    "boolean": st.booleans(),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": st.text(max_size=20),
    "binary": st.binary(max_size=20).map(bytearray),
    "date": st.dates(datetime.date(1900, 1, 1)),
    "timestamp": st.datetimes(datetime.datetime(1971, 1, 1), datetime.datetime(2037, 1, 1)),
    "timestamp_ntz": st.datetimes(datetime.datetime(1900, 1, 1)),
    "decimal(9,2)": st.decimals(-10**6, 10**6, places=2),
    "decimal(38,10)": st.decimals(-10**27, 10**27, places=10),
}


def extend(children):
    """Types that hold other types: (text, strategy of values)."""
    def array(item):
        return f"array<{item[0]}>", st.lists(st.none() | item[1], max_size=4)

    def struct(items):
        names = [f"f{i}" for i in range(len(items))]
        text = ",".join(f"{name}:{item[0]}" for name, item in zip(names, items))
        return f"struct<{text}>", st.tuples(*(st.none() | item[1] for item in items))

    def mapping(item):
        return f"map<string,{item[0]}>", st.dictionaries(LEAVES["string"], st.none() | item[1], max_size=3)

    return children.map(array) | st.lists(children, min_size=1, max_size=3).map(struct) | children.map(mapping)


TYPES = st.recursive(st.sampled_from(sorted(LEAVES)).map(lambda name: (name, LEAVES[name])), extend, max_leaves=5)


@st.composite
def tables(draw):
    """(schema, rows): each column is a case of its own, since Spark jobs are slow."""
    types = draw(st.lists(TYPES, min_size=12, max_size=12))
    schema = ", ".join(f"c{i}: {text}" for i, (text, _) in enumerate(types))
    return schema, draw(st.lists(st.tuples(*(st.none() | values for _, values in types)), min_size=1, max_size=8))


@pytest.mark.long
@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(table=tables())
def test_any_schema_and_data(spark, readers, table):
    schema, rows = table
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    expected = frame.collect()
    for via in ("jvm", "arrow"):
        got = readers.rows(frame, via=via)
        assert len(got) == len(expected)
        for row, wanted in zip(got, expected):
            for field, value, right in zip(frame.schema, row, wanted):
                assert same(value, right), (via, field, value, right)


# -- shapes and sources

def test_empty_partitions_and_one_row(spark, readers, via):
    frame = spark.range(0, 100, 1, 20).where("id = 57")
    assert readers.rows(frame, via=via) == [(57,)]
    assert readers.rows(frame.where("id < 0"), via=via) == []


@pytest.mark.long
@pytest.mark.timeout(400)
def test_ten_thousand_columns(spark, readers):
    names = [f"c{i}" for i in range(10_000)]
    frame = spark.range(0, 3, 1, 1).selectExpr(*(f"id * {i} as {name}" for i, name in enumerate(names)))  # which takes longer than to feed it
    for via in ("jvm", "arrow"):
        arrays = readers.arrays(frame, via=via)
        assert list(arrays) == names
        assert all(arrays[name].tolist() == [0, i, 2 * i] for i, name in enumerate(names))


def test_a_row_of_100_mb(spark, readers, via):
    frame = spark.range(0, 3, 1, 1).selectExpr("id", "repeat('0123456789', if(id = 1, 10000000, 1)) as text")
    rows = readers.rows(frame, via=via)
    assert [row.id for row in rows] == [0, 1, 2] and [len(row.text) for row in rows] == [10, 100_000_000, 10]
    assert rows[1].text[-20:] == "0123456789" * 2


def test_columns(spark, readers, via):
    frame = spark.range(0, 4, 1, 1).selectExpr("id", "id + 1 as `a.b`", "id + 2 as `c``d`", "id + 3 as e", "parse_url('x', 'HOST') as f")
    rows = readers.rows(frame, via=via, columns=["c`d", "a.b"])
    assert rows == [(i + 2, i + 1) for i in range(4)] and rows[0].__fields__ == ["c`d", "a.b"]
    assert readers.rows(frame, via=via, columns="e") == [(i + 3,) for i in range(4)]


def test_cached_and_parquet_sources(spark, readers, via, tmp_path):
    made = spark.range(0, 5000, 1, 4).selectExpr("id", "array_repeat(cast(id as float), 20) as x")
    made.write.parquet(str(tmp_path / "rows"))
    read = spark.read.parquet(str(tmp_path / "rows"))
    expected = [(i, [float(i)] * 20) for i in range(5000)]
    assert sorted(readers.rows(read, via=via)) == expected
    cached = made.cache()
    try:
        cached.count()
        assert sorted(readers.rows(cached, via=via)) == expected
        assert sorted(readers.rows(cached.where("x[0] < 10"), via=via)) == expected[:10]
    finally:
        cached.unpersist(blocking=True)


@pytest.mark.long
def test_a_plan_with_joins_and_local_rows(spark, readers, via):
    """Adaptive execution runs the join's shuffles before the last stage is known; rows from Python are projected."""
    left = spark.createDataFrame([(i, f"n{i}") for i in range(50)], "k: long, name: string")
    right = spark.range(0, 100, 1, 3).selectExpr("id % 50 as k", "id as v").repartition(4)
    frame = left.hint("merge").join(right, "k").groupBy("name").agg({"v": "sum"})
    assert sorted(readers.rows(frame, via=via)) == sorted(frame.collect())
    shown = spark.sql("show functions like 'abs'")
    assert readers.rows(shown, via=via) == shown.collect()


@pytest.mark.long
def test_shuffle(spark, readers, via):
    frame = spark.range(0, 1000, 1, 4)
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    try:
        orders = [[row.id for row in readers.rows(frame, via=via, shuffle=shuffle)] for shuffle in (7, 7, True)]
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
    assert all(sorted(order) == list(range(1000)) for order in orders)
    assert list(range(1000)) not in orders and orders[0] != orders[1]  # another epoch, another order


# -- what is refused before any task starts


def test_what_is_refused(spark, readers, via):
    cluster = readers.cluster("rows")
    frame = spark.range(3).selectExpr("id", "named_struct('x', null) as person", "null as nothing", "id as ID2")
    wrong = [
        (dict(columns=["id", "ix"]), ValueError, "there is no column 'ix'; the DataFrame has 'id', 'person', 'nothing', 'ID2'"),
        (dict(columns=["id", "id"]), ValueError, "'id' is there twice"),
        (dict(columns=[]), ValueError, "no column to feed"),
        (dict(columns=["person"]), _tfos.UnsupportedError, "column person.x: the type void cannot be fed"),
        (dict(columns=["nothing"]), _tfos.UnsupportedError, "column nothing: the type void cannot be fed"),
        (dict(shuffle="yes"), ValueError, "shuffle must be"),
        (dict(via="java"), ValueError, "via must be"),
    ]
    for options, error, words in wrong:
        with pytest.raises(error, match=words):
            cluster.train(frame, 1, **{"via": via, **options})
    with pytest.raises(ValueError, match="'id' is there twice"):
        cluster.train(spark.range(3).selectExpr("id", "id + 1 as id"), 1, via=via)
    with pytest.raises(ValueError, match="are for DataFrames"):
        cluster.train(spark.sparkContext.parallelize([1]), 1, via=via)
    assert sorted(readers.rows(frame, via=via, columns=["id"])) == [(0,), (1,), (2,)]  # nothing of that was fed


def test_decimals_and_bytes_are_python_values(spark, readers, via):
    row, = readers.rows(spark.sql("select 1.10BD as price, X'00ff' as data"), via=via)
    assert row.price == decimal.Decimal("1.10") and row.data == b"\0\xff"

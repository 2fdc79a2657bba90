# SPDX-License-Identifier: Apache-2.0
"""The data source ``tfrecord``: what each type becomes, both ways, against TensorFlow's own reader and writer, and what is refused."""

import bz2
import contextlib
import datetime
import decimal
import glob
import lzma
import os
import re

import pytest

from conftest import make_context, wait_until

tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def source_spark(tmp_path_factory):
    """A session that has the data source. Two tasks at a time, in one process."""
    from pyspark.sql import SparkSession

    from tensorflowonspark import tfrecord

    folder = tmp_path_factory.mktemp("spark")
    context = make_context("local[2]", spark_sql_warehouse_dir=folder / "warehouse", spark_sql_shuffle_partitions=2,
                           spark_hadoop_javax_jdo_option_ConnectionURL=f"jdbc:derby:;databaseName={folder}/metastore;create=true",
                           spark_sql_session_timeZone="UTC", spark_sql_timestampType="TIMESTAMP_LTZ")
    session = SparkSession(context)
    tfrecord.add_to(session)
    yield session
    context.stop()


@pytest.fixture
def spark(source_spark):
    return source_spark


def files(path):
    return sorted(name for name in glob.glob(f"{path}/**/part-*", recursive=True))


def compression_of(name):
    return {".gz": "GZIP", ".deflate": "ZLIB"}.get(os.path.splitext(name)[1], "")


def records(path):
    """The records of all files below ``path``, as TensorFlow reads them."""
    return [record.numpy() for name in files(path) for record in tf.data.TFRecordDataset(name, compression_of(name))]


def features(record):
    """A record's features: name to kind and values."""
    parsed = tf.train.Example.FromString(record).features.feature
    return {name: (one.WhichOneof("kind"), list(getattr(one, one.WhichOneof("kind")).value)) for name, one in parsed.items()}


def feature(*values):
    if not values:
        return tf.train.Feature()
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write_examples(path, rows, compression=""):
    """Writes, by TensorFlow, an Example for each dict of lists."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for row in rows:
            writer.write(tf.train.Example(features=tf.train.Features(feature={name: feature(*row[name]) for name in row})).SerializeToString())


def words_of(error):
    """The text of an exception from Spark, with its causes."""
    return str(error.value)


@contextlib.contextmanager
def warnings_of(spark, name):
    """What the logger of this class writes on the driver meanwhile, in a StringWriter of Java's."""
    jvm = spark._jvm
    log = jvm.java.io.StringWriter()
    logger = jvm.org.apache.logging.log4j.LogManager.getLogger(name)
    appender = jvm.org.apache.logging.log4j.core.appender.WriterAppender.createAppender(None, None, log, "test", False, True)
    appender.start()
    logger.addAppender(appender)
    logger.setLevel(jvm.org.apache.logging.log4j.Level.WARN)
    try:
        yield log
    finally:
        logger.removeAppender(appender)
        logger.setLevel(jvm.org.apache.logging.log4j.Level.OFF)


def load(spark, path, schema=None, **options):
    reader = spark.read.format("tfrecord").options(**options)
    return (reader.schema(schema) if schema is not None else reader).load(path if isinstance(path, list) else str(path))


# ---- types, a cell each

MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 1, 999999)
MICROS = 1709209801999999

# Spark's type: an expression of it; what it is in an Example; as what it comes back with the type given, and without.
SCALARS = {
    "boolean": ("true", ("int64_list", [1]), True, 1),
    "tinyint": ("-128Y", ("int64_list", [-128]), -128, -128),
    "smallint": ("32767S", ("int64_list", [32767]), 32767, 32767),
    "int": ("-2147483648", ("int64_list", [-2147483648]), -2147483648, -2147483648),
    "bigint": ("9223372036854775807", ("int64_list", [2**63 - 1]), 2**63 - 1, 2**63 - 1),
    "float": ("cast(0.1 as float)", ("float_list", [pytest.approx(0.1)]), pytest.approx(0.1), pytest.approx(0.1)),
    "double": ("-0.25D", ("float_list", [-0.25]), -0.25, -0.25),
    "decimal(9,2)": ("cast('3.5' as decimal(9,2))", ("float_list", [3.5]), decimal.Decimal("3.50"), 3.5),
    "decimal(38,0)": ("cast('1024' as decimal(38,0))", ("float_list", [1024.0]), decimal.Decimal(1024), 1024.0),
    "string": ("'Ünï'", ("bytes_list", ["Ünï".encode()]), "Ünï", "Ünï"),
    "binary": ("X'00FF'", ("bytes_list", [b"\0\xff"]), bytearray(b"\0\xff"), bytearray(b"\0\xff")),
    "date": ("DATE'1969-12-31'", ("int64_list", [-1]), datetime.date(1969, 12, 31), -1),
    "timestamp": ("TIMESTAMP'2024-02-29 12:30:01.999999Z'", ("int64_list", [MICROS]), None, MICROS),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2024-02-29 12:30:01.999999'", ("int64_list", [MICROS]), MOMENT, MICROS),
    "interval day to second": ("INTERVAL '1 00:00:00.000001' DAY TO SECOND", ("int64_list", [86400000001]),
                               datetime.timedelta(days=1, microseconds=1), 86400000001),
    "interval year to month": ("INTERVAL '-1-2' YEAR TO MONTH", ("int64_list", [-14]), None, -14),
}


@pytest.fixture(scope="module")
def scalars(source_spark, tmp_path_factory):
    """Writes, for each type, a column c of it and a column a of arrays of two; gives the folder and the schema."""
    names = {name: f"{i:02}" for i, name in enumerate(SCALARS)}
    columns = [f"{text} AS c{names[name]}, array({text}, {text}) AS a{names[name]}" for name, (text, *_) in SCALARS.items()]
    frame = source_spark.sql("SELECT " + ", ".join(columns))
    path = str(tmp_path_factory.mktemp("types") / "scalars")
    frame.write.format("tfrecord").save(path)
    return path, frame, names


@pytest.mark.parametrize("kind", list(SCALARS))
def test_s71_a_type_as_a_column_and_in_an_array(spark, scalars, kind):
    path, frame, names = scalars
    _, stored, typed, untyped = SCALARS[kind]
    column, array = f"c{names[kind]}", f"a{names[kind]}"
    found = features(records(path)[0])
    assert found[column] == stored and found[array] == (stored[0], stored[1] * 2)
    assert dict(frame.dtypes)[column] == kind
    text = [f"cast({name} as string)" for name in (column, array)]  # Python has no value for some
    assert load(spark, path, frame.schema).selectExpr(*text).first() == frame.selectExpr(*text).first()
    if typed is not None:
        assert load(spark, path, frame.schema).select(column, array).first() == (typed, [typed, typed])
    assert load(spark, path).select(column, array).first() == (untyped, [untyped, untyped])


def test_s71_structs_are_features_named_by_their_path(spark, tmp_path):
    frame = spark.sql("SELECT named_struct('a', 1, 'b', named_struct('c', 'x', 'd', array(0.5f, 1f))) AS s, 2 AS t")
    frame.write.format("tfrecord").save(str(tmp_path / "a"))
    assert features(records(tmp_path / "a")[0]) == {"s.a": ("int64_list", [1]), "s.b.c": ("bytes_list", [b"x"]),
                                                    "s.b.d": ("float_list", [0.5, 1.0]), "t": ("int64_list", [2])}
    assert load(spark, tmp_path / "a", frame.schema).collect() == frame.collect()
    assert load(spark, tmp_path / "a").select("`s.b.c`", "t").first() == ("x", 2)


def test_s71_vectors_are_lists_of_doubles(spark, tmp_path):
    from pyspark.ml.linalg import Vectors
    from pyspark.mllib.linalg import Vectors as OldVectors

    rows = [(0, Vectors.dense([1.0, 0.5]), OldVectors.dense([3.0])), (1, Vectors.sparse(3, {1: 4.0}), OldVectors.sparse(2, {}))]
    frame = spark.createDataFrame(rows, ["id", "v", "w"]).coalesce(1)
    frame.write.format("tfrecord").save(str(tmp_path / "a"))
    assert [features(record)["v"][1] for record in records(tmp_path / "a")] == [[1.0, 0.5], [0.0, 4.0, 0.0]]
    back = load(spark, tmp_path / "a", frame.schema).orderBy("id").collect()
    assert [(row.v, row.w) for row in back] == [(Vectors.dense([1.0, 0.5]), OldVectors.dense([3.0])),
                                                (Vectors.dense([0.0, 4.0, 0.0]), OldVectors.dense([0.0, 0.0]))]
    empty = spark.createDataFrame([(None, 1)], frame.select("v", "id").schema)
    empty.write.format("tfrecord").save(str(tmp_path / "b"))
    assert load(spark, tmp_path / "b", empty.schema).first() == (None, 1)


def test_arrays_of_arrays_in_a_sequence_example(spark, tmp_path):
    frame = spark.sql("SELECT array(array(1, 2), array(), array(3)) AS i, array(array('a'), array('b', '')) AS s, array(array(0.5f)) AS f, 7L AS id")
    frame.write.format("tfrecord").option("recordType", "SequenceExample").save(str(tmp_path / "a"))
    parsed = tf.train.SequenceExample.FromString(records(tmp_path / "a")[0])
    assert [list(one.int64_list.value) for one in parsed.feature_lists.feature_list["i"].feature] == [[1, 2], [], [3]]
    assert list(parsed.context.feature["id"].int64_list.value) == [7]
    assert load(spark, tmp_path / "a", frame.schema, recordType="SequenceExample").collect() == frame.collect()
    inferred = load(spark, tmp_path / "a", recordType="SequenceExample")
    assert dict(inferred.dtypes) == {"i": "array<array<bigint>>", "s": "array<array<string>>", "f": "array<array<float>>", "id": "bigint"}
    assert inferred.select("i", "s", "f", "id").collect() == frame.collect()


@pytest.mark.parametrize("column, record_type, words", [
    ("map('a', 1)", "Example", r"column `m`"), ("array(map('a', 1))", "Example", r"column `m`"),
    ("named_struct('x', map('a', 1))", "Example", r"column `m`"), ("array(named_struct('x', 1))", "Example", r"column `m`"),
    ("make_interval(1)", "Example", r"column `m`|interval data type"), ("NULL", "Example", r"column `m`"),
    ("array(array(array(1)))", "SequenceExample", r"column `m`"),
    ("array(array(1))", "Example", r"column m: an Example cannot hold array<array<int>>, lists of lists: they need recordType=SequenceExample"),
    ("array(1)", "ByteArray", r"column m: recordType=ByteArray is one column of binary or string, not array<int>"),
])
def test_s71_what_records_cannot_hold_is_refused_before_a_task_starts(spark, tmp_path, column, record_type, words):
    frame = spark.sql(f"SELECT 1 AS a, {column} AS m")
    with pytest.raises(Exception, match=words) as error:
        frame.write.format("tfrecord").option("recordType", record_type).save(str(tmp_path / "a"))
    assert "Task" not in words_of(error).split("\n")[0] and not files(tmp_path)


# ---- nulls and losses

def test_s61_s63_a_null_is_a_feature_that_is_not_there(spark, tmp_path):
    frame = spark.sql("SELECT * FROM VALUES (1, 'a', array(1), 1.5D), (2, CAST(NULL AS string), NULL, NULL) AS t(id, s, l, d)").coalesce(1)
    frame.write.format("tfrecord").save(str(tmp_path / "a"))
    assert [sorted(features(record)) for record in records(tmp_path / "a")] == [["d", "id", "l", "s"], ["id"]]
    assert load(spark, tmp_path / "a", frame.schema).orderBy("id").collect() == frame.collect()
    assert load(spark, tmp_path / "a").orderBy("id").select("s", "l").collect()[1] == (None, None)


@pytest.mark.parametrize("array", ["array('a', NULL)", "array(1, NULL)"])
def test_s61_a_null_within_an_array_is_refused_by_column_and_row(spark, tmp_path, array):
    frame = spark.range(5).coalesce(1).selectExpr("id", f"IF(id = 3, {array}, NULL) AS numbers")
    with pytest.raises(Exception, match=r"row 3: column numbers: .*null"):
        frame.write.format("tfrecord").save(str(tmp_path / "a"))
    assert not files(tmp_path)


def test_s62_a_feature_of_no_kind_is_null(spark, tmp_path):
    write_examples(tmp_path / "a" / "part-0", [{"x": [] if i == 500 else [i], "y": [b"t"]} for i in range(1000)])
    frame = load(spark, tmp_path / "a")
    assert sorted(frame.dtypes) == [("x", "bigint"), ("y", "string")]
    assert frame.where("x IS NULL").select("x", "y").collect() == [(None, "t")] and frame.selectExpr("count(x)", "count(*)").first() == (999, 1000)


INEXACT = ("SELECT 1.1D AS x, array(0.5D, 2.2D, 1e300D) AS many, cast(16777217 as decimal(10,0)) AS d, 9007199254740993 AS i, "
           "named_struct('x', 0.1D) AS s, 1.1f AS f")


@pytest.mark.parametrize("name", ["tfrecord", "tfrecords", "org.tensorflow.spark.datasources.tfrecords", "com.linkedin.spark.datasources.tfrecord", "dfutil"])
def test_s94_doubles_are_floats_and_one_warning_has_their_number_and_columns(spark, tmp_path, name):
    from tensorflowonspark import dfutil

    frame = spark.sql(INEXACT).crossJoin(spark.range(0, 10, 1, 2)).coalesce(2)

    with warnings_of(spark, "org.tfos.RoundingTotals") as log:
        if name == "dfutil":
            dfutil.saveAsTFRecords(frame, str(tmp_path / "a"))
        else:
            frame.write.format(name).save(str(tmp_path / "a"))
        text = wait_until(log.toString, 60, "the warning")
    assert re.search(r"^tfrecord: 50 numbers were rounded to float, which is what records hold, and 10 of them, beyond its range, became infinite: "
                     r"column d \(10\), many \(20\), s\.x \(10\), x \(10\)\. The option schemaMode=sidecar keeps .*; exact=true refuses", text)
    assert len(text.splitlines()) == 1
    back = load(spark, tmp_path / "a").selectExpr("x", "many", "d", "i", "`s.x`", "f").distinct().collect()
    assert back == [(pytest.approx(1.1), [0.5, pytest.approx(2.2), float("inf")], 16777216.0, 9007199254740993, pytest.approx(0.1), pytest.approx(1.1))]


@pytest.mark.parametrize("value", ["0.1D", "cast('0.123456789' as decimal(9,9))", "1e300D", "cast(16777217 as decimal(10,0))"])
def test_s67_s94_what_would_be_rounded_is_refused_if_asked_for_or_taken_as_it_is(spark, tmp_path, value):
    frame = spark.sql(f"SELECT {value} AS x")
    for refusing in ({"exact": True}, {"allowRounding": False}):
        with pytest.raises(Exception, match=r"row 0: column x: [0-9.e+]* is no float.*schemaMode=sidecar"):
            frame.write.format("tfrecord").options(**refusing).mode("append").save(str(tmp_path / "a"))
    with warnings_of(spark, "org.tfos.RoundingTotals") as log:
        frame.write.format("tfrecord").option("allowRounding", True).mode("append").save(str(tmp_path / "a"))
        assert load(spark, tmp_path / "a").first().x == pytest.approx(float("inf") if value == "1e300D" else float(frame.first().x), rel=1e-6)
    assert not log.toString()


def test_s67_without_a_schema_doubles_are_floats_and_ints_are_longs(spark, tmp_path):
    spark.sql("SELECT 1.5D AS d, 3 AS i, array(1) AS one").write.format("tfrecord").save(str(tmp_path / "a"))
    assert sorted(load(spark, tmp_path / "a").dtypes) == [("d", "float"), ("i", "bigint"), ("one", "bigint")]


@pytest.mark.parametrize("schema, words", [
    ("x tinyint", r"column x: 300 does not fit tinyint: read it as bigint"), ("x boolean", r"column x: 300 does not fit boolean"),
    ("f bigint", r"column f: the feature is a float_list, which bigint cannot hold: read it as float"),
    ("wide float", r"column wide: the feature is an int64_list, and its 16777217 does not fit float: read it as double, or as text"),
    ("many bigint", r"column many: 2 values, where bigint is one: read it as array<bigint>"), ("b string", r"column b: bytes .* no UTF-8: read it as binary"),
    ("f decimal(2,1)", r"column f: 11\.1 does not fit decimal\(2,1\): read it as float"),
    ("b array<double>", r"column b: the feature is a bytes_list, which array<double> cannot hold: read it as array<binary>, or as text"),
    ("x array<array<bigint>>", r"column x: an Example cannot hold array<array<bigint>>, lists of lists: they need recordType=SequenceExample"),
    ("x map<string,int>", "x"),
])
def test_s71_s95_what_the_schema_given_cannot_hold_is_an_error_by_column_and_file(spark, tmp_path, schema, words):
    write_examples(tmp_path / "a" / "part-0", [{"x": [300], "many": [1, 2], "b": [b"\xff"], "f": [11.1], "wide": [2**24 + 1]}])
    with pytest.raises(Exception, match=words) as error:
        load(spark, tmp_path / "a", schema).collect()
    assert ("array<array" in schema or "map" in schema) or re.search(r"CorruptError: record: file:.*/a/part-0: offset 0: ", words_of(error))
    assert "Arrow" not in words_of(error).split("\n")[0] and "list<" not in words_of(error)


@pytest.mark.parametrize("all_records", [True, False])
def test_features_of_several_kinds_have_the_common_type(spark, tmp_path, all_records):
    kinds = [{"x": [1], "many": [1, 2], "text": [2]}, {"x": [1.5], "many": [0.5], "text": [b"one"]}, {"text": [0.5]}]
    for i, record in enumerate(kinds):
        write_examples(tmp_path / "a" / f"part-{i}", [record])
    frame = spark.read.format("tfrecord").option("inferAll", all_records).load(str(tmp_path / "a"))
    assert dict(frame.dtypes) == {"x": "float", "many": "array<float>", "text": "string"}
    found = {tuple(row) for row in frame.selectExpr("x", "cast(many AS string)", "text").collect()}
    assert found == {(1.0, "[1.0, 2.0]", "2"), (1.5, "[0.5]", "one"), (None, None, "0.5")}


# ---- a schema beside the data

def test_s67_with_the_schema_beside_the_data_everything_comes_back(spark, scalars, tmp_path):
    from pyspark.ml.linalg import Vectors

    frame = scalars[1].selectExpr("*", "0.1D AS double", "array(1e300D, -0D) AS doubles", "cast('-12345678901234567890.123456789' AS decimal(38,9)) AS decimal",
                                  "array(cast('0.01' AS decimal(5,2))) AS decimals", "array(7) AS one", "cast(NULL AS double) AS none",
                                  "named_struct('x', 0.1D, 'y', array('a')) AS s", "cast('NaN' AS double) AS nan")
    vectors = spark.createDataFrame([(Vectors.dense([0.1, 2.0]),)], ["v"])
    frame = frame.crossJoin(vectors)
    frame.write.format("tfrecord").option("schemaMode", "sidecar").save(str(tmp_path / "a"))
    back = load(spark, tmp_path / "a")
    assert back.dtypes == frame.dtypes
    names = [name for name, kind in frame.dtypes if not kind.startswith(("interval year", "array<interval year"))]  # Python has no value for them
    assert [str(value) for value in back.select(names).first()] == [str(value) for value in frame.select(names).first()]
    assert back.where(f"c{scalars[2]['interval year to month']} = INTERVAL '-1-2' YEAR TO MONTH").count() == 1
    found = features(records(tmp_path / "a")[0])
    assert tf.io.decode_raw(found["double"][1][0], tf.float64).numpy() == [0.1] and found["decimals"] == ("bytes_list", [b"0.01"])
    assert load(spark, tmp_path / "a", back.schema).count() == 1
    assert load(spark, tmp_path / "a", frame.select("double").schema, schemaMode="sidecar").first() == (0.1,)
    assert dict(load(spark, tmp_path / "a", schemaMode="infer").dtypes)["double"] == "binary"
    with pytest.raises(Exception, match="column double"):
        load(spark, tmp_path / "a", "double double").collect()
    back.select("double", "one").write.format("tfrecord").option("allowRounding", True).save(str(tmp_path / "b"))  # the encoding does not go along
    assert features(records(tmp_path / "b")[0])["double"] == ("float_list", [pytest.approx(0.1)])


def test_s67_a_schema_beside_the_data_is_that_of_all_files_in_the_folder(spark, tmp_path):
    frame = spark.sql("SELECT 0.1D AS x, 1 AS k")

    def save(frame, mode, **options):
        frame.write.format("tfrecord").partitionBy("k").options(**options).mode(mode).save(str(tmp_path / "a"))

    save(frame, "append", schemaMode="sidecar")
    save(frame, "append", schemaMode="sidecar")
    assert load(spark, tmp_path / "a").collect() == [(0.1, 1)] * 2 and load(spark, f"{tmp_path}/a/k=1").collect() == [(0.1,)] * 2
    with pytest.raises(Exception, match="append with schemaMode=sidecar"):
        save(frame, "append", allowRounding=True)
    with pytest.raises(Exception, match="another schema beside it: struct<x:double>"):
        save(frame.withColumn("y", frame.x), "append", schemaMode="sidecar")
    save(frame, "overwrite", allowRounding=True)
    assert dict(load(spark, tmp_path / "a").dtypes)["x"] == "float" and not (tmp_path / "a" / "_tfos_schema.json").exists()
    with pytest.raises(Exception, match="append without schemaMode=sidecar"):
        save(frame, "append", schemaMode="sidecar")
    with pytest.raises(Exception, match="no schema beside"):
        load(spark, tmp_path / "a", schemaMode="sidecar")
    for name, options in (("b", {"schemaMode": "sidecar"}), ("c", {"allowRounding": True})):
        frame.write.format("tfrecord").options(**options).save(str(tmp_path / name))
    with pytest.raises(Exception, match="are not the same"):
        spark.read.format("tfrecord").load([f"{tmp_path}/b", f"{tmp_path}/c"])
    (tmp_path / "b" / "._tfos_schema.json.crc").unlink()
    (tmp_path / "b" / "_tfos_schema.json").write_text("{")
    with pytest.raises(Exception, match="is not the schema of a DataFrame"):
        load(spark, tmp_path / "b")


def test_s67_a_table_with_the_schema_beside_its_data(spark):
    spark.sql("CREATE TABLE exactly USING tfrecord OPTIONS (schemaMode 'sidecar') AS SELECT 0.1D AS x, cast(0.3 AS decimal(3,2)) AS y")
    spark.sql("INSERT INTO exactly VALUES (0.2D, 0.07)")
    try:
        assert sorted(spark.table("exactly").collect()) == [(0.1, decimal.Decimal("0.30")), (0.2, decimal.Decimal("0.07"))]
    finally:
        spark.sql("DROP TABLE exactly")


# ---- files that TensorFlow writes

def test_s70_a_list_in_some_record_is_a_list(spark, tmp_path):
    write_examples(tmp_path / "a" / "part-0", [{"x": [1], "y": [1.0]}, {"x": [2, 3], "y": [2.0]}, {"x": [4], "y": [3.0]}])
    frame = load(spark, tmp_path / "a")
    assert sorted(frame.dtypes) == [("x", "array<bigint>"), ("y", "float")]
    assert frame.select("x", "y").collect() == [([1], 1.0), ([2, 3], 2.0), ([4], 3.0)]


def test_local_files_have_no_checksums_of_hadoop_beside_them(spark, tmp_path):
    """Those of files that are there already are ignored: records have checksums of their own."""
    spark.range(3).coalesce(1).write.format("tfrecord").save(str(tmp_path / "out"))
    [name] = files(tmp_path / "out")
    sums = tmp_path / "out" / f".{os.path.basename(name)}.crc"
    assert not sums.exists()
    sums.write_bytes(b"crc\0\0\0\2\0" + bytes(4))
    assert spark.read.format("tfrecord").load(str(tmp_path / "out")).count() == 3


@pytest.mark.long
def test_s78_that_very_folder(spark, tmp_path):
    """A folder is written under exactly its name, and read by it, or by the name with its special characters escaped."""
    from functools import reduce

    names = ["a b", "a#b", "a%20b", "a%b", "a;b", "a,b", "a&b=c@d+e", "日本", " a ", "'\"`|^<>", "a?b", "a[1]b", "a*b", "{a,b}", "a", "b", "axb", "a1b"]
    for number, name in enumerate(names):
        options = {"schemaMode": "sidecar"} if number % 2 else {}
        spark.range(number, number + 1, 1, 1).write.format("tfrecord").options(**options).save(f"file://{tmp_path}/{name}")
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    escaped = [re.sub(r"[]{}[*?\\]", r"\\\g<0>", name) for name in names]
    frames = [load(spark, f"{form}{tmp_path}/{name}", inferAll=True).selectExpr("id", f"'{form}' AS form")
              for name in escaped for form in ("", "file://")]
    assert [row.id for row in reduce(lambda one, other: one.union(other), frames).collect()] == [number for number in range(len(names)) for _ in range(2)]
    for name in ("a?b", "a[1]b", "a*b", "{a,b}"):
        with pytest.raises(Exception, match="is there, but Hadoop takes its name for a pattern, and would read .*: put a backslash before such"):
            load(spark, tmp_path / name, schemaMode="infer").collect()
    assert load(spark, tmp_path / "[ab]", schemaMode="infer").count() == 2  # nothing has this name


@pytest.mark.long
def test_s85_files_of_hadoops_codecs(spark, tmp_path):
    """Read as Hadoop's formats read them, as a whole however small the parts are set; the error of others names their format."""
    from test_hadoop_formats import compress_by_hadoop

    spark.range(0, 5000, 1, 1).selectExpr("id", "repeat(cast(id AS string), 20) AS s").write.format("tfrecord").save(str(tmp_path / "plain"))
    data = open(files(tmp_path / "plain")[0], "rb").read()
    (tmp_path / "a").mkdir()
    for codec, extension in (("BZip2Codec", "bz2"), ("Lz4Codec", "lz4"), ("SnappyCodec", "snappy")):
        compress_by_hadoop(spark, codec, tmp_path / "a" / f"part-0.tfrecord.{extension}", data)
        compress_by_hadoop(spark, codec, tmp_path / "a" / f"part-1.tfrecord.{extension}", b"")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "10000")
    try:
        for options in ({}, {"inferAll": True}, {"mode": "skipRecord"}):
            read = load(spark, tmp_path / "a", **options)
            assert read.selectExpr("count(*)", "sum(id)", "count(DISTINCT s)").first() == (3 * 5000, 3 * sum(range(5000)), 5000)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    for extension in ("bz2", "lz4", "snappy"):
        whole = (tmp_path / "a" / f"part-0.tfrecord.{extension}").read_bytes()
        for size in (3, 6, 20, len(whole) // 2):
            (tmp_path / f"cut.{extension}").write_bytes(whole[:size])
            with pytest.raises(Exception, match=f"cut.{extension}"):
                load(spark, tmp_path / f"cut.{extension}").collect()
    for name, content, words in (("a.xz", lzma.compress(data), "it is compressed by xz, and what can be read is gzip"),
                                 ("a.tfrecord", bz2.compress(data), "it is compressed by bzip2, .*decompress it first, or read it by Spark or Hadoop"),
                                 ("a.lz4", b"\x04\x22\x4d\x18" + data, "it is compressed by lz4, .*: decompress it first"),
                                 ("a.zst", b"\x28\xb5\x2f\xfd" + data, "ZStandardCodec, which is for its name, cannot read it|compressed data")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Exception, match=f"{name}: {words}"):
            load(spark, tmp_path / name, mode="skipRecord").collect()


@pytest.mark.parametrize("codec, extension", [
    ("gzip", ".gz"), ("org.apache.hadoop.io.compress.GzipCodec", ".gz"), ("deflate", ".deflate"), ("zlib", ".deflate"),
    ("org.apache.hadoop.io.compress.DefaultCodec", ".deflate"), ("org.apache.hadoop.io.compress.DeflateCodec", ".deflate"), ("none", ".tfrecord"),
])
def test_s64_codecs_that_tensorflow_reads(spark, tmp_path, codec, extension):
    option = "codec" if "." in codec else "compression"
    spark.range(100).coalesce(1).write.format("tfrecord").option(option, codec).save(str(tmp_path / "a"))
    assert [os.path.splitext(name)[1] for name in files(tmp_path / "a")] == [extension]
    assert [features(record)["id"][1] for record in records(tmp_path / "a")] == [[i] for i in range(100)]
    assert load(spark, tmp_path / "a").selectExpr("sum(id)").first() == (4950,)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_s64_compression_is_found_out_whatever_the_name(spark, tmp_path, compression):
    write_examples(tmp_path / "a" / "part-0", [{"x": [i], "y": [b"text"]} for i in range(3000)], compression)
    assert load(spark, tmp_path / "a").selectExpr("sum(x)", "max(y)").first() == (4498500, "text")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        assert load(spark, tmp_path / "a").selectExpr("sum(x)", "count(*)").first() == (4498500, 3000)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.parametrize("options, words", [
    ({"codec": "snappy"}, r"\"snappy\".*none, gzip .*deflate or zlib"), ({"codec": "org.apache.hadoop.io.compress.BZip2Codec"}, r"BZip2Codec.*gzip"),
    ({"codec": "gzip", "compression": "none"}, r"give one of them"), ({"recordType": "Row"}, r"Example, SequenceExample, ByteArray"),
    ({"writeLocality": "near"}, r"one of distributed, local"), ({"mode": "permissive"}, r"one of strict, skipRecord, skipFile"),
    ({"allowRounding": "maybe"}, r"one of true, false"), ({"exact": "true", "allowRounding": "true"}, r"give one of them"),
    ({"inferFiles": "0"}, r"from 1 to"),
])
def test_s65_values_of_options_that_are_none_are_refused_with_those_that_are(spark, tmp_path, options, words):
    with pytest.raises(Exception, match=words):
        spark.range(1).write.format("tfrecord").options(**options).save(str(tmp_path / "a"))
    assert not files(tmp_path)


def test_s66_the_schema_is_inferred_from_a_sample_of_the_files_or_from_all(spark, tmp_path):
    for i in range(40):
        write_examples(tmp_path / "a" / f"part-{i:02}", [{"x": [i]}, {"x": [i], "rare": [1.0]} if i == 7 else {"x": [i]}])
    assert load(spark, tmp_path / "a").dtypes == [("x", "bigint")]
    assert load(spark, tmp_path / "a", inferAll=True).dtypes == [("x", "bigint"), ("rare", "float")]
    assert load(spark, tmp_path / "a", inferFiles=40).dtypes == [("x", "bigint"), ("rare", "float")]
    assert load(spark, tmp_path / "a", inferFiles=40, inferRecords=1).dtypes == [("x", "bigint")]
    (tmp_path / "a" / "part-09").write_bytes(b"x" * 100)  # none of the sample
    assert load(spark, tmp_path / "a").dtypes == [("x", "bigint")]
    with pytest.raises(Exception, match="part-09"):
        load(spark, tmp_path / "a", inferAll=True)


def test_files_without_records_come_first(spark, tmp_path):
    """Of no bytes at all, and compressed ones without records."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "part-0").touch()
    for i, compression in enumerate(("GZIP", "ZLIB", ""), 1):
        write_examples(tmp_path / "a" / f"part-{i}", [], compression)
    write_examples(tmp_path / "a" / "part-4", [{"x": [1]}, {"x": [2]}])
    for options in ({}, {"inferAll": True}, {"inferFiles": 5}):
        frame = load(spark, tmp_path / "a", **options)
        assert frame.dtypes == [("x", "bigint")] and sorted(frame.collect()) == [(1,), (2,)]


def test_s66_files_that_disagree_are_named_with_their_feature(spark, tmp_path):
    lists = tf.train.FeatureLists(feature_list={"x": tf.train.FeatureList(feature=[feature(1)])})
    records = [tf.train.SequenceExample(context=tf.train.Features(feature={"x": feature(1)})), tf.train.SequenceExample(feature_lists=lists)]
    os.makedirs(tmp_path / "a")
    for i, record in enumerate(records):
        with tf.io.TFRecordWriter(str(tmp_path / "a" / f"part-{i}")) as writer:
            writer.write(record.SerializeToString())
    for options in ({}, {"inferAll": True}):
        with pytest.raises(Exception, match=r"CorruptError: .*/part-1: offset 0: feature x: a feature list, and a context feature in .*/part-0: offset 0"):
            spark.read.format("tfrecord").options(recordType="SequenceExample", **options).load(str(tmp_path / "a"))


def test_s84_records_that_are_other_messages_are_errors(spark, tmp_path):
    """The error names the option that reads them; no column is dropped, and none is null."""
    steps = tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=[feature(1.0)])})
    sequence = tf.train.SequenceExample(context=tf.train.Features(feature={"x": feature(1)}), feature_lists=steps)
    for name, record in (("s", sequence.SerializeToString()), ("t", tf.io.serialize_tensor(tf.range(10)).numpy()), ("w", b"hello world")):
        (tmp_path / name).mkdir()
        with tf.io.TFRecordWriter(str(tmp_path / name / "part-0")) as writer:
            writer.write(record)
        words = r"a SequenceExample, with feature lists \(steps\).*: read it with recordType=SequenceExample" if name == "s" else \
            "no Example but another message, or none: recordType=ByteArray gives its bytes"
        for look in (lambda path: load(spark, path), lambda path: load(spark, path, inferAll=True),
                     lambda path: load(spark, path, "steps array<float>").collect(), lambda path: load(spark, path, "x int", mode="skipRecord").collect() or
                     load(spark, path, mode="skipRecord")):
            with pytest.raises(Exception, match=f"the record is {words}|no good record to find columns in"):
                look(tmp_path / name)
    assert load(spark, tmp_path / "s", recordType="SequenceExample").select("x", "steps").first() == (1, [[1.0]])


# ---- damage

def damaged(path, how):
    """Five files of ten records, of which one of the middle file is damaged; that file's name."""
    for i in range(5):
        write_examples(path / f"part-{i}", [{"x": [10 * i + j]} for j in range(10)])
    name = path / "part-2"
    data = bytearray(name.read_bytes())
    size = len(data) // 10
    if how == "cut":
        data = data[:-3]
    elif how == "no record":
        data = data[: 3 * size]
        with tf.io.TFRecordWriter(str(name)) as writer:
            writer.write(b"\xff\xff")
        data += name.read_bytes()
    else:
        data[3 * size + {"size": 0, "size's checksum": 9, "data": 14, "checksum": size - 1}[how]] ^= 4
    name.write_bytes(data)
    return str(name)


KINDS = {
    "size": "the checksum of a record's size is wrong", "size's checksum": "the checksum of a record's size is wrong",
    "data": "the checksum of a record is wrong", "checksum": "the checksum of a record is wrong", "cut": "the file ends within a record",
    "no record": "",
}


@pytest.mark.parametrize("how", list(KINDS))
def test_s68_damage_is_an_error_with_file_offset_and_kind_or_skipped(spark, tmp_path, how):
    name = damaged(tmp_path / "a", how)
    with pytest.raises(Exception, match=f"{re.escape(name)}: offset [0-9]+: {KINDS[how]}"):
        load(spark, tmp_path / "a", "x bigint").collect()
    for mode in ("skipRecord", "skipFile"):
        found = sorted(row.x for row in load(spark, tmp_path / "a", "x bigint", mode=mode).collect())
        lost = sorted(set(range(50)) - set(found))
        assert len(found) == len(set(found)) and set(lost) <= set(range(20, 30))
        if mode == "skipRecord" and how != "no record":
            assert lost == [29 if how == "cut" else 23]
        else:
            assert lost == ([29] if how == "cut" else [*range(23, 30)])


def test_s68_the_driver_knows_what_was_skipped(spark, tmp_path):
    """By file, in the sums of the application, and in its log at the end of the job."""
    from tensorflowonspark import tfrecord

    name = damaged(tmp_path / "a", "data")
    size = os.path.getsize(name) // 10
    damaged(tmp_path / "b", "cut")
    before = tfrecord.passed_over(spark)
    with warnings_of(spark, "org.tfos.DamageTotals") as log:
        assert load(spark, [f"{tmp_path}/a", f"{tmp_path}/b"], "x bigint", mode="skipRecord").count() == 98
        load(spark, tmp_path / "a", "x bigint", mode="skipFile").collect()
        after = {file: passed for file, passed in tfrecord.passed_over(spark.sparkContext).items() if file not in before}
        assert after == {f"file:{name}": (2, size), f"file:{tmp_path}/b/part-2": (1, size - 3)}
        first = re.escape(f"tfrecord: passed over damage: 2 places, {2 * size - 3} bytes, in 2 files: file:{name}, file:{tmp_path}/b/part-2")
        wait_until(lambda: re.search(f"{first}.*1 places, 0 bytes, in 1 files: file:{name}", log.toString(), re.DOTALL), 60, "the warnings")


def test_s68_a_gzip_file_that_is_cut(spark, tmp_path):
    write_examples(tmp_path / "a" / "part-0.gz", [{"x": [i]} for i in range(1000)], "GZIP")
    os.truncate(tmp_path / "a" / "part-0.gz", os.path.getsize(tmp_path / "a" / "part-0.gz") // 2)
    with pytest.raises(Exception, match=r"part-0.gz: .*offset"):
        load(spark, tmp_path / "a", "x bigint").collect()
    found = [row.x for row in load(spark, tmp_path / "a", "x bigint", mode="skipRecord").collect()]
    assert found == [*range(len(found))] and 0 < len(found) < 1000

# SPDX-License-Identifier: Apache-2.0
"""The data source ``tfrecord`` as Spark's own sources are used: save modes, partitions, tables, streams, parts of files, tasks that fail."""

import contextlib
import os
import time

import psutil
import pytest

from conftest import wait_until
from test_spark_source import features, files, load, records, source_spark, spark, write_examples  # noqa: F401

pytest.importorskip("tensorflow")


@pytest.fixture
def settings(spark):  # noqa: F811
    """Sets settings of the session for a test."""
    changed = []

    def change(**values):
        for name, value in values.items():
            changed.append(name.replace("_", "."))
            spark.conf.set(changed[-1], value)

    yield change
    for name in changed:
        spark.conf.unset(name)


def save(frame, path, mode="errorifexists", **options):
    frame.write.format("tfrecord").options(**options).mode(mode).save(str(path))


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


# ---- saving

def test_every_save_mode(spark, tmp_path):  # noqa: F811
    path = tmp_path / "a"
    save(spark.range(3), path)
    with pytest.raises(Exception, match="already exists"):
        save(spark.range(3), path)
    save(spark.range(5), path, "ignore")
    assert ids(load(spark, path)) == [0, 1, 2]
    save(spark.range(7, 9), path, "append")
    assert ids(load(spark, path)) == [0, 1, 2, 7, 8]
    save(spark.range(2), path, "overwrite")
    assert ids(load(spark, path)) == [0, 1] and (path / "_SUCCESS").exists()


def test_partitions_are_folders_and_not_in_the_records(spark, tmp_path, settings):  # noqa: F811
    frame = spark.range(100).selectExpr("id", "cast(id % 3 AS int) AS k", "concat('p', id % 2) AS t")
    frame.write.format("tfrecords").partitionBy("k", "t").save(str(tmp_path / "a"))
    assert sorted(os.listdir(tmp_path / "a" / "k=2")) == ["t=p0", "t=p1"]
    assert features(records(tmp_path / "a" / "k=2" / "t=p1")[0]) == {"id": ("int64_list", [5])}
    back = load(spark, tmp_path / "a")
    assert back.dtypes == [("id", "bigint"), ("k", "int"), ("t", "string")]
    assert sorted(back.collect()) == sorted(frame.collect())
    assert back.where("k = 1 AND t = 'p0'").selectExpr("count(*)", "min(id)").first() == (16, 4)
    settings(spark_sql_sources_partitionOverwriteMode="dynamic")
    spark.sql("SELECT 1000L AS id, 1 AS k, 'p0' AS t").write.format("tfrecord").partitionBy("k", "t").mode("overwrite").save(str(tmp_path / "a"))
    assert ids(load(spark, tmp_path / "a").where("k = 1 AND t = 'p0'")) == [1000] and load(spark, tmp_path / "a").count() == 100 - 16 + 1


def test_files_of_at_most_so_many_records(spark, tmp_path):  # noqa: F811
    save(spark.range(0, 100, 1, 1), tmp_path / "a", maxRecordsPerFile=30)
    assert len(files(tmp_path / "a")) == 4 and ids(load(spark, tmp_path / "a")) == [*range(100)]


def test_a_frame_without_rows(spark, tmp_path):  # noqa: F811
    save(spark.range(0), tmp_path / "a")
    assert load(spark, tmp_path / "a", "id bigint").collect() == []
    with pytest.raises(Exception, match="(?i)schema"):
        load(spark, tmp_path / "a")


@pytest.mark.long
def test_rows_that_are_larger_than_a_batch(spark, tmp_path):  # noqa: F811
    save(spark.range(3).selectExpr("id", "repeat('x', 5000000 + cast(id AS int)) AS s").coalesce(1), tmp_path / "a")
    assert load(spark, tmp_path / "a").orderBy("id").selectExpr("length(s)").collect() == [(5000000,), (5000001,), (5000002,)]


def test_records_of_bytes(spark, tmp_path):  # noqa: F811
    save(spark.range(10).coalesce(1), tmp_path / "a")
    raw = load(spark, tmp_path / "a", recordType="ByteArray")
    assert raw.dtypes == [("byteArray", "binary")]
    save(raw, tmp_path / "b", recordType="ByteArray", codec="gzip")
    assert records(tmp_path / "b") == records(tmp_path / "a") and ids(load(spark, tmp_path / "b")) == [*range(10)]


def test_each_executor_to_its_own_disk(spark, tmp_path):  # noqa: F811
    frame = spark.range(0, 100, 1, 4).selectExpr("id", "id % 2 AS k")
    save(frame, tmp_path / "a", writeLocality="local")
    assert len(files(tmp_path / "a")) == 4 and ids(load(spark, tmp_path / "a")) == [*range(100)]
    frame.write.format("tfrecord").option("writeLocality", "local").partitionBy("k").save(str(tmp_path / "b"))
    assert ids(load(spark, tmp_path / "b" / "k=1")) == [*range(1, 100, 2)]
    with pytest.raises(Exception, match="no such row"):
        save(frame.selectExpr("IF(id = 99, raise_error('no such row'), id) AS id"), tmp_path / "c", writeLocality="local")
    assert not [name for name in files(tmp_path / "c") if "part-00003" in name]


# ---- files that are missing or corrupt

FLAWS = {
    "missing": (os.remove, "FileNotFoundException: File file:.*part-2 does not exist"),
    "corrupt": (lambda path: open(path, "r+b").write(b"garbage!"), "part-2: offset 0: the checksum of a record's size is wrong"),
    "cut": (lambda path: os.truncate(path, os.path.getsize(path) - 3), "part-2: offset .*: the file ends within a record"),
    "no Example": (lambda path: write_record(path, b"hello"), "part-2: offset 0: the record is no Example"),
}


def write_record(path, record):
    import tensorflow as tf

    with tf.io.TFRecordWriter(path) as writer:
        writer.write(record)


@pytest.mark.parametrize("by_setting", [False, True])
@pytest.mark.parametrize("flaw", list(FLAWS))
def test_s77_missing_files_are_passed_over_by_one_option_and_corrupt_ones_by_the_other(spark, tmp_path, settings, flaw, by_setting):  # noqa: F811
    from tensorflowonspark import tfrecord

    spoil, words = FLAWS[flaw]
    whole = [10 * i + j for i in range(4) for j in range(3)]
    left = [20, 21] if flaw == "cut" else []
    for i, (missing, corrupt) in enumerate([(False, False), (False, True), (True, False), (True, True)]):
        for j in range(4):
            write_examples(tmp_path / str(i) / f"part-{j}", [{"id": [10 * j + k]} for k in range(3)])
        options = {"ignoreMissingFiles": missing, "ignoreCorruptFiles": corrupt}
        if by_setting:
            settings(**{f"spark_sql_files_{name}": value for name, value in options.items()})
            options = {}
        frame = load(spark, tmp_path / str(i), "id bigint", **options)
        spoil(f"{tmp_path}/{i}/part-2")
        if missing if flaw == "missing" else corrupt:
            assert ids(frame) == [number for number in whole if number < 20 or number > 22 or number in left]
            told = tfrecord.passed_over(spark).get(f"file:{tmp_path}/{i}/part-2")
            assert (told is None) if flaw == "missing" else told.places == 1
        else:
            with pytest.raises(Exception, match=words):
                frame.collect()


def test_s77_in_looking_for_a_schema(spark, tmp_path):  # noqa: F811
    for flaw in ("corrupt", "no Example"):
        for j in range(4):
            write_examples(tmp_path / flaw / f"part-{j}", [{"id": [10 * j + k]} for k in range(3)])
        FLAWS[flaw][0](f"{tmp_path}/{flaw}/part-2")
        for look in ({}, {"inferAll": True}):
            assert ids(load(spark, tmp_path / flaw, ignoreCorruptFiles=True, **look)) == [0, 1, 2, 10, 11, 12, 30, 31, 32]
            with pytest.raises(Exception, match=FLAWS[flaw][1]):
                load(spark, tmp_path / flaw, ignoreMissingFiles=True, **look)


# ---- names that differ in letter case

def test_s80_letter_case_of_names_is_no_matter_unless_spark_says_so(spark, tmp_path):  # noqa: F811
    """Values, whatever the case: of a schema given, of a table, of records that differ among themselves."""
    write_examples(tmp_path / "a" / "part-0", [{"Label": [1], "Größe": [5], "s.Inner": [9]}, {"LABEL": [2], "GRÖßE": [6], "S.inner": [8]}])
    frame = load(spark, tmp_path / "a", "label int, `gRÖßE` bigint, s struct<inner: int>")
    assert sorted(frame.selectExpr("label", "`gRÖßE`", "s.inner").collect()) == [(1, 5, 9), (2, 6, 8)]
    assert frame.where("LABEL = 2").selectExpr("s.INNER").collect() == [(8,)]
    spark.sql(f"CREATE TABLE cased (lABEL bigint) USING tfrecord LOCATION '{tmp_path}/a'")
    try:
        assert spark.sql("SELECT sum(label) FROM cased").first() == (3,)
    finally:
        spark.sql("DROP TABLE cased")


def test_s80_two_names_that_differ_in_letter_case(spark, tmp_path, settings):  # noqa: F811
    write_examples(tmp_path / "a" / "part-0", [{"x": [1], "X": [2]}, {"X": [3]}])
    write_examples(tmp_path / "b" / "part-0", [{"y": [1]}, {"Y": [3]}])
    with pytest.raises(Exception, match="the features [xX] and [xX] differ in letter case only: set spark.sql.caseSensitive=true"):
        load(spark, tmp_path / "a")
    with pytest.raises(Exception, match="offset 0: column X: the record has the features .* differ in letter case only: set spark.sql.caseSensitive=true"):
        load(spark, tmp_path / "a", "X bigint").collect()
    assert sorted(load(spark, tmp_path / "b", "Y bigint").collect()) == [(1,), (3,)]
    settings(spark_sql_caseSensitive=True)
    frame = load(spark, tmp_path / "a")
    assert frame.select("x", "X").collect() == [(1, 2), (None, 3)]
    assert frame.select("x").collect() == [(1,), (None,)]  # X is a column too, and not x misspelt
    for name, schema in (("a", "x bigint"), ("b", "Y bigint")):
        with pytest.raises(Exception, match="column [xY]: the record has no such feature, but [Xy], .*or set spark.sql.caseSensitive=false"):
            load(spark, tmp_path / name, schema).collect()


# ---- failures

def test_a_failed_job_leaves_no_file(spark, tmp_path):  # noqa: F811
    with pytest.raises(Exception, match="no such row"):
        save(spark.range(100000).coalesce(1).selectExpr("IF(id = 99999, raise_error('no such row'), id) AS id"), tmp_path / "a")
    assert not files(tmp_path) and not (tmp_path / "a" / "_SUCCESS").exists()


def test_a_cancelled_job_leaves_no_file(spark, tmp_path):  # noqa: F811
    import threading

    frame = spark.range(0, 10**12, 1, 1).selectExpr("id", "repeat('x', 100) AS s")
    context, failures = spark.sparkContext, []

    def write():
        context.setJobGroup("write", "to be cancelled")
        try:
            save(frame, tmp_path / "a")
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        wait_until(lambda: any(os.path.getsize(name) > 0 for name in files(tmp_path)), 60, "the first bytes")
    finally:
        context._jsc.sc().cancelAllJobs()
        thread.join(60)
    assert failures and not thread.is_alive()
    wait_until(lambda: not files(tmp_path), 30, "the end of the file")
    wait_until(lambda: not held_below(tmp_path), 30, "the end of the task")


def held_below(folder):
    """Files in the folder, removed or not, that a process of Spark still has open."""
    held = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for name in os.listdir(f"/proc/{process.pid}/fd"):
                with contextlib.suppress(OSError):  # it was closed meanwhile
                    held.append(os.readlink(f"/proc/{process.pid}/fd/{name}"))
    return [name for name in held if name.startswith(str(folder))]


# ---- reading

def test_a_large_file_is_read_in_parts(spark, tmp_path, settings):  # noqa: F811
    save(spark.range(50000).selectExpr("id", "repeat('x', cast(id % 50 AS int)) AS s").coalesce(1), tmp_path / "a")
    settings(spark_sql_files_maxPartitionBytes=os.path.getsize(files(tmp_path / "a")[0]) // 7)
    frame = load(spark, tmp_path / "a")
    assert frame.rdd.getNumPartitions() >= 7
    assert frame.selectExpr("count(*)", "sum(id)", "count(DISTINCT id)", "sum(length(s))").first() == (50000, 1249975000, 50000, 1225000)
    assert load(spark, tmp_path / "a", splitFiles=False).rdd.getNumPartitions() == 1


def test_a_file_of_records_that_hold_records_is_read_whole_when_asked(spark, tmp_path, settings):  # noqa: F811
    save(spark.range(1000).coalesce(1), tmp_path / "inner")
    with open(files(tmp_path / "inner")[0], "rb") as file:
        inner = file.read()
    write_examples(tmp_path / "a" / "part-0", [{"x": [inner]}] * 20)
    settings(spark_sql_files_maxPartitionBytes=len(inner) * 3 // 2)
    rows = load(spark, tmp_path / "a", "x binary").selectExpr("length(x)").rdd
    for part in range(2):  # the one that ends within such a record, the one that begins there
        with pytest.raises(Exception, match="read it whole, with the option splitFiles=false"):
            spark.sparkContext.runJob(rows, list, [part])
    assert load(spark, tmp_path / "a", "x binary", splitFiles=False).selectExpr("count(*)", "min(length(x))").first() == (20, len(inner))


def test_many_small_files_are_a_few_tasks(spark, tmp_path):  # noqa: F811
    save(spark.range(0, 60, 1, 60), tmp_path / "a")
    frame = load(spark, tmp_path / "a")
    assert len(files(tmp_path / "a")) == 60 and frame.rdd.getNumPartitions() <= 60 and ids(frame) == [*range(60)]
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    try:
        assert load(spark, tmp_path / "a").rdd.getNumPartitions() <= 4
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_only_the_columns_asked_for_are_looked_at(spark, tmp_path):  # noqa: F811
    write_examples(tmp_path / "a" / "part-0", [{"x": [1], "bad": [300]}, {"x": [2], "bad": [1]}])
    frame = load(spark, tmp_path / "a", "bad tinyint, x bigint")
    assert frame.selectExpr("sum(x)").first() == (3,) and frame.count() == 2
    plan = frame.select("x")._jdf.queryExecution().executedPlan().toString()
    assert "Batched: true" in plan and "ReadSchema: struct<x:bigint>" in plan
    with pytest.raises(Exception, match="column bad"):
        frame.collect()


@pytest.mark.parametrize("codegen", ["true", "false"])
def test_metadata_and_folders_below(spark, tmp_path, settings, codegen):  # noqa: F811
    settings(spark_sql_codegen_wholeStage=codegen)
    save(spark.range(3).coalesce(1), tmp_path / "a" / "b" / "c")
    save(spark.range(3, 5).coalesce(1), tmp_path / "a" / "d")
    frame = load(spark, tmp_path / "a", recursiveFileLookup=True)
    assert ids(frame) == [0, 1, 2, 3, 4]
    rows = frame.selectExpr("id", "_metadata.file_path AS path", "_metadata.file_size AS size").orderBy("id").collect()
    assert [os.path.basename(os.path.dirname(row.path)) for row in rows] == ["c", "c", "c", "d", "d"]
    assert {row.size for row in rows} == {os.path.getsize(name) for name in files(tmp_path)}


def test_rows_where_spark_takes_no_batches(spark, tmp_path, settings):  # noqa: F811
    columns = ", ".join(f"id + {i} AS c{i}" for i in range(120))  # more than whole-stage code is made for
    spark.range(10).selectExpr("id", *columns.split(", ")).write.format("tfrecord").partitionBy("id").save(str(tmp_path / "a"))
    frame = load(spark, tmp_path / "a")
    assert frame.selectExpr("sum(c0)", "sum(c119)", "sum(id)").first() == (45, 45 + 1190, 45)
    assert sorted(row.c5 - row.id for row in frame.collect()) == [5] * 10


@pytest.mark.long
def test_what_is_kept_of_a_batch_outlives_it(spark, tmp_path):  # noqa: F811
    save(spark.range(20000).selectExpr("id", "concat('text ', id) AS s", "array(id, id + 1) AS l").coalesce(1), tmp_path / "a")
    frame = load(spark, tmp_path / "a")
    first, last, most, lists = frame.selectExpr("first(s)", "last(s)", "max(s)", "max(l)").first()
    assert (first, last, most, lists) == ("text 0", "text 19999", "text 9999", [19999, 20000])
    assert frame.groupBy("s").count().count() == 20000
    assert frame.join(frame.select("s", "l").withColumnRenamed("l", "m"), "s").where("l != m").count() == 0
    assert frame.orderBy(frame.s.desc()).first().s == "text 9999"
    cached = frame.cache()
    try:
        assert cached.selectExpr("sum(l[1])", "count(DISTINCT s)").first() == (200010000, 20000)
    finally:
        cached.unpersist()


@pytest.mark.long
def test_a_task_that_ends_while_python_is_fed(spark, tmp_path):  # noqa: F811
    def first(batches):
        yield next(iter(batches))

    save(spark.range(0, 200000, 1, 4).selectExpr("id", "repeat('x', 200) AS s"), tmp_path / "a")
    frame = load(spark, tmp_path / "a").coalesce(1)  # several files a task
    for _ in range(3):
        assert 0 < frame.mapInArrow(first, "id bigint, s string").count() < 200000
        assert len(frame.mapInArrow(lambda batches: batches, "id bigint, s string").limit(1).collect()) == 1
    assert frame.count() == 200000


# ---- tables and streams

def test_tables(spark, tmp_path):  # noqa: F811
    spark.sql(f"CREATE TABLE outside (id BIGINT, s STRING) USING tfrecord OPTIONS (codec 'gzip') LOCATION '{tmp_path}/t'")
    spark.sql("INSERT INTO outside VALUES (1, 'a'), (2, NULL)")
    assert sorted(spark.sql("SELECT * FROM outside").collect()) == [(1, "a"), (2, None)]
    assert all(name.endswith(".tfrecord.gz") for name in files(tmp_path / "t"))
    assert spark.sql(f"SELECT sum(id) FROM tfrecord.`{tmp_path}/t`").first() == (3,)
    spark.range(10).selectExpr("cast(id AS int) AS id", "id % 2 AS k").write.format("tfrecord").partitionBy("k").saveAsTable("inside")
    assert spark.table("inside").dtypes == [("id", "int"), ("k", "bigint")]
    spark.sql("INSERT OVERWRITE inside PARTITION (k = 1) SELECT 77")
    assert sorted(row.id for row in spark.table("inside").collect()) == [0, 2, 4, 6, 8, 77]
    with pytest.raises(Exception, match="`m`"):
        spark.sql("CREATE TABLE refused (m MAP<INT, INT>) USING tfrecord")
    for table in ("outside", "inside"):
        spark.sql(f"DROP TABLE {table}")


@pytest.mark.long
def test_a_stream_from_files_to_files(spark, tmp_path):  # noqa: F811
    save(spark.range(10).coalesce(1), tmp_path / "in")

    def start():
        stream = spark.readStream.format("tfrecord").schema("id bigint").load(str(tmp_path / "in"))
        return stream.selectExpr("id", "id * 2 AS twice").writeStream.format("tfrecord").option("checkpointLocation", str(tmp_path / "state")).trigger(
            availableNow=True).start(str(tmp_path / "out"))

    assert start().awaitTermination(120)
    save(spark.range(10, 15).coalesce(1), tmp_path / "in", "append")
    assert start().awaitTermination(120)
    assert sorted(load(spark, tmp_path / "out").select("id", "twice").collect()) == [(i, 2 * i) for i in range(15)]


@pytest.mark.parametrize("name", [
    "org.tensorflow.spark.datasources.tfrecords", "com.linkedin.spark.datasources.tfrecord", "org.tensorflow.spark.datasources.tfrecords.DefaultSource",
])
def test_names_that_the_connectors_have(spark, tmp_path, name):  # noqa: F811
    spark.range(3).write.format(name).option("recordType", "Example").save(str(tmp_path / "a"))
    assert ids(spark.read.format(name).load(str(tmp_path / "a"))) == [0, 1, 2]


def test_speed_of_a_sample_of_many_files(spark, tmp_path):  # noqa: F811
    """S66: with a sample it takes what listing takes, however many files there are."""
    write_examples(tmp_path / "a" / "part-0", [{"x": [i] * 100} for i in range(2000)])
    for i in range(1, 1000):
        os.link(tmp_path / "a" / "part-0", tmp_path / "a" / f"part-{i}")
    load(spark, tmp_path / "a")  # classes
    begin = time.monotonic()
    assert load(spark, tmp_path / "a").dtypes == [("x", "array<bigint>")]
    assert time.monotonic() - begin < 10

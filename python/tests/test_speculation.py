# SPDX-License-Identifier: Apache-2.0
"""Tasks that Spark runs twice at the same time: whichever ends first, each row is in the files once, and of the other nothing is left.

Spark starts the second where the first is not, so that this needs two hosts: two addresses of loopback.
"""

import os
import time

import pytest

import test_hadoop_formats as formats
from conftest import make_context, wait_until
from tensorflowonspark import tfrecord
from test_spark_tables import held_below
from test_standalone import standalone

pytestmark = pytest.mark.long
pytest.importorskip("tensorflow")
pytest.importorskip("pyarrow")

ROWS = 40000
TEXT = "x" * 100


@pytest.fixture(scope="module")
def speculating(tmp_path_factory):
    """A session that runs a task again when another took half the time."""
    from pyspark.sql import SparkSession

    with standalone(tmp_path_factory.mktemp("standalone"), ("127.0.0.1", "127.0.0.2")) as master:
        context = make_context(master, spark_executor_memory="512m", spark_speculation="true", spark_speculation_interval="100ms",
                               spark_speculation_quantile="0.5", spark_speculation_multiplier="1.1", spark_speculation_minTaskRuntime="100ms")
        try:
            session = SparkSession(context)
            tfrecord.add_to(session)
            yield session
        finally:
            context.stop()


def slow_at_first(folder):
    """A function of a partition's items, that gives all, but in the middle of the first attempt at the first partition waits until all has been written."""
    def pass_on(items):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.partitionId() != 0:
            yield from items
            return
        with open(f"{folder}/attempt-{context.attemptNumber()}", "w") as file:
            file.write(str(os.getpid()))
        items = list(items)
        yield from items[: len(items) // 2]
        while context.attemptNumber() == 0 and not os.path.exists(f"{folder}/written"):
            time.sleep(0.1)
        yield from items[len(items) // 2:]

    return pass_on


def write_frame(spark, marks, out):
    frame = spark.range(0, ROWS, 1, 2).mapInArrow(slow_at_first(marks), "id bigint")
    frame.selectExpr("id", f"'{TEXT}' AS s").write.format("tfrecord").save(str(out))


def write_pairs(api):
    def write(spark, marks, out):
        records = spark.sparkContext.parallelize(range(ROWS), 2).mapPartitions(slow_at_first(marks))
        formats.write(records.map(lambda number: number.to_bytes(4, "big") + TEXT.encode()), out, api)

    return write


@pytest.mark.parametrize("write", [write_frame, write_pairs("new"), write_pairs("V1")], ids=["source", "format", "format-V1"])
def test_each_row_once_and_nothing_of_the_loser(speculating, tmp_path, write):
    out = tmp_path / "out"
    write(speculating, tmp_path, out)
    (tmp_path / "written").touch()  # the task has been killed by now; Spark 3.5 leaves its Python worker alone until that writes
    assert sorted(path.name for path in tmp_path.glob("attempt-*")) == ["attempt-0", "attempt-1"]
    loser = int((tmp_path / "attempt-0").read_text())
    wait_until(lambda: not os.path.exists(f"/proc/{loser}") and not held_below(out), 60, "the end of the loser")
    parts = formats.parts_of(out)
    names = {path.name for path in out.iterdir()}
    sums = set() if write is write_frame else {f".{path.name}.crc" for path in parts}  # which the source does not write
    assert len(parts) == 2 and names == {"_SUCCESS", "._SUCCESS.crc"} | {path.name for path in parts} | sums
    if write is write_frame:
        back = speculating.read.format("tfrecord").load(str(out))
        assert back.selectExpr("count(*)", "count(DISTINCT id)", "min(id)", "max(id)").first() == (ROWS, ROWS, 0, ROWS - 1)
    else:
        found = [int.from_bytes(record[:4], "big") for record in formats.read_by_tensorflow(parts)]
        assert found == list(range(ROWS))

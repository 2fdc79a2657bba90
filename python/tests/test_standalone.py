# SPDX-License-Identifier: Apache-2.0
"""A real Standalone cluster, started and stopped by the tests: a master and two workers, which are two hosts: two addresses of loopback.

It runs training and inference, and tasks that Spark runs twice at the same time, the second where the first is not: whichever ends first, each row
is in the files once, and of the other nothing is left.
"""

import contextlib
import functools
import os
import re
import subprocess
import time

import pyspark
import pytest

import test_hadoop_formats as formats
from conftest import make_context, wait_until
from tensorflowonspark import TFCluster, tfrecord
from tensorflowonspark.TFCluster import InputMode
from test_spark_tables import held_below

pytestmark = pytest.mark.long
pytest.importorskip("tensorflow")
pytest.importorskip("pyarrow")

ROWS = 40000
TEXT = "x" * 100


@contextlib.contextmanager
def standalone(folder, hosts):
    """The address of a master with a worker of one core on each of the hosts; logs and work are in ``folder``."""
    spark_home = os.path.dirname(pyspark.__file__)
    environment = dict(os.environ, SPARK_HOME=spark_home, SPARK_DAEMON_MEMORY="256m")
    started = []

    def start(name, *arguments):
        with open(folder / f"{name}.log", "w") as log:
            started.append(subprocess.Popen([f"{spark_home}/bin/spark-class", *arguments], env=environment, stdout=log, stderr=log,
                                            start_new_session=True))

    def find(name, pattern):
        match = re.search(pattern, (folder / f"{name}.log").read_text())
        return match and match.group(0)

    try:
        start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        address = wait_until(lambda: find("master", r"spark://127\.0\.0\.1:\d+"), 60, "the master")
        for number, host in enumerate(hosts):
            start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1", "--memory", "1g",
                  "--webui-port", "0", "--work-dir", str(folder / f"work{number}"), address)
        for number in range(len(hosts)):
            wait_until(functools.partial(find, f"worker{number}", "Successfully registered"), 60, f"worker {number}")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("standalone"), ("127.0.0.1", "127.0.0.2")) as address:
        yield address


def test_train_and_infer_on_standalone(master):
    def work(args, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            rows = feed.next_batch(16)
            if rows:
                feed.batch_results([row + 1 for row in rows])

    context = make_context(master, spark_executor_memory="512m")
    try:
        with TFCluster.run(context, work, None, input_mode=InputMode.SPARK) as cluster:  # as many nodes as executors have come
            assert [node["job_name"] for node in cluster.cluster_info] == ["worker", "worker"]
            assert cluster.inference(context.parallelize(range(1000), 4)).collect() == list(range(1, 1001))
    finally:
        context.stop()


def test_keras_in_step(master, tmp_path):
    """The README's nine lines, on two hosts."""
    pytest.importorskip("keras", "3.0")
    from pyspark.sql import SparkSession

    import test_keras_spark as keras_spark

    context = make_context(master, spark_executor_memory="512m")
    try:
        keras_spark.check(*keras_spark.nine_lines(SparkSession(context), tmp_path, "pad"), tmp_path)
    finally:
        context.stop()


@pytest.fixture(scope="module")
def speculating(master):
    """A session that runs a task again when another took half the time."""
    from pyspark.sql import SparkSession

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

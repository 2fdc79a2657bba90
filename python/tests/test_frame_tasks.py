# SPDX-License-Identifier: Apache-2.0
"""What becomes of tasks that feed a DataFrame: tried again, cancelled, wanted no more, out of a jar that is not there."""

import logging
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from conftest import executors, interrupt_when, wait_until
from tensorflowonspark import TFCluster, _tfos, jar
from test_cluster import local, read_all

pytest.importorskip("pyarrow")
FEED = TFCluster.InputMode.SPARK


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


@pytest.fixture(params=["jvm", pytest.param("arrow", marks=pytest.mark.long)])
def via(request):
    return request.param


def save_ids(args, ctx):
    """Writes the ids of all rows, in the order in which they came."""
    import json

    feed = ctx.get_data_feed()
    ids = []
    while not feed.should_stop():
        ids += [row.id for row in feed.next_batch(100)]
    with open(f"{args}/{ctx.executor_id}", "w") as file:
        json.dump(ids, file)


def ids_of(folder):
    return sum(read_all(folder).values(), [])


def test_epochs_repeat_the_plan(spark, tmp_path, via):
    """Each epoch is a job of its own over the same plan."""
    with TFCluster.run(spark.sparkContext, local(save_ids), str(tmp_path), 2, 0, input_mode=FEED) as cluster:
        cluster.train(spark.range(0, 500, 1, 4).repartition(3), 5, via=via)
    assert sorted(ids_of(tmp_path)) == sorted(list(range(500)) * 5)
    assert all(read_all(tmp_path).values()), "both nodes are fed"


def held_by(process):
    """(descriptors, threads, MB) of a process."""
    return process.num_fds(), process.num_threads(), process.memory_info().rss // 2**20


@pytest.mark.long
def test_hundreds_of_epochs_of_a_tiny_set(spark, tmp_path):
    """Neither node, trainer, driver nor executors hold more after 300 epochs than after 100."""
    frame = spark.range(0, 5, 1, 1)
    with TFCluster.run(spark.sparkContext, local(save_ids), str(tmp_path), 1, 0, input_mode=FEED) as cluster:
        node = psutil.Process(cluster.cluster_info[0]["pid"])
        cluster.train(frame, 100, via="jvm")
        watched = {"node": node, "trainer": node.children()[0], "driver": psutil.Process()}
        before = {name: held_by(process) for name, process in watched.items()}
        fds = [process.num_fds() for process in executors()]
        cluster.train(frame, 200, via="jvm")
        after = {name: held_by(process) for name, process in watched.items()}
        for name in watched:
            assert all(now <= then + slack for now, then, slack in zip(after[name], before[name], (3, 2, 8))), (before, after)
        assert all(now.num_fds() <= then + 20 for now, then in zip(executors(), fds))
    assert sorted(ids_of(tmp_path)) == sorted(list(range(5)) * 300)


def test_shuffle_makes_another_order_each_epoch(spark, tmp_path, via):
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    try:
        with TFCluster.run(spark.sparkContext, local(save_ids), str(tmp_path), 1, 0, input_mode=FEED) as cluster:
            cluster.train(spark.range(0, 300, 1, 4), 3, via=via, shuffle=True)
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
    ids = ids_of(tmp_path)
    orders = [ids[start:start + 300] for start in (0, 300, 600)]
    assert all(sorted(order) == list(range(300)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("via", ["jvm", "arrow", "rdd"])
def test_s21_task_retried_after_half_its_partition(spark, tmp_path, via):
    """Spark runs the feeding task again: no row twice, none lost. A Python worker whose input breaks in the JVM sees it end."""
    flag = str(tmp_path / "failed-once")
    out = tmp_path / "out"
    out.mkdir()

    def rows(index, _):
        import os

        for i in range(2000):
            if index == 1 and i == 1500 and not os.path.exists(flag):
                open(flag, "w").close()
                raise OSError("the disk hiccups")
            yield index * 2000 + i, "x" * 3000

    # Batches of 100 rows, so that some have been fed when the task fails.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
    rdd = spark.sparkContext.parallelize(range(4), 4).mapPartitionsWithIndex(rows)
    try:
        with TFCluster.run(spark.sparkContext, local(save_ids), str(out), 2, 0, input_mode=FEED) as cluster:
            frame = spark.createDataFrame(rdd, "id long, text string")
            if via == "rdd":
                cluster.train(frame.rdd, 1)
            else:
                cluster.train(frame, 1, via=via)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert os.path.exists(flag)
    assert sorted(ids_of(out)) == list(range(8000))


def test_a_trainer_that_has_enough(spark, tmp_path, via):
    """Partitions that nobody wants are skipped, and not computed."""
    def take_some(args, ctx):
        feed = ctx.get_data_feed()
        assert len(feed.next_batch(10)) == 10
        feed.terminate()

    def rows(numbers):
        import tempfile

        tempfile.mkstemp(dir=tmp_path)  # an accumulator loses what a task adds that is ended early
        for number in numbers:
            yield number, "x" * 1000

    rdd = spark.sparkContext.parallelize(range(80_000), 8).mapPartitions(rows)
    with TFCluster.run(spark.sparkContext, take_some, None, 1, 0, input_mode=FEED) as cluster:
        cluster.train(spark.createDataFrame(rdd, "id long, text string"), 5, via=via)
    assert 1 <= len(list(tmp_path.iterdir())) <= 8  # of 40


def test_a_cancelled_job_ends_at_once(spark, via):
    """The trainer takes nothing, so the tasks wait for space; cancelling ends their wait."""
    def take_nothing(args, ctx):
        import time

        feed = ctx.get_data_feed()
        feed.next_batch(1)
        while not os.path.exists(args):
            time.sleep(0.05)
        feed.terminate()

    import tempfile

    sc = spark.sparkContext
    with tempfile.TemporaryDirectory() as folder, \
            TFCluster.run(sc, take_nothing, f"{folder}/go", 1, 0, input_mode=FEED) as cluster:
        errors = []

        def train():
            try:
                cluster.train(spark.range(0, 1_000_000, 1, 2).selectExpr("id", "repeat('x', 1000)"), 1, via=via)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=train)
        thread.start()
        wait_until(lambda: cluster._status()["nodes"][0].get("rows_read"), 60, "the first row")
        time.sleep(1)  # the ring fills
        sc.cancelAllJobs()
        thread.join(30)  # without the end, feed_timeout's 600
        assert not thread.is_alive()
        wait_until(lambda: not sc.statusTracker().getActiveStageIds(), 60, "the end of the tasks")
        assert "cancelled" in str(errors[0])
        open(f"{folder}/go", "w").close()


def test_an_interrupted_training_frees_its_slots(spark, tmp_path):
    """The trainers take nothing more: only Ctrl-C ends the feed, and the cluster runs on."""
    def take_one(args, ctx):
        import os
        import time

        feed = ctx.get_data_feed()
        feed.next_batch(1)
        open(f"{args}/{ctx.executor_id}", "w").close()
        while not os.path.exists(f"{args}/go"):
            time.sleep(0.05)
        feed.terminate()

    with TFCluster.run(spark, local(take_one), str(tmp_path), 2, 0, input_mode=FEED) as cluster:
        interrupt_when(lambda: len(os.listdir(tmp_path)) == 2)
        with pytest.raises(KeyboardInterrupt):
            cluster.train(spark.range(0, 4000, 1, 4).selectExpr("id", "repeat('x', 100000) as text"), 5)
        assert spark.range(0, 10, 1, 2).count() == 10
        (tmp_path / "go").touch()


def test_a_failed_trainer_is_named(spark, via):
    def fail(args, ctx):
        ctx.get_data_feed().next_batch(10)
        raise RuntimeError("no more of this")

    cluster = TFCluster.run(spark.sparkContext, fail, None, 1, 0, input_mode=FEED)
    with pytest.raises(_tfos.Error, match="no more of this") as caught:
        cluster.train(spark.range(0, 3_000_000, 1, 4).selectExpr("id", "repeat('x', 100)"), via=via)
    assert "Spark" not in type(caught.value).__name__
    cluster.shutdown()


@pytest.mark.long
def test_a_reader_that_takes_nothing(spark, via):
    """feed_timeout ends the wait; the error says what to do, and that of the JVM is this package's own."""
    def wait(args, ctx):
        import time

        feed = ctx.get_data_feed()
        feed.next_batch(1)
        time.sleep(60)

    cluster = TFCluster.run(spark.sparkContext, wait, None, 1, 0, input_mode=FEED)
    with pytest.raises(_tfos.Error, match="feed_timeout"):
        cluster.train(spark.range(0, 200_000, 1, 1).selectExpr("repeat('x', 1000)"), feed_timeout=2, via=via)
    cluster.shutdown()


def test_without_the_jar(spark, tmp_path, monkeypatch, caplog):
    """One warning says what is missing, and rows go through Python; a user who asks for the JVM gets an error."""
    monkeypatch.setattr(jar, "_reasons", {})
    monkeypatch.setattr(jar, "__file__", str(tmp_path / "jar.py"))
    with pytest.raises(_tfos.UnsupportedError, match="there is no .*tfos.jar"):
        jar.add_to(spark)
    out = tmp_path / "out"
    out.mkdir()
    with caplog.at_level(logging.WARNING), \
            TFCluster.run(spark.sparkContext, local(save_ids), str(out), 1, 0, input_mode=FEED) as cluster:
        cluster.train(spark.range(10), 1)
        cluster.train(spark.range(10), 1)
        with pytest.raises(_tfos.UnsupportedError, match="via='jvm' is not possible: there is no .*tfos.jar"):
            cluster.train(spark.range(10), 1, via="jvm")
    assert sorted(ids_of(out)) == sorted(list(range(10)) * 2)
    assert len([record for record in caplog.records if "tfos.jar" in record.getMessage()]) == 1


def test_the_jar_serves_a_session_of_add_jar(spark, tmp_path):
    """A session whose JVM thread has a class loader of its own, since it ran ADD JAR."""
    session = spark.newSession()
    copy = tmp_path / "other.jar"
    copy.write_bytes(Path(jar.path()).read_bytes())
    (tmp_path / "out").mkdir()
    session.sql(f"ADD JAR '{copy}'")
    with TFCluster.run(spark.sparkContext, local(save_ids), str(tmp_path / "out"), 1, 0, input_mode=FEED) as cluster:
        cluster.train(session.range(10), 1, via="jvm")
    assert sorted(ids_of(tmp_path / "out")) == list(range(10))

# SPDX-License-Identifier: Apache-2.0
"""A DataFrame's feed when a process is killed in the middle: no row is lost, doubled, or seen in part; or the error says who it was."""

import contextlib
import os
import signal
import threading
import time

import psutil
import pytest

from conftest import executors, make_context, wait_until
from tensorflowonspark import TFCluster, _tfos
from test_cluster import local, read_all
from test_frame_tasks import spark  # noqa: F401

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.long
FEED = TFCluster.InputMode.SPARK
PARTITIONS, ROWS, REPEATS = 8, 250, 50_000  # a partition is 36 MB or more: it does not fit into a channel of 16 MiB


@pytest.fixture(scope="module")
def sc():
    """Executors that may die."""
    context = make_context("local-cluster[2,1,1024]")
    yield context
    context.stop()


def save_seen(args, ctx):
    """Writes the ids of all rows, and how many rows did not have what belongs to their id; after some, waits for the kill."""
    import json
    import os
    import time

    feed = ctx.get_data_feed()
    ids, wrong = [], 0
    while not feed.should_stop():
        rows = feed.next_batch(20)
        ids += [row.id for row in rows]
        wrong += sum(row.text != str(row.id) * args["repeats"] for row in rows)
        if len(ids) > 40:
            open(args["folder"] + ".read", "w").close()
            deadline = time.monotonic() + 100
            while not os.path.exists(args["folder"] + ".killed") and time.monotonic() < deadline:
                time.sleep(0.05)
    with open(f"{args['folder']}/{ctx.executor_id}", "w") as file:
        json.dump({"ids": ids, "wrong": wrong}, file)


@contextlib.contextmanager
def killing(condition, find, mark=None):
    """Kills the process that ``find`` gives as soon as ``condition`` holds while the block runs, and leaves ``mark``; gives a list of the moment when."""
    moments = []

    def kill():
        wait_until(condition, 90, "the moment to kill")
        os.kill(wait_until(find, 60, "somebody to kill").pid, signal.SIGKILL)
        moments.append(time.monotonic())
        if mark:
            mark.touch()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield moments
    finally:
        thread.join()


def feed_all(spark, folder, via, find):  # noqa: F811
    """Feeds all rows while what ``find`` gives for the cluster is killed: some rows have been read, and both executors wait for space."""
    tracker = spark.sparkContext.statusTracker()
    seen_folder = folder / "seen"
    seen_folder.mkdir()
    frame = spark.range(0, PARTITIONS * ROWS, 1, PARTITIONS).selectExpr("id", f"repeat(cast(id as string), {REPEATS}) as text")
    # Both executors, also where a test before has killed one.
    wait_until(lambda: spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 3, 60, "the second executor")

    def is_time():
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(info.numActiveTasks for info in infos if info) == 2 and os.path.exists(f"{seen_folder}.read")

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 20)
    try:
        with TFCluster.run(spark.sparkContext, local(save_seen), {"folder": str(seen_folder), "repeats": REPEATS}, 1, 0, input_mode=FEED) as cluster, \
                killing(is_time, lambda: find(cluster), folder / "seen.killed") as moments:
            cluster.train(frame, 1, via=via)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert moments
    seen, = read_all(seen_folder).values()
    assert seen["wrong"] == 0
    assert sorted(seen["ids"]) == list(range(PARTITIONS * ROWS))


def other_executor(cluster):
    """The executor without the trainer."""
    node = cluster.cluster_info[0]["pid"]
    with_trainer = {parent.pid for parent in psutil.Process(node).parents()}
    return next((process for process in executors() if process.pid not in with_trainer), None)


@pytest.mark.parametrize("via", ["jvm", "arrow"])
def test_an_executor_killed_while_it_feeds(spark, tmp_path, via):  # noqa: F811
    """Spark computes its partitions elsewhere; the batch that it was writing does not exist."""
    feed_all(spark, tmp_path, via, other_executor)


def feeding_worker(cluster):
    """A Python worker that waits for rows of the JVM: the daemon's child."""
    for executor in executors():
        for child in executor.children(recursive=True):
            if "pyspark.daemon" in child.cmdline() and "pyspark.daemon" in child.parent().cmdline():
                return child
    return None


def test_a_python_worker_killed_while_it_feeds(spark, tmp_path):  # noqa: F811
    feed_all(spark, tmp_path, "arrow", feeding_worker)


@pytest.mark.parametrize("victim, words", [("trainer", "signal 9"), ("executor", "executor")])
def test_the_reader_dies_with_the_ring_full(spark, victim, words):  # noqa: F811
    """The JVMs that wait for space end at once, and so does train(), with the node's name."""

    def take_one(args, ctx):
        import time

        ctx.get_data_feed().next_batch(1)
        time.sleep(600)

    cluster = TFCluster.run(spark.sparkContext, take_one, None, 1, 0, input_mode=FEED)
    node = psutil.Process(cluster.cluster_info[0]["pid"])
    trainer, = wait_until(node.children, 60, "the trainer")
    process = trainer if victim == "trainer" else next(one for one in executors() if one in node.parents())
    frame = spark.range(0, 4_000_000, 1, 4).selectExpr("id", "repeat('x', 1000) as text")

    def is_full():
        state = cluster._status()["nodes"][0]
        return state["ring_size"] > 0 and state["ring_used"] > state["ring_size"] / 2

    with pytest.raises(_tfos.Error, match="worker:0") as caught, killing(is_full, lambda: process) as moments:
        cluster.train(frame, via="jvm")
    assert time.monotonic() - moments[0] < 15
    assert words in str(caught.value)
    cluster._abort()

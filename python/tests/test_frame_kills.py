# SPDX-License-Identifier: Apache-2.0
"""A DataFrame's feed when its reader is killed with the ring full: the error says who it was."""

import contextlib
import os
import signal
import threading
import time

import psutil
import pytest

from conftest import executors, wait_until
from tensorflowonspark import TFCluster, _tfos
from test_frame_tasks import spark  # noqa: F401

pytest.importorskip("pyarrow")
FEED = TFCluster.InputMode.SPARK


@contextlib.contextmanager
def killing(condition, find):
    """Kills the process that ``find`` gives as soon as ``condition`` holds while the block runs; gives a list of the moment when."""
    moments = []

    def kill():
        wait_until(condition, 90, "the moment to kill")
        os.kill(wait_until(find, 20, "somebody to kill").pid, signal.SIGKILL)
        moments.append(time.monotonic())

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield moments
    finally:
        thread.join()


@pytest.mark.parametrize("victim, words", [("trainer", "signal 9"), ("executor", "executor")])
def test_the_reader_dies_with_the_ring_full(spark, victim, words):  # noqa: F811
    """The JVMs that wait for space end at once, and so does train(), with the node's name."""

    def take_one(args, ctx):
        import time

        ctx.get_data_feed().next_batch(1)
        time.sleep(600)

    cluster = TFCluster.run(spark.sparkContext, take_one, None, 1, 0, input_mode=FEED)
    node = psutil.Process(cluster.cluster_info[0]["pid"])
    process = node.children()[0] if victim == "trainer" else next(one for one in executors() if one in node.parents())
    frame = spark.range(0, 4_000_000, 1, 4).selectExpr("id", "repeat('x', 1000) as text")

    def is_full():
        state = cluster._status()["nodes"][0]
        return state["ring_size"] > 0 and state["ring_used"] > state["ring_size"] / 2

    with pytest.raises(_tfos.Error, match="worker:0") as caught, killing(is_full, lambda: process) as moments:
        cluster.train(frame, via="jvm")
    assert time.monotonic() - moments[0] < 15
    assert words in str(caught.value)
    cluster._abort()

# SPDX-License-Identifier: Apache-2.0
"""Where Spark puts the nodes, what shares the application with them, and executors that die: with contexts of their own."""

import os
import re
import signal
import subprocess
import sys
import zipfile

import psutil
import pytest
from pyspark.sql import SparkSession

from conftest import executors, make_context, wait_until
from tensorflowonspark import TFCluster, _tfos
from tensorflowonspark.jobs import SparkJob
from tensorflowonspark.pipeline import TFModel
from tensorflowonspark.sessions import spark_of
from tensorflowonspark.TFCluster import InputMode
from test_cluster import local

pytestmark = pytest.mark.long
FEED = InputMode.SPARK


def take_all(args, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(10)


def count(args, ctx):
    feed = ctx.get_data_feed()
    rows = 0
    while not feed.should_stop():
        rows += len(feed.next_batch(10))
    with open(f"{args}/{ctx.executor_id}", "w") as file:
        file.write(str(rows))


def check_placement(context, nodes, folder):
    with TFCluster.run(context, local(count), str(folder), nodes, 0, input_mode=FEED) as cluster:
        cluster.train(context.parallelize(range(1000), 7), num_epochs=2)
    assert sum(int((folder / str(i)).read_text()) for i in range(nodes)) == 2000


def test_s05_two_nodes_on_one_executor(tmp_path):
    context = make_context("local-cluster[1,2,1024]")
    try:
        check_placement(context, 2, tmp_path)
    finally:
        context.stop()


def test_executors_whose_python_lacks_the_package(tmp_path, monkeypatch):
    """The error says which Python is to have it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "bare" / "bin" / "python"))
    context = make_context("local-cluster[1,1,1024]")
    try:
        with pytest.raises(_tfos.Error, match=r"No module named 'tensorflowonspark.*install tfos there, or let PYSPARK_PYTHON"):
            TFCluster.run(context, lambda args, ctx: None, None, 1, 0)
        model = TFModel({}).setExportDir(str(tmp_path))
        with pytest.raises(_tfos.Error, match=r"the model on an executor: .*No module named 'tensorflowonspark.*install tfos there"):
            model.transform(SparkSession(context).range(3))
    finally:
        context.stop()


def test_s07_dynamic_allocation_leaves_executors_to_nodes(tmp_path):
    """Three executors come; the one without a node goes when it is idle, and the others' nodes are fed behind that."""
    context = make_context("local-cluster[3,1,1024]", spark_dynamicAllocation_enabled="true", spark_dynamicAllocation_shuffleTracking_enabled="true",
                           spark_dynamicAllocation_minExecutors=0, spark_dynamicAllocation_initialExecutors=3, spark_dynamicAllocation_maxExecutors=3,
                           spark_dynamicAllocation_executorIdleTimeout="6s")
    try:
        wait_until(lambda: len(executors()) == 3, 60, "the executors")
        with TFCluster.run(context, local(add_up), None, 2, 0, input_mode=TFCluster.InputMode.SPARK) as cluster:
            wait_until(lambda: len(executors()) == 2, 60, "the end of the executor without a node")
            cluster.train(context.parallelize(range(100), 4), 2)
            cluster.shutdown()
            assert sum(cluster.results()) == 9900
        wait_until(lambda: not executors(), 60, "the end of the others")
    finally:
        context.stop()


@pytest.fixture(scope="module")
def context():
    """Two executors with two cores each."""
    context = make_context("local-cluster[2,2,1024]")
    yield context
    context.stop()


@pytest.mark.parametrize("nodes", [2, 1])
def test_s05_placement(context, nodes, tmp_path):
    """Two executors on one host, and a cluster smaller than the executors."""
    check_placement(context, nodes, tmp_path)


def test_s44_shutdown_ignores_other_jobs(context, tmp_path):
    """A job that runs for ever in the same context is not waited for."""
    marker = tmp_path / "running"

    def forever(_):
        import time

        open(str(marker), "w").close()
        while True:
            time.sleep(1)

    job = SparkJob(spark_of(context), "unrelated", lambda: context.parallelize([1], 1).foreach(forever))
    job.start()
    wait_until(marker.exists, 60, "the other job")
    TFCluster.run(context, lambda args, ctx: None, None, 2, 0).shutdown()
    assert len(context.statusTracker().getActiveJobsIds()) == 1
    context.cancelAllJobs()
    wait_until(lambda: not context.statusTracker().getActiveJobsIds(), 60, "the end of the other job")


def test_s06_executor_killed_before_feeding(context):
    """The error names the executor and the reason."""
    with pytest.raises(_tfos.Error) as caught:
        with TFCluster.run(context, local(take_all), None, 2, 0, input_mode=FEED) as cluster:
            above = {parent.pid for parent in psutil.Process(cluster.cluster_info[0]["pid"]).parents()}
            os.kill(next(process.pid for process in executors() if process.pid in above), signal.SIGKILL)
            cluster.train(context.parallelize(range(1000), 4), num_epochs=1, feed_timeout=60)
    words = str(caught.value)
    assert re.search(r"worker:\d", words) and "executor" in words
    wait_until(lambda: len(executors()) == 2, 60, "the executor in its place")


def test_s41_tensorboard_not_installed(context, tmp_path, monkeypatch, caplog):
    """Training continues with one warning; PYTHONPATH need not be set."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with zipfile.ZipFile(tmp_path / "absent.zip", "w") as archive:
        archive.writestr("tensorboard/__init__.py", "raise ImportError('no tensorboard here')")
    context.addPyFile(str(tmp_path / "absent.zip"))
    with caplog.at_level("WARNING"):
        with TFCluster.run(context, local(take_all), None, 2, 0, tensorboard=True, input_mode=FEED) as cluster:
            assert cluster.tensorboard_url() is None
            cluster.train(context.parallelize(range(10), 2), num_epochs=1)
    assert len([record for record in caplog.records if "TensorBoard" in record.getMessage()]) == 1


def add_up(args, ctx):
    feed, total = ctx.get_data_feed(), 0
    while not feed.should_stop():
        total += sum(feed.next_batch(10))
    return total

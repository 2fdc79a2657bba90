# SPDX-License-Identifier: Apache-2.0
"""A real Standalone cluster: a master and two workers, started and stopped by the test."""

import contextlib
import functools
import os
import re
import subprocess

import pyspark
import pytest

from conftest import make_context, wait_until
from tensorflowonspark import TFCluster
from tensorflowonspark.TFCluster import InputMode

pytestmark = pytest.mark.long


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


@pytest.fixture
def master(tmp_path):
    """One with two workers."""
    with standalone(tmp_path, ("127.0.0.1", "127.0.0.1")) as address:
        yield address


def test_train_and_infer_on_standalone(master, tmp_path):
    def work(args, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            rows = feed.next_batch(16)
            if rows:
                feed.batch_results([row + 1 for row in rows])

    context = make_context(master, spark_executor_memory="512m")
    try:
        with TFCluster.run(context, work, None, 2, 0, input_mode=InputMode.SPARK) as cluster:
            assert {node["job_name"] for node in cluster.cluster_info} == {"worker"}
            assert cluster.inference(context.parallelize(range(1000), 4)).collect() == list(range(1, 1001))
    finally:
        context.stop()

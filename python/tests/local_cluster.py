# SPDX-License-Identifier: Apache-2.0
"""Clusters on this machine without Spark: the test's process is their driver and their Spark tasks."""

import contextlib
import json
import os
import pickle
import secrets
import signal
import sys
import threading
import time

import pytest

from tensorflowonspark import _tfos
from tensorflowonspark.gpus import GpuPlan
from tensorflowonspark.launch import TRAINER_MODULE, ClusterMeta, NodeTask, node_executable, pickle_function

TRAINER = """
import json, os, pickle
from tensorflowonspark import _tfos
link = _tfos.Trainer()

def save(value):
    with open(os.environ["OUT"] + ".new", "wb") as file:
        pickle.dump(value, file)
    os.rename(os.environ["OUT"] + ".new", os.environ["OUT"])

try:
    exec(link.payload().decode())
except BaseException as error:
    link.fail(f"{type(error).__name__}: {error}")
    raise
finally:
    link.close()
"""

READ_ALL = """
feed, rows = link.open_feed(), []
while True:
    some = feed.next_rows(100, False)
    if some is None:
        break
    rows += some
save(rows)
"""

ANSWER_ALL = """
feed = link.open_feed()
while True:
    rows = feed.next_rows(5, True)
    if rows is None:
        break
    feed.put_results([("result", row) for row in rows])
"""


class Cluster:
    """One node that runs ``program``, or the trainer with that function; the test process is the driver and the Spark tasks."""

    def __init__(self, path, stack, program, **config):
        argv, payload = [sys.executable, "-c", TRAINER], program
        if callable(program):
            argv, payload = [sys.executable, "-u", "-m", TRAINER_MODULE], pickle_function(program, str(path))
        self.out = str(path / "out")
        self.cluster_id = "ext-" + secrets.token_hex(4)
        self.key = secrets.token_hex(32)
        self.rendezvous = stack.enter_context(_tfos.Rendezvous(
            self.cluster_id, self.key, 1, is_feeding=True, host="127.0.0.1", listen_host="127.0.0.1"))
        self.config = {
            "type": "config", "cluster_id": self.cluster_id, "key": self.key, "address": self.rendezvous.address, "executor_id": 0,
            "launch": 0, "executor": "0", "executor_pid": _tfos.find_executor(os.getpid()), "host": None, "feeding": True,
            "argv": argv, "directory": str(path), "tf_port": 0,
            "environment": {"OUT": self.out, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}, "default_fs": "file://",
            "working_dir": str(path), "release_port": False, "tensorboard": None, "user": {"words": "ü"}, **config,
        }
        self.node = stack.enter_context(_tfos.Node(node_executable(), json.dumps(self.config), payload if callable(program) else program.encode()))

    def writer(self, partition=0, attempt=0, feed=1, **options):
        return contextlib.closing(_tfos.FeedWriter(
            self.rendezvous.address, self.cluster_id, self.key, feed, partition, attempt, **options))

    def feed(self, rows, partition=0, **options):
        with self.writer(partition, **options) as writer:
            return writer.feed(rows)

    def results(self, rows, partition=0, **options):
        with self.writer(partition, results=True, **options) as writer:
            return list(writer.results(rows))

    def end(self):
        self.rendezvous.end_feed()
        self.rendezvous.wait(_tfos.WORKED, 120_000)

    def saved(self):
        """What the trainer saved before it ended."""
        self.end()
        with open(self.out, "rb") as file:
            return pickle.load(file)


@contextlib.contextmanager
def starting(path):
    """A function that starts such a cluster, which ends with the block."""
    with contextlib.ExitStack() as stack:
        def start(program, **config):
            cluster = Cluster(path, stack, program, **config)
            cluster.rendezvous.wait(_tfos.RUNNING, 120_000)
            return cluster
        yield start


class Nodes:
    """Several nodes that run a function as ``TFCluster.run`` has it, each launched by a thread in place of a Spark task."""

    def __init__(self, path, function, args, count, num_ps=0, **options):
        cluster_id, key = "ext-" + secrets.token_hex(4), secrets.token_hex(32)
        self.rendezvous = _tfos.Rendezvous(cluster_id, key, count, num_ps, "chief", False, False, host="127.0.0.1", listen_host="127.0.0.1")
        meta = ClusterMeta(
            cluster_id=cluster_id, key=key, address=self.rendezvous.address, num_executors=count, num_ps=num_ps,
            roles=json.loads(self.rendezvous.roles()), feeding=False, default_fs="file://", working_dir=str(path), release_port=True,
            tensorboard=False, log_dir=None, gpus=GpuPlan({"chief": 0, "worker": 0}), queues="input", **options,
        )  # fmt: skip
        self._task = NodeTask(meta, pickle_function(function, args), 300)
        self._threads = [threading.Thread(target=self._launch, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _launch(self, number):
        try:
            self._task.launch(number)
        except Exception as error:
            self.rendezvous.fail("IO", f"node {number}: {error}")

    def wait(self, phase=_tfos.WORKED):
        self.rendezvous.wait(phase, -1)  # the test has a time limit

    def nodes(self):
        """What the status says of each, by role and number."""
        return {f"{node['job_name']}{node['task_index']}": node for node in json.loads(self.rendezvous.status())["nodes"]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(_tfos.Error):
            self.rendezvous.stop(3000)
            self.rendezvous.wait(_tfos.ENDED, 20_000)
        for thread in self._threads:
            thread.join()
        self.rendezvous.close()


@contextlib.contextmanager
def interrupted(seconds=0.5):
    """Sends SIGINT to this process a little later, and sees that it is served, long before any wait here would end by itself."""
    def interrupt(number, frame):
        raise KeyboardInterrupt
    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - begin < seconds + 30
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def open_files():
    return len(os.listdir("/proc/self/fd"))

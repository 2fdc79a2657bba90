# SPDX-License-Identifier: Apache-2.0
"""Trainers that are forked from a process of their executor which has imported TensorFlow, and Python workers of Spark from such a one."""

import contextlib
import os
import subprocess
import sys

import psutil
import pytest

from conftest import executors, make_context, wait_until
from tensorflowonspark import TFCluster
from test_cluster import local


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    context = make_context("local-cluster[2,1,1024]", spark_python_daemon_module="tensorflowonspark.worker_daemon")
    yield context
    context.stop()


def describe(args, ctx):
    import json
    import os
    import sys

    import numpy
    import psutil

    names = [psutil.Process(pid).name() for pid in (os.getpid(), os.getppid())]
    server = psutil.Process(os.getppid()).ppid()
    return {"preloaded": "tensorflow" in sys.modules, "names": names, "server": server, "executor": ctx.executor_id, "random": numpy.random.rand(),
            "task": json.loads(os.environ["TF_CONFIG"])["task"], "directory": os.getcwd(), "asked": "TFOS_FORK_SERVER" in os.environ}  # fmt: skip


def run(context):
    cluster = TFCluster.run(context, local(describe), None, num_executors=2, num_ps=0, input_mode=TFCluster.InputMode.TENSORFLOW, master_node="chief")
    cluster.shutdown()
    return cluster.results()


def servers():
    """The fork servers of this process's executors: children of nobody, since their launchers have ended."""
    found = []
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.Error):  # it has ended
            if process.info["name"] == "tfos-forkserver" and process.environ().get("TFOS_TESTS_OF") == os.environ["TFOS_TESTS_OF"]:
                found.append(process)
    return found


@pytest.mark.long
def test_python_workers_have_tensorflow(context):
    def look(_):
        import numpy

        yield "tensorflow" in sys.modules, numpy.random.rand()

    found = context.parallelize(range(2), 2).mapPartitions(look).collect()
    assert [has for has, _ in found] == [True, True] and found[0][1] != found[1][1]


@pytest.mark.long
def test_clusters_share_the_servers_of_their_executors(context, monkeypatch):
    plain = run(context)
    assert not any(one["preloaded"] for one in plain) and {name for one in plain for name in one["names"]} >= {"tfos"}
    monkeypatch.setenv("TFOS_PRELOAD", "no_such_module, tensorflow")
    rounds = [run(context) for _ in range(2)]
    for nodes in rounds:
        assert all(one["preloaded"] and one["names"][1] == "tfos-node" and not one["asked"] for one in nodes)
        assert sorted(one["task"]["type"] for one in nodes) == ["chief", "worker"]
        assert len({one["directory"] for one in nodes} | {one["directory"] for one in plain}) == 2
    used = {one["server"] for nodes in rounds for one in nodes}
    assert len(used) == 2 and used <= {process.pid for process in servers()}
    assert len({one["random"] for nodes in rounds for one in nodes}) == 4
    # They end with their executors.
    for executor in executors():
        executor.kill()
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in used), what="the end of the fork servers")


def test_what_is_not_served_is_refused():
    """Only a launcher starts a fork server: its descriptor 3 is the socket."""
    environment = {**os.environ, "TFOS_FORK_SERVER": "0 json"}
    done = subprocess.run([sys.executable, "-m", "tensorflowonspark.trainer"], env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "descriptor 3 does not listen" in done.stderr

# SPDX-License-Identifier: Apache-2.0
"""GPUs that Spark assigns: its workers' discovery script is of the test's making, and nobody looks for a driver."""

import json
import os
import sys
import time

import pytest
from pyspark import cloudpickle

from conftest import make_context
from tensorflowonspark import TFCluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # trainers do not have this module
pytestmark = pytest.mark.long


@pytest.fixture
def discovery(tmp_path):
    script = tmp_path / "discover"
    script.write_text("""#!/bin/sh\necho '{"name": "gpu", "addresses": ["4", "7"]}'\n""")
    script.chmod(0o755)
    return {"spark_worker_resource_gpu_amount": 2, "spark_worker_resource_gpu_discoveryScript": script,
            "spark_executor_resource_gpu_amount": 2}


def tell(folder, ctx):
    path = os.path.join(folder, ctx.job_name)
    with open(path + ".new", "w") as file:
        json.dump([os.environ["CUDA_VISIBLE_DEVICES"], ctx.num_gpus, ctx.gpu_fraction], file)
    os.rename(path + ".new", path)
    deadline = time.monotonic() + 120
    while not os.path.exists(os.path.join(folder, "ps")):  # parameter servers are stopped when the workers have returned
        assert time.monotonic() < deadline, "the parameter server has told nothing"
        time.sleep(0.05)


def told(folder, *jobs):
    return [json.loads((folder / job).read_text()) for job in jobs]


def test_s33_workers_get_the_gpus_of_their_profile_and_parameter_servers_none(discovery, tmp_path):
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    out = tmp_path / "out"
    out.mkdir()
    sc = make_context("local-cluster[2,1,1024]", **discovery)
    try:
        profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(1).resource("gpu", 2)).build
        cluster = TFCluster.run(sc, tell, str(out), 2, 1, resource_profile=profile)
        cluster.shutdown()
        assert told(out, "ps", "worker") == [["", 0, 0], ["4,7", 2, 0]]
    finally:
        sc.stop()


def test_parts_of_a_gpu_that_spark_assigns(discovery, tmp_path):
    sc = make_context("local-cluster[1,2,1024]", spark_task_resource_gpu_amount=0.5, **discovery)
    try:
        cluster = TFCluster.run(sc, tell, str(tmp_path), 2, 1)
        cluster.shutdown()
        (addresses, number, fraction), = told(tmp_path, "worker")
        assert addresses in ("4", "7") and (number, fraction) == (1, 0.5)
        assert told(tmp_path, "ps") == [["", 0, 0]]
    finally:
        sc.stop()

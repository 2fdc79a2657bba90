# SPDX-License-Identifier: Apache-2.0
"""What the distributor's integration tests find in their own conftest.py and in its containers: a Standalone cluster, with GPUs that a script names.

The first configuration that a test asks for is kept until one asks for another.
"""

import importlib.metadata
import os
import re
import subprocess
import time

import pyspark
import pytest
from pyspark.sql import SparkSession

# What is different here on purpose with Keras 3. A test that is named and passes counts as failed.
HAS_KERAS_3 = importlib.metadata.version("keras").startswith("3.")
DIFFERS = {"test_run_on_ssl_cluster": "with spark.ssl.enabled a function without a strategy runs: what Keras 3 sends is encrypted"}
WORKER_CORES = 4
HOST = "127.0.0.1"
FOLDER = os.getcwd()


def pytest_collection_modifyitems(items):
    for item in items:
        if item.originalname in DIFFERS:
            item.add_marker(pytest.mark.xfail(HAS_KERAS_3, strict=True, reason=DIFFERS[item.originalname]))


@pytest.fixture(scope="session")
def num_workers(request):
    return request.param


@pytest.fixture(scope="session")
def num_gpus_per_worker(request):
    return request.param


@pytest.fixture(scope="session")
def extra_spark_configs(request):
    return getattr(request, "param", {})


def settings_for(gpus, extra):
    script = os.path.join(FOLDER, "gpus.sh")
    with open(script, "w") as file:
        names = ", ".join(f'"{number}"' for number in range(gpus))
        file.write(f"#!/bin/sh\necho '{{\"name\": \"gpu\", \"addresses\": [{names}]}}'\n")
    os.chmod(script, 0o755)
    settings = {"spark.cores.max": 2, "spark.executor.cores": 1, "spark.task.cpus": 1, "spark.task.resource.gpu.amount": gpus,
                "spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.python.worker.reuse": "false",
                "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.scheduler.maxRegisteredResourcesWaitingTime": "20s"}
    for place in ("driver", "executor", "worker"):
        settings[f"spark.{place}.resource.gpu.amount"] = gpus
    for place in ("driver", "worker"):
        settings[f"spark.{place}.resource.gpu.discoveryScript"] = script
    return {**settings, **extra}


class Daemons:
    """A master and workers. A context manager that gives the master's address."""

    def __init__(self, workers, settings):
        self._workers, self._settings, self._started = workers, settings, []

    def __enter__(self):
        with open("spark.conf", "w") as file:
            file.writelines(f"{name} {value}\n" for name, value in self._settings.items() if name.startswith("spark.worker."))
        address = self._start("master", r"spark://\S+?:\d+", "master.Master", "--host", HOST, "--port", "0", "--webui-port", "0")
        for number in range(self._workers):
            self._start(f"worker{number}", "Successfully registered", "worker.Worker", "--host", HOST, "--cores", str(WORKER_CORES), "--memory", "4g",
                        "--webui-port", "0", "--work-dir", f"{FOLDER}/work{number}", "--properties-file", "spark.conf", address)
        return address

    def _start(self, name, pattern, kind, *arguments):
        home = os.path.dirname(pyspark.__file__)
        environment = {**os.environ, "SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m"}
        with open(f"{name}.log", "w") as log:
            self._started.append(subprocess.Popen([f"{home}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *arguments], env=environment, stdout=log,
                                                  stderr=log))
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with open(f"{name}.log") as log:
                found = re.search(pattern, log.read())
            if found:
                return found.group(0)
            time.sleep(0.1)
        raise TimeoutError(f"{name} did not start; {FOLDER}/{name}.log says why")

    def __exit__(self, *_):
        for process in reversed(self._started):
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="session", autouse=True)
def spark_session(num_workers, num_gpus_per_worker, extra_spark_configs):
    settings = settings_for(num_gpus_per_worker, extra_spark_configs)
    with Daemons(num_workers, settings) as address:
        builder = SparkSession.builder.master(address).appName("the distributor's tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()

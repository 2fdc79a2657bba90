# SPDX-License-Identifier: Apache-2.0
"""A server of Spark Connect: a process of its own on this machine, with two executors of one core each."""

import contextlib
import os
import socket
import subprocess
import sys

from conftest import wait_until

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


def _is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def connected(folder):
    """A session of such a server, which keeps its log in ``folder`` and ends with the block."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql.connect.session import SparkSession

    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "1g",
        "spark.sql.warehouse.dir": folder, "spark.sql.shuffle.partitions": 4, "spark.task.maxFailures": 2,
    }
    command = [os.path.join(_find_spark_home(), "bin", "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    environment = dict(os.environ, PYSPARK_PYTHON=sys.executable)
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen([*command, "--class", _CLASS, "spark-internal"], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: server.poll() is not None or _is_listening(port), 300, "the server")
        assert server.poll() is None, (folder / "log").read_text()
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        yield session
        session.stop()
    finally:
        server.terminate()
        server.wait(60)

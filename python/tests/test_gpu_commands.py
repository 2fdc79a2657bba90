# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/gpus.md as they stand there: on a Standalone cluster whose worker has fake GPUs, and for a Kubernetes that is a stand-in."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import wait_until
from test_gpus import library  # noqa: F401
from test_spark_on_kubernetes import IMAGE, SPARK_HOME, environment, server  # noqa: F401
from test_standalone import standalone

pytestmark = pytest.mark.long
PAGE = Path(__file__).resolve().parents[2] / "docs" / "gpus.md"
PROGRAM = """
import json, os, sys
from pyspark import SparkContext
from tensorflowonspark import TFCluster


def main(out, ctx):
    with open(out, "w") as file:
        json.dump([os.environ["CUDA_VISIBLE_DEVICES"], ctx.num_gpus], file)


if __name__ == "__main__":
    TFCluster.run(SparkContext(), main, sys.argv[1], 1, 0).shutdown()
"""


def commands(master):
    """The page's commands for a kind of master, as lists of words, without ``spark-submit`` and its master."""
    blocks = re.findall(r"^```\n(spark-submit .*?)\n```", PAGE.read_text(), re.S | re.M)
    found = [shlex.split(block.replace("\\\n", " "))[1:] for block in blocks if f"--master {master}" in block]
    assert all(words[0] == "--master" and words[-1] == "train.py" for words in found)
    return [words[2:-1] for words in found]


def test_standalone(library, tmp_path, monkeypatch):  # noqa: F811
    """Nodes that look for a free GPU, and Spark that assigns one."""
    script, out = tmp_path / "discover", tmp_path / "out"
    script.write_text("""#!/bin/sh\necho '{"name": "gpu", "addresses": ["4", "7"]}'\n""")
    script.chmod(0o755)
    (tmp_path / "train.py").write_text(PROGRAM)
    for name, value in {"LD_LIBRARY_PATH": f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}", "TFOS_RUNTIME_DIR": str(tmp_path / "locks"),
                        "FAKE_GPUS": "bf", "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
                        "SPARK_WORKER_OPTS": f"-Dspark.worker.resource.gpu.amount=2 -Dspark.worker.resource.gpu.discoveryScript={script}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    told = []
    with standalone(tmp_path, ("127.0.0.1",)) as master:
        for words in commands("spark://host:7077"):
            result = subprocess.run([f"{SPARK_HOME}/bin/spark-submit", "--master", master, "--conf", "spark.executor.memory=512m", *words,
                                     str(tmp_path / "train.py"), str(out)], capture_output=True, text=True, timeout=280)
            assert result.returncode == 0, result.stderr[-3000:]
            told.append(json.loads(out.read_text()))
    assert told[0] == ["1", 1] and told[1] in (["4", 1], ["7", 1]) and len(told) == 2


def test_kubernetes(server, tmp_path):  # noqa: F811
    """What Spark asks Kubernetes for."""
    (tmp_path / "train.py").write_text("from pyspark import SparkContext; SparkContext().parallelize(range(2), 2).count()")
    words, = commands("k8s://https://host:6443")
    with open(tmp_path / "log", "w") as log:
        driver = subprocess.Popen(
            [f"{SPARK_HOME}/bin/spark-submit", "--master", f"k8s://http://127.0.0.1:{server.server_port}", *words, "--conf", "spark.ui.enabled=false",
             "--conf", f"spark.kubernetes.container.image={IMAGE}", "--conf", "spark.driver.host=127.0.0.1", str(tmp_path / "train.py")],
            stdout=log, stderr=log, env={**environment(tmp_path), "PYSPARK_PYTHON": sys.executable}, start_new_session=True)
    try:
        def has_asked():
            assert driver.poll() is None, (tmp_path / "log").read_text()[-3000:]
            return server.pods("executor")

        pod = wait_until(has_asked, 280, "an executor's pod")[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, 9)
        driver.wait(30)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"

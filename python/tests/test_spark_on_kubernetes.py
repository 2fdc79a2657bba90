# SPDX-License-Identifier: Apache-2.0
"""The settings of deploy/spark as Spark takes them: the pods that it asks a server of Kubernetes's for, which is a stand-in on loopback, are those
that docs/kubernetes.md tells of, and Kubernetes's schema takes them."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conftest import wait_until

pyspark = pytest.importorskip("pyspark")
kubernetes_validate = pytest.importorskip("kubernetes_validate")
pytestmark = pytest.mark.long

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SPARK_HOME = os.path.dirname(pyspark.__file__)
IMAGE = "registry.example.com/me/tfos-spark:v1"


class Server(http.server.ThreadingHTTPServer):
    """Takes what is created, and gives it back with an identity; all else is not there."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.created = []

    def pods(self, role):
        return [one for one in self.created if one.get("kind") == "Pod" and one["metadata"].get("labels", {}).get("spark-role") == role]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def take(self):
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        document["metadata"].setdefault("uid", f"00000000-0000-0000-0000-{len(self.server.created):012d}")
        document["metadata"].setdefault("resourceVersion", "1")
        self.server.created.append(document)
        self.answer(201 if self.command == "POST" else 200, document)

    do_POST = do_PATCH = do_PUT = take

    def do_GET(self):
        kind = self.path.partition("?")[0].rsplit("/", 1)[-1]
        if kind in ("pods", "configmaps", "services", "persistentvolumeclaims"):
            names = {"pods": "PodList", "configmaps": "ConfigMapList", "services": "ServiceList", "persistentvolumeclaims": "PersistentVolumeClaimList"}
            self.answer(200, {"kind": names[kind], "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})
        else:
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": self.path})

    def do_DELETE(self):
        self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    one = Server()
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield one
    one.shutdown()
    one.server_close()


def environment(folder):
    return {**os.environ, "KUBECONFIG": os.devnull, "SPARK_HOME": SPARK_HOME, "HOME": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}


def settings(server):
    return ["--master", f"k8s://http://127.0.0.1:{server.server_port}", "--properties-file", str(DEPLOY / "spark/spark-kubernetes.conf"),
            "--conf", f"spark.kubernetes.container.image={IMAGE}", "--conf", "spark.kubernetes.driver.requestTimeout=300000",
            "--conf", "spark.kubernetes.submission.requestTimeout=300000"]


def check_pod(pod, memory, cores):
    """What all pods have; Kubernetes's schema takes them."""
    kubernetes_validate.validate(pod, "1.30", strict=True)
    container = pod["spec"]["containers"][0]
    assert container["image"] == IMAGE
    assert container["resources"]["limits"]["memory"] == memory
    assert container["resources"]["requests"]["cpu"] == cores
    claim, = [volume["name"] for volume in pod["spec"]["volumes"] if volume.get("persistentVolumeClaim", {}).get("claimName") == "tfos-data"]
    assert {"name": claim, "mountPath": "/data"} in [{"name": one["name"], "mountPath": one["mountPath"]} for one in container["volumeMounts"]]
    return container


def test_the_driver_of_spark_submit(server, tmp_path):
    program = "local:///opt/tfos/examples/mnist/keras/mnist_spark.py"
    arguments = ["--cluster_size", "2", "--images_labels", "/data/mnist/csv/train"]
    result = subprocess.run(
        [f"{SPARK_HOME}/bin/spark-submit", *settings(server), "--deploy-mode", "cluster", "--name", "mnist",
         "--conf", "spark.kubernetes.submission.waitAppCompletion=false", program, *arguments],
        capture_output=True, text=True, timeout=580, env=environment(tmp_path))
    assert result.returncode == 0, result.stderr[-3000:]
    driver, = server.pods("driver")
    container = check_pod(driver, "1433Mi", "1")
    assert driver["spec"]["serviceAccountName"] == "spark"
    assert container["args"][-5:] == [program, *arguments]
    services = [one for one in server.created if one["kind"] == "Service"]
    assert [one["spec"]["clusterIP"] for one in services] == ["None"]


def test_the_executors_of_a_driver(server, tmp_path):
    code = "from pyspark import SparkContext; sc = SparkContext(); sc.parallelize(range(2), 2).count()"
    (tmp_path / "program.py").write_text(code)
    with open(tmp_path / "log", "w") as log:
        driver = subprocess.Popen(
            [f"{SPARK_HOME}/bin/spark-submit", *settings(server), "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false",
             str(tmp_path / "program.py")], stdout=log, stderr=log, env={**environment(tmp_path), "PYSPARK_PYTHON": sys.executable}, start_new_session=True)
    try:
        def has_asked():
            assert driver.poll() is None, (tmp_path / "log").read_text()[-3000:]
            return len(server.pods("executor")) >= 2

        wait_until(has_asked, 580, "the executors' pods")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, 9)
        driver.wait(30)
    for pod in server.pods("executor")[:2]:
        container = check_pod(pod, "5120Mi", "1")
        assert container["resources"]["limits"]["cpu"] == "1"
        assert any(one["name"] == "SPARK_EXECUTOR_CORES" and one["value"] == "1" for one in container["env"])

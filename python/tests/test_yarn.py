# SPDX-License-Identifier: Apache-2.0
"""A real YARN with HDFS on this machine: programs are submitted as docs/yarn.md says."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import urllib.request

import psutil
import pyspark
import pytest

from conftest import wait_until
from hadoop_cluster import Unavailable, serving
from mnist_data import first_digits
from test_gpu_commands import PROGRAM as GPU_PROGRAM
from test_gpu_commands import commands
from test_gpus import library  # noqa: F401

pytestmark = pytest.mark.long
pytest.importorskip("tensorflow")

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "yarn_program.py")
COMMAND = os.path.join(os.path.dirname(sys.executable), "tfos")
SPARK = os.path.dirname(pyspark.__file__)
SETTINGS = {
    "spark.yarn.jars": f"local:{SPARK}/jars/*", "spark.executor.memory": "512m", "spark.executor.memoryOverhead": "256m", "spark.yarn.am.memory": "512m",
    "spark.ui.enabled": "false", "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1", "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
}


@pytest.fixture(scope="module")
def yarn(tmp_path_factory):
    try:
        with serving(tmp_path_factory.mktemp("yarn"), yarn=True) as server:
            yield server
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An archive with a Python, as venv-pack makes one of a whole environment; this one runs the tests' own."""
    folder = tmp_path_factory.mktemp("environment")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    return folder / "environment.tar.gz"


def submit(yarn, environment, mode, *arguments, log):
    python = "./environment/bin/python" if mode == "cluster" else sys.executable
    settings = {
        **SETTINGS, "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": "./environment/bin/python", "spark.executorEnv.PYSPARK_PYTHON": "./environment/bin/python",
    }
    command = [f"{SPARK}/bin/spark-submit", "--master", "yarn", "--deploy-mode", mode, "--queue", "training", "--archives", f"{environment}#environment",
               "--num-executors", "2", "--executor-cores", "1", "--driver-memory", "512m"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    environ = dict(os.environ, HADOOP_CONF_DIR=str(yarn.conf), SPARK_HOME=SPARK, PYSPARK_PYTHON="./environment/bin/python", PYSPARK_DRIVER_PYTHON=python)
    with open(log, "w") as file:
        return subprocess.Popen([*command, PROGRAM, *map(str, arguments)], env=environ, stdout=file, stderr=subprocess.STDOUT)


def application(yarn, log):
    """What YARN says of the application that ``log`` names."""
    [found] = set(re.findall(r"application_\d+_\d+", log.read_text()))
    with urllib.request.urlopen(f"http://{yarn.web}/ws/v1/cluster/apps/{found}", timeout=30) as answer:
        return json.load(answer)["app"]


def read(yarn, path):
    """The text of the files of a pattern on HDFS; "" while there are none."""
    return subprocess.run([COMMAND, "fs", "cat", f"{yarn}{path}"], stdout=subprocess.PIPE, timeout=120).stdout.decode(errors="replace")


def logs_of(yarn, app):
    """What the containers of an application that has ended have written."""
    return wait_until(lambda: read(yarn, f"/tmp/logs/{app['user']}/*/*/{app['id']}/*"), 60, "the aggregated logs")


def test_in_cluster_mode(yarn, environment, tmp_path):
    log = tmp_path / "log"
    with submit(yarn, environment, "cluster", "run", "feed", tmp_path, log=log) as process:
        process.wait(400)
    app = application(yarn, log)
    logs = logs_of(yarn, app)
    assert (app["finalStatus"], app["queue"]) == ("SUCCEEDED", "root.training"), logs
    seen = [read(yarn, f"/user/{app['user']}/run/{number}").split() for number in range(2)]
    assert len({count for count, _, _ in seen}) == 1 and sum(int(total) for _, total, _ in seen) == sum(range(1000))
    assert {"trainer 0 writes to", "trainer 1 writes to"} <= set(re.findall(r"trainer \d writes to", logs))


def test_a_killed_application_leaves_nothing(yarn, environment, tmp_path):
    log, pids = tmp_path / "log", tmp_path / "pids"
    pids.mkdir()
    with submit(yarn, environment, "client", "run", "wait", pids, log=log) as process:
        try:
            trainers = [psutil.Process(int(pid)) for pid in wait_until(lambda: len(os.listdir(pids)) == 2 and os.listdir(pids), 300, "the trainers")]
            kill = urllib.request.Request(f"http://{yarn.web}/ws/v1/cluster/apps/{application(yarn, log)['id']}/state?user.name=root", b'{"state": "KILLED"}',
                                          {"Content-Type": "application/json"}, method="PUT")
            urllib.request.urlopen(kill, timeout=30).close()
            assert process.wait(120) != 0
        finally:
            process.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs(trainers, 60)
    assert alive == []
    assert application(yarn, log)["finalStatus"] == "KILLED"


def test_gpus_that_yarn_assigns(yarn, library, tmp_path):  # noqa: F811
    """The command of docs/gpus.md; the node manager counts GPUs, and the script says which they are."""
    (words,), out = commands("yarn"), tmp_path / "out"
    (tmp_path / "train.py").write_text(GPU_PROGRAM)
    script = tmp_path / "getGpusResources.sh"
    script.write_text("""#!/bin/sh\necho '{"name": "gpu", "addresses": ["7"]}'\n""")
    script.chmod(0o755)
    executor = {"PYSPARK_PYTHON": sys.executable, "LD_LIBRARY_PATH": library, "TFOS_RUNTIME_DIR": tmp_path / "locks", "FAKE_GPUS": "bf"}
    settings = {**SETTINGS, "spark.executor.instances": "1", **{f"spark.executorEnv.{name}": value for name, value in executor.items()}}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environ = dict(os.environ, HADOOP_CONF_DIR=str(yarn.conf), SPARK_HOME=SPARK, PYSPARK_PYTHON=sys.executable)
    result = subprocess.run([f"{SPARK}/bin/spark-submit", "--master", "yarn", *options, *words, "train.py", str(out)], cwd=tmp_path, env=environ, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280)
    assert result.returncode == 0 and json.loads(out.read_text()) == ["7", 1], result.stdout[-3000:]


README = os.path.join(os.path.dirname(PROGRAM), os.pardir, os.pardir, "deploy", "emr", "README.md")


@pytest.fixture(scope="module")
def shell(yarn, tmp_path_factory):
    """Types the lines of a section of deploy/emr/README.md, as user hadoop; what they print."""
    home = tmp_path_factory.mktemp("home")
    (home / "bin").mkdir()
    hdfs = home / "bin" / "hdfs"
    hdfs.write_text(f'#!/bin/sh\nshift\nexec java -cp "{yarn.conf}:{SPARK}/jars/*" org.apache.hadoop.fs.FsShell "$@"\n')
    hdfs.chmod(0o755)
    data = first_digits(home / "data")
    options = {"spark.yarn.jars": f"local:{SPARK}/jars/*", "spark.ui.enabled": "false", "spark.yarn.am.memory": "512m",
               "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1", "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1"}
    environ = dict(
        os.environ, HOME=str(home), HADOOP_USER_NAME="hadoop", HADOOP_CONF_DIR=str(yarn.conf), SPARK_HOME=SPARK, PYSPARK_PYTHON=sys.executable, NODES="2",
        MNIST_URL=f"file://{data}", PATH=f"{home}/bin:{SPARK}/bin:{os.environ['PATH']}", EXECUTOR_MEMORY="512m", EXECUTOR_OVERHEAD="512m",
        SUBMIT_OPTIONS=" ".join(f"--conf {name}={value}" for name, value in options.items()) + " --driver-memory 512m",
    )

    def type_in(section):
        with open(README) as file:
            [lines] = re.findall(rf"^## {section}$.*?```sh\n(.*?)```", file.read(), re.DOTALL | re.MULTILINE)
        done = subprocess.run(["bash", "-e", "-c", lines], cwd=os.path.dirname(README), env=environ, capture_output=True, text=True, timeout=560)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    type_in("The data")
    return type_in


def test_the_guide_of_emr_with_rows_that_spark_feeds(shell):
    said = shell("Fed by Spark")
    for name in ("checkpoint", "graph.pbtxt", "model.ckpt-0.meta", "events.out.tfevents"):
        assert f"/user/hadoop/mnist_model/{name}" in said
    assert re.search(r"^\S+ Label: \d, Prediction: \d$", said, re.MULTILINE)


def test_the_guide_of_emr_with_files_that_workers_read(shell):
    said = shell("Read by the workers")
    assert "mnist_model/checkpoint" in said and re.search(r"^\d \d$", said, re.MULTILINE)


def test_the_guide_of_emr_with_keras(shell):
    said = shell("Keras 3, in step")
    assert "keras_export/saved_model.pb" in said and "keras_model/" in said

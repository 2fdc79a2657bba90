# SPDX-License-Identifier: Apache-2.0
"""A real YARN with HDFS on this machine: programs are submitted as docs/yarn.md says."""

import json
import os
import re
import shlex
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

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
pytest.importorskip("tensorflow")

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "yarn_program.py")
COMMAND = os.path.join(os.path.dirname(sys.executable), "tfos")
SPARK = os.path.dirname(pyspark.__file__)
ROOT = os.path.join(os.path.dirname(PROGRAM), os.pardir, os.pardir)
JAVA = {f"spark.{place}.JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1" for place in ("yarn.appMasterEnv", "executorEnv")}  # as conftest.py has it
SETTINGS = {
    **JAVA,
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
def environment(yarn, tmp_path_factory):
    """An archive on HDFS whose Python is a shim that starts the tests' own: it stands for the environment of some GB that venv-pack makes."""
    folder = tmp_path_factory.mktemp("environment")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    subprocess.run([COMMAND, "fs", "put", folder / "environment.tar.gz", f"{yarn}/user/hadoop/environment.tar.gz"], check=True, timeout=120)


def submit(yarn, mode, *arguments, log):
    """Types the first spark-submit of docs/yarn.md, in this mode, with less memory, and a program of the tests."""
    with open(os.path.join(ROOT, "docs", "yarn.md")) as file:
        [lines] = re.findall(r"^(export PYSPARK_PYTHON.*?) program\.py$", file.read(), re.DOTALL | re.MULTILINE)
    assert "hdfs:///user/$USER/environment.tar.gz#environment" in lines and "--queue training" in lines
    smaller = {**SETTINGS, "spark.yarn.maxAppAttempts": "1"}
    more = ["--deploy-mode", mode, "--num-executors", "2", "--executor-memory", "512m", "--driver-memory", "512m"]
    more += [word for name, value in smaller.items() for word in ("--conf", f"{name}={value}")]
    words = shlex.join([*more, PROGRAM, *map(str, arguments)])
    driver = f"export PYSPARK_DRIVER_PYTHON={shlex.quote(sys.executable)}\n" if mode == "client" else ""
    typed = f"{yarn.exports}{driver}{lines} {words}".replace("\nspark-submit", "\nexec spark-submit")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    with open(log, "w") as file:
        return subprocess.Popen(["bash", "-e", "-c", typed], env=environ, stdout=file, stderr=subprocess.STDOUT)


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


@pytest.mark.usefixtures("environment")
def test_in_cluster_mode(yarn, tmp_path):
    log = tmp_path / "log"
    with submit(yarn, "cluster", "run", "feed", tmp_path, log=log) as process:
        process.wait(400)
    app = application(yarn, log)
    logs = logs_of(yarn, app)
    assert (app["finalStatus"], app["queue"], app["user"]) == ("SUCCEEDED", "root.training", "hadoop"), logs
    seen = [read(yarn, f"/user/{app['user']}/run/{number}").split() for number in range(2)]
    assert len({count for count, _, _ in seen}) == 1 and sum(int(total) for _, total, _ in seen) == sum(range(1000))
    assert {"trainer 0 writes to", "trainer 1 writes to"} <= set(re.findall(r"trainer \d writes to", logs))


@pytest.mark.usefixtures("environment")
def test_a_killed_application_leaves_nothing(yarn, tmp_path):
    log, pids = tmp_path / "log", tmp_path / "pids"
    pids.mkdir()
    with submit(yarn, "client", "run", "wait", pids, log=log) as process:
        try:
            trainers = [psutil.Process(int(pid)) for pid in wait_until(lambda: len(os.listdir(pids)) == 2 and os.listdir(pids), 300, "the trainers")]
            app = application(yarn, log)
            # The master's 512 and 384 MB are 1024, as YARN gives multiples of 256.
            assert [app[name] for name in ("runningContainers", "allocatedMB", "allocatedVCores")] == [3, 1024 + 2 * (512 + 256), 3]
            kill = urllib.request.Request(f"http://{yarn.web}/ws/v1/cluster/apps/{app['id']}/state?user.name=root", b'{"state": "KILLED"}',
                                          {"Content-Type": "application/json"}, method="PUT")
            urllib.request.urlopen(kill, timeout=30).close()
            assert process.wait(120) != 0
        finally:
            process.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs(trainers, 60)
    assert alive == []
    assert application(yarn, log)["finalStatus"] == "KILLED"


def test_gpus_that_yarn_assigns(yarn, library, tmp_path):  # noqa: F811
    """The command of docs/gpus.md, in client mode; the node manager counts GPUs, and the script says which they are."""
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


README = os.path.join(ROOT, "deploy", "emr", "README.md")


@pytest.fixture(scope="module")
def shell(yarn, tmp_path_factory):
    """Types the lines of a section of deploy/emr/README.md, as user hadoop; what they print, and how many of the predictions are right."""
    home = tmp_path_factory.mktemp("home")
    data = first_digits(home / "data", 3000)
    environ = dict(os.environ, HOME=str(home), NODES="2", MNIST_URL=f"file://{data}", EXECUTOR_MEMORY="512m", EXECUTOR_OVERHEAD="512m",
                   SUBMIT_OPTIONS=" ".join(["--driver-memory 512m", *(f"--conf {name}={value}" for name, value in JAVA.items()),
                                            "--conf spark.ui.enabled=false"]))

    def type_in(section, predictions=None):
        with open(README) as file:
            [lines] = re.findall(rf"^## {section}$.*?```sh\n(.*?)```", file.read(), re.DOTALL | re.MULTILINE)
        lines = yarn.exports + lines
        done = subprocess.run(["bash", "-e", "-c", lines], cwd=os.path.dirname(README), env=environ, capture_output=True, text=True, timeout=1100)
        assert done.returncode == 0, done.stdout + done.stderr
        if predictions is None:
            return done.stdout
        folder, form = predictions
        found = [re.fullmatch(form, line) for line in read(yarn, f"/user/hadoop/{folder}/part-*").splitlines()]
        assert len(found) == 200 and all(found)
        return done.stdout, sum(match[1] == match[2] for match in found)

    said = type_in("The data")
    assert {f"/user/hadoop/mnist/{kind}" for kind in ("csv", "csv2", "tfr", "pickle")} <= set(said.split())
    return type_in


def assert_trained(said, folder):
    """The listing has what a session of TensorFlow 1 leaves that has made steps."""
    names = set(re.findall(rf"{folder}/(\S+)", said))
    [last, *_] = sorted((name[: -len(".index")] for name in names if re.fullmatch(r"model\.ckpt-[1-9]\d*\.index", name)), reverse=True)
    assert {"checkpoint", "graph.pbtxt", f"{last}.meta", f"{last}.data-00000-of-00001"} <= names
    assert any(name.startswith("events.out.tfevents.") for name in names)


# Of 200 predictions those that know nothing have 20 right.


def test_the_guide_of_emr_with_rows_that_spark_feeds(shell):
    said, right = shell("Fed by Spark", ("predictions", r"\d{4}-\d\d-\d\dT[\d:]{8} Label: (\d), Prediction: (\d)"))
    assert_trained(said, "/user/hadoop/mnist_model")
    assert right > 60 and " Label: " in said


def test_the_guide_of_emr_with_files_that_workers_read(shell):
    said, right = shell("Read by the workers", ("predictions", r"(\d) (\d)"))
    assert_trained(said, "mnist_model")
    assert right > 60 and re.search(r"^\d \d$", said, re.MULTILINE)


@pytest.mark.parametrize("section", ["Keras 3, fed by Spark", "Keras 3, read by the workers"])
def test_the_guide_of_emr_with_keras(shell, section):
    said, right = shell(section, ("keras_predictions", r"(\d) (\d)"))
    assert {"keras_export/saved_model.pb", "keras_model/weights-0003.weights.h5", "keras_model/losses.csv"} <= set(said.split())
    assert right > 150


def test_what_make_hadoop_cluster_prints(tmp_path):
    """As it is pasted; an interrupt ends it and leaves nothing."""
    program, begin = os.path.join(os.path.dirname(PROGRAM), "hadoop_cluster.py"), "In another terminal:\n"
    with subprocess.Popen([sys.executable, program], env=dict(os.environ, TMPDIR=str(tmp_path)), stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
        try:
            told = "".join(iter(process.stdout.readline, "\n")) + "".join(iter(process.stdout.readline, "\n"))
            assert begin in told
            lines = told.split(begin)[1] + "hdfs dfs -mkdir -p a\n hdfs dfs -ls\n yarn application -list\n"
            done = subprocess.run(["bash", "-e", "-c", lines], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0 and re.search(r"^Found 1 items\n.* hadoop .* a$", done.stdout, re.M), done.stdout + done.stderr
            assert "Total number of applications" in done.stdout
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=120)[0]
    assert process.returncode == 0 and rest.endswith("stopping\n") and os.listdir(tmp_path) == []

# SPDX-License-Identifier: Apache-2.0
"""The original, TensorFlowOnSpark 2.2.5 from PyPI, in a virtual environment of its own, made once."""

import fcntl
import os
import platform
import shutil
import subprocess
import sys

from harness import BUILD, BenchError, note

TENSORFLOW = "tensorflow-cpu" if platform.machine() == "x86_64" else "tensorflow"
REQUIREMENTS = (
    "pyspark==3.5.9",
    TENSORFLOW + "==2.15.1",
    "numpy<2",
    "setuptools<81",
    "tensorflowonspark==2.2.5",
)
# TensorFlow's Hadoop formats, which the original writes and reads through.
HADOOP = "org.tensorflow:tensorflow-hadoop:1.15.0"
FOLDER = os.path.join(BUILD, "bench-original")
SET_UP_S = 900


def python():
    """The Python of the original's environment, which is made if need be.

    The environment variable TFOS_BENCH_ORIGINAL names the Python of an environment that has the packages already.
    """
    ready = os.environ.get("TFOS_BENCH_ORIGINAL")
    if ready:
        return os.path.abspath(ready)
    os.makedirs(BUILD, exist_ok=True)
    with open(FOLDER + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_made():
            _make()
    return os.path.join(FOLDER, "bin", "python")


def hadoop_settings():
    """Settings of a Spark session that fetches TensorFlow's Hadoop formats, once; Hadoop itself is Spark's."""
    return {"spark.jars.packages": HADOOP, "spark.jars.excludes": "org.apache.hadoop:*", "spark.jars.ivy": os.path.join(BUILD, "bench-ivy")}


def _stamp_path():
    return os.path.join(FOLDER, "requirements.txt")


def _is_made():
    try:
        with open(_stamp_path()) as stamp:
            return stamp.read().split("\n") == list(REQUIREMENTS)
    except FileNotFoundError:
        return False


def _make():
    """The list of requirements is written last: without it the environment counts as not made."""
    note(f"making the original's environment in {FOLDER}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    _run(_old_python(), "-m", "venv", FOLDER)
    _run(
        os.path.join(FOLDER, "bin", "python"), "-m", "pip", "install", "--quiet",
        "--disable-pip-version-check", *REQUIREMENTS,
    )
    with open(_stamp_path(), "w") as stamp:
        stamp.write("\n".join(REQUIREMENTS))


def _old_python():
    """TensorFlow 2.15 has wheels for Python 3.9 to 3.11."""
    names = ("python3.11", "python3.10", "python3.9")
    for candidate in (sys.executable, *filter(None, map(shutil.which, names))):
        probe = "import sys, venv; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))"
        if subprocess.run([candidate, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0:
            return candidate
    raise BenchError(
        "the original needs Python 3.9 to 3.11 with venv and none was found: install python3.11 and "
        "python3.11-venv, or set TFOS_BENCH_ORIGINAL to the Python of an environment with "
        + " ".join(REQUIREMENTS)
    )


def _run(*command):
    try:
        subprocess.run(command, check=True, timeout=SET_UP_S, stdout=sys.stderr)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"cannot make the original's environment: {error}") from error

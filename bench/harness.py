# SPDX-License-Identifier: Apache-2.0
"""The harness: the same work done in turn by processes of its own, one a side, in one run.

The parent starts the bench's own program again for each side, under that side's Python, and asks it over a pipe, a JSON
line a request. A side keeps its Spark session between requests, so that rounds can be interleaved on warm sessions.
Whatever a side started ends with it: all of it is in the session that the side's process leads.
"""

import argparse
import json
import os
import selectors
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from importlib import metadata

BUILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
START_S = 180
CLOSE_S = 60
REPLIES = "TFOS_BENCH_REPLIES"  # a side's environment: the pipe for its replies


class BenchError(Exception):
    """A side that failed, or cannot be set up."""


class Side:
    """A process that does one side's work. A context manager."""

    def __init__(self, name, python, folder):
        self.name = name
        program = os.path.abspath(sys.argv[0])
        logs = os.path.join(BUILD, "bench-logs")
        os.makedirs(logs, exist_ok=True)
        bench = os.path.splitext(os.path.basename(program))[0]
        self._log_path = os.path.join(logs, f"{bench}-{name}.log")
        self._buffer = b""
        self._log = open(self._log_path, "wb")
        work = os.path.join(folder, name)
        os.mkdir(work)
        # Not standard output, to which Spark writes too when it fetches packages.
        self._replies, sender = os.pipe()
        try:
            self._process = subprocess.Popen(
                [python, program, "--side", name],
                cwd=work,
                env={**_environment(python, work), REPLIES: str(sender)},
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(sender,),
                start_new_session=True,
            )
        finally:
            os.close(sender)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._process.stdin.close()
            self._process.wait(CLOSE_S)
        except (OSError, subprocess.TimeoutExpired):
            pass
        _kill_session(self._process.pid)
        self._process.wait()
        os.close(self._replies)
        self._log.close()

    def ask(self, do, timeout_s, **arguments):
        """Calls the side's function ``do`` and returns its result, a dict."""
        request = json.dumps({"do": do, **arguments}) + "\n"
        try:
            self._process.stdin.write(request.encode())
            self._process.stdin.flush()
        except OSError as error:
            raise self._failure(f"is gone before {do!r}: {error}") from error
        reply = json.loads(self._read_line(do, timeout_s))
        if "error" in reply:
            raise self._failure(f"failed in {do!r}: {reply['error']}")
        return reply["result"]

    def _read_line(self, do, timeout_s):
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._failure(f"has not finished {do!r} within {timeout_s} s")
                data = os.read(self._replies, 65536)
                if not data:
                    raise self._failure(f"ended in the middle of {do!r}")
                self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _failure(self, what):
        with open(self._log_path, errors="replace") as log:
            tail = "".join(log.readlines()[-40:])
        return BenchError(f"{self.name} {what}\n--- end of {self._log_path}\n{tail}")


def _environment(python, work):
    """This environment without what would lead a side to another side's packages."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "SPARK_HOME", "SPARK_CONF_DIR", "TF_CONFIG", "VIRTUAL_ENV")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and not name.startswith(("PYSPARK_", "TFOS_"))
    }
    environment.update(
        PYSPARK_PYTHON=python,
        PYSPARK_DRIVER_PYTHON=python,
        SPARK_LOCAL_DIRS=os.path.join(work, "spark"),
        SPARK_LOCAL_IP="127.0.0.1",
        TF_CPP_MIN_LOG_LEVEL="2",
    )
    return environment


def _kill_session(leader):
    """Kills what is left of a side: its JVMs, Python workers and trainers."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if os.getsid(int(entry)) == leader:
                os.kill(int(entry), signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def serve(functions):
    """A side's main loop: answers requests with ``functions`` (by name, keyword arguments in, a dict out) until its input
    ends."""
    replies = os.fdopen(int(os.environ[REPLIES]), "w", buffering=1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": functions[request.pop("do")](**request)}
        except (Exception, SystemExit) as error:  # the original exits where a node failed
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies)


class LocalCluster:
    """A Spark session with executor processes of one core each. A context manager."""

    def __init__(self, memory_mb=2048, executors=2, settings=None):
        from pyspark.sql import SparkSession

        builder = (
            SparkSession.builder.master(f"local-cluster[{executors},1,{memory_mb}]")
            .config("spark.executor.memory", f"{memory_mb}m")
            .config("spark.ui.enabled", "false")
            .config("spark.task.maxFailures", "1")
        )
        for name, value in (settings or {}).items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.context = self.spark.sparkContext
        self.context.setLogLevel("WARN")
        self._application = self.context.applicationId

    def __enter__(self):
        return self

    def __exit__(self, *_):
        import pyspark

        self.spark.stop()
        # Spark keeps each executor's folder below its own installation.
        spark_home = os.path.dirname(pyspark.__file__)
        shutil.rmtree(os.path.join(spark_home, "work", self._application), ignore_errors=True)


def versions():
    """What a side runs with."""
    packages = {"pyspark": metadata.version("pyspark")}
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-cpu-aws"):
        try:
            packages["tensorflow"] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    packages["python"] = "%d.%d" % sys.version_info[:2]
    return packages


def check_same_versions(sides):
    """Both sides must run on the same Spark and TensorFlow for a ratio to mean anything."""
    found = {side.name: side.ask("versions", START_S) for side in sides}
    print(f"versions: {found}", file=sys.stderr)
    for package in ("pyspark", "tensorflow"):
        if len({versions[package] for versions in found.values()}) > 1:
            raise BenchError(f"the sides run different versions of {package}: {found}")


def turns(sides, rounds):
    """The sides in turn; who begins changes from round to round."""
    for index in range(rounds):
        yield from sides if index % 2 == 0 else reversed(sides)


def note(text):
    """Progress, for who watches."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def print_line(bench, case, unit, ours, anchor, anchor_name, goal=None):
    """The result of one case: medians of both sides' measurements; a ratio over 1 is better than the anchor."""
    ours, anchor = statistics.median(ours), statistics.median(anchor)
    ratio = ours / anchor if unit.endswith("/s") else anchor / ours
    line = {
        "bench": bench,
        "case": case,
        "unit": unit,
        "ours": float(f"{ours:.4g}"),
        "anchor": float(f"{anchor:.4g}"),
        "anchor_name": anchor_name,
        "ratio": round(ratio, 3),
        "goal": goal,
        "met": None if goal is None else ratio >= goal,
    }
    print(json.dumps(line), flush=True)


def arguments(description, rounds):
    """The command line that every bench has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds, each side once a round")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    return parser


def main(compete):
    """Runs ``compete(folder)`` with a folder that is gone afterwards; returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="tfos-bench-")
    try:
        compete(folder)
        return 0
    except BenchError as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)

# SPDX-License-Identifier: Apache-2.0
"""Spark contexts with real executor processes, and the check that nothing is left behind by any test."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time

import psutil
import pytest

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
# Of every JVM that the tests start. Most end before what their second compiler makes pays: without it they take half the CPU time.
_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
if os.path.exists(os.path.join(sys.prefix, "spark.jsa")):  # scripts/spark_archive.py makes it
    _options += f" -XX:SharedArchiveFile={sys.prefix}/spark.jsa -Xlog:disable"
os.environ.setdefault("JDK_JAVA_OPTIONS", _options)
# A shell ignores it for what it runs in the background; programs that the tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Inherited by every process that the tests start: suites, and the workers of one, can run side by side.
OWNER = ("TFOS_TESTS_OF", "PYTEST_XDIST_WORKER")
os.environ.setdefault(OWNER[0], str(os.getpid()))


_shared_context = None


def make_context(master, **conf):
    """A SparkContext on loopback; keywords are settings with "." written as "_". It takes the place of the shared one."""
    from pyspark import SparkConf, SparkContext

    stop_shared_context()
    settings = {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g", "spark.driver.extraJavaOptions": "-Dlog4j2.level=ERROR",
        "spark.task.maxFailures": "2", "spark.sql.shuffle.partitions": "4",
    }
    settings.update({name.replace("_", "."): str(value) for name, value in conf.items()})
    context = SparkContext(conf=SparkConf().setMaster(master).setAppName("tfos tests").setAll(list(settings.items())))
    context.setLogLevel("OFF")
    return context


def stop_shared_context():
    global _shared_context
    context, _shared_context = _shared_context, None
    if context is not None:
        context.stop()


@pytest.fixture(scope="module")
def sc():
    """Two executors with one core each; tests share them as long as no test has needed a context of its own.

    Their trainers are forked from a process that has imported TensorFlow; those of other contexts are started anew.
    """
    global _shared_context
    if _shared_context is None:
        _shared_context = make_context("local-cluster[2,1,1024]")
    os.environ["TFOS_PRELOAD"] = "tensorflow"
    yield _shared_context
    del os.environ["TFOS_PRELOAD"]


@pytest.fixture
def start(tmp_path):
    """Starts clusters of nodes on this machine, without Spark."""
    from local_cluster import starting

    with starting(tmp_path) as function:
        yield function


@pytest.fixture(scope="session", autouse=True)
def contexts_end():
    yield
    stop_shared_context()


@pytest.fixture(scope="session")
def connect_session(tmp_path_factory):
    """A session of Spark Connect, whose server has two executors with one core each."""
    for module in ("pyarrow", "pandas", "grpc", "grpc_status"):
        pytest.importorskip(module)
    pytest.importorskip("pyspark", "4.0")  # Spark 3.5 has the server in a jar of its own
    from connect_server import connected

    with connected(tmp_path_factory.mktemp("server")) as session:
        yield session


def pytest_collection_modifyitems(items):
    """Marks the tests that run Spark, and puts those that share its context before those that need another, so that it starts once."""
    contexts = ("sc", "connect_session", "source_spark")
    for item in items:
        if not set(contexts).isdisjoint(item.fixturenames):
            item.add_marker("spark")
    items.sort(key=lambda item: [hasattr(item.module, "make_context"), *(name in item.fixturenames for name in contexts[1:])])


def wait_until(condition, seconds=60, what="the condition"):
    """Polls ``condition`` until it holds and returns what it gave; fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come within {seconds} s"
        time.sleep(0.05)


def free_ports(count):
    """Ports of loopback that nobody has now, all different."""
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def executors():
    """The executors of this process's SparkContext, as psutil has them; not those of a Connect server."""
    from pyspark import SparkContext

    found = []
    for child in psutil.Process(SparkContext._gateway.proc.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            if "--executor-id" in child.cmdline():
                found.append(child)
    return found


def interrupt_when(condition, seconds=60):
    """Presses Ctrl-C, for the main thread, once ``condition`` holds."""
    def interrupt():
        wait_until(condition, seconds, "the moment to interrupt")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


def our_processes():
    """Processes on this machine that the package has started for these tests: nodes, trainers, TensorBoards. A fork server ends with its executor."""
    from tensorflowonspark.launch import node_executable

    node, marks = [node_executable(), "node"], {f"{name}={os.environ[name]}" for name in OWNER if name in os.environ}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            words, (name, *_) = _words_of(pid, "cmdline"), _words_of(pid, "comm")
            if name == "tfos-forkserver\n":
                continue
            if name == "tfos-node\n":  # forked from that, whose command it has
                words = node
            started = words[0] == sys.executable and ("tensorflowonspark.trainer" in words or "tensorboard.main" in words)
            if (started or words[:2] == node) and marks <= set(_words_of(pid, "environ")):
                found.append((int(pid), " ".join(words)))
    return found


def _words_of(pid, file):
    """The command, the environment or the name of a process; read here, since it is done before and after each test."""
    with open(f"/proc/{pid}/{file}", "rb") as content:
        return os.fsdecode(content.read()).split("\0")


def our_sockets():
    """Abstract sockets of ours that this process holds; those of other processes end with them."""
    held = {os.path.basename(target) for target in _descriptor_targets() if target.startswith("socket:")}
    with open("/proc/net/unix") as file:
        rows = [line.split() for line in file if "@tfos-" in line]
    return [row[-1] for row in rows if f"socket:[{row[6]}]" in held]


def _descriptor_targets():
    for name in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue


def our_threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("tfos-")]


def our_memfds():
    """Shared memory of ours that this process still holds."""
    return [target for target in _descriptor_targets() if "memfd:tfos" in target]


@pytest.fixture(autouse=True)
def nothing_left():
    """After each test no process, socket, shared memory or thread of ours is left that was not there before it."""
    kinds = (our_processes, our_sockets, our_memfds, our_threads)
    before = [find() for find in kinds]
    yield
    for find, known in zip(kinds, before):
        def left(find=find, known=known):
            return [one for one in find() if one not in known]

        deadline = time.monotonic() + 30
        while left() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left(), f"left behind: {left()}"

# SPDX-License-Identifier: Apache-2.0
"""The extension's exceptions, arguments, rendezvous, node and trainer, on real processes of this machine."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from local_cluster import READ_ALL, interrupted, open_files
from tensorflowonspark import _tfos, errors
from tensorflowonspark.gpus import GpuPlan
from tensorflowonspark.launch import ClusterMeta, FeedTask, NodeTask, node_executable

KEY = "0" * 64


@pytest.mark.long
def test_tensorflow_may_be_imported_first(tmp_path):
    """TensorFlow's own OpenSSL and zlib are there for every library that is loaded after it."""
    pytest.importorskip("tensorflow")
    program = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import tensorflow
from pathlib import Path
from local_cluster import READ_ALL, starting
with starting(Path({str(tmp_path)!r})) as start:
    cluster = start(READ_ALL)
    cluster.feed(range(1000))
    assert cluster.saved() == list(range(1000))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


# -- exceptions and arguments


def test_exceptions():
    expected = {
        "InvalidError": (ValueError, "INVALID"), "NoMemoryError": (MemoryError, "NO_MEMORY"), "IoError": (OSError, "IO"),
        "NotFoundError": (LookupError, "NOT_FOUND"), "CorruptError": (RuntimeError, "CORRUPT"), "DeniedError": (PermissionError, "DENIED"),
        "TimedOutError": (TimeoutError, "TIMEOUT"), "ClosedError": (ConnectionError, "CLOSED"), "BusyError": (RuntimeError, "BUSY"),
        "UnsupportedError": (RuntimeError, "UNSUPPORTED"),
    }
    assert {*expected, "Error"} == {*errors.__all__}
    found = {name for name in dir(_tfos) if isinstance(getattr(_tfos, name), type) and issubclass(getattr(_tfos, name), _tfos.Error)}
    assert found == {*expected, "Error"}
    assert issubclass(_tfos.Error, RuntimeError) and issubclass(_tfos.NotFoundError, FileNotFoundError)
    for name, (builtin, status) in expected.items():
        class_ = getattr(_tfos, name)
        assert getattr(errors, name) is class_ and class_.__module__ == "tensorflowonspark.errors"
        error = class_("words")
        assert issubclass(class_, builtin) and str(error) == "words" and error.status == status and error.os_errno == 0
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is class_ and str(copy) == "words"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _tfos.Rendezvous(), TypeError, "cluster_id is missing"),
        (lambda: _tfos.Rendezvous(1, KEY, 1), TypeError, r"cluster_id: expected a str, not <class 'int'>"),
        (lambda: _tfos.Rendezvous("c", KEY, "1"), TypeError, "node_count: expected an int"),
        (lambda: _tfos.Rendezvous("c", KEY, True), TypeError, "node_count: expected an int"),
        (lambda: _tfos.Rendezvous("c", KEY, 1.0), TypeError, "node_count: expected an int"),
        (lambda: _tfos.Rendezvous("c", KEY, 0), ValueError, "node_count: expected an int from 1 to 2147483647, not 0"),
        (lambda: _tfos.Rendezvous("c", KEY, 2**70), ValueError, "node_count: expected an int"),
        (lambda: _tfos.Rendezvous("c", KEY, 1, has_evaluator=1), TypeError, "has_evaluator: expected a bool"),
        (lambda: _tfos.Rendezvous("c", KEY, 1, host=b"x"), TypeError, "host: expected a str or None"),
        (lambda: _tfos.Rendezvous("c", KEY, 1, cluster_id="d"), TypeError, "cluster_id was given twice"),
        (lambda: _tfos.Rendezvous("c", KEY, 1, hosts="d"), TypeError, "no argument named 'hosts'"),
        (lambda: _tfos.Rendezvous(*["c"] * 20), TypeError, "takes 12 arguments at most, not 20"),
        (lambda: _tfos.Rendezvous("c\0d", KEY, 1), ValueError, "cluster_id: expected text without a null character"),
        (lambda: _tfos.Rendezvous("c", "12", 1), ValueError, "key"),
        (lambda: _tfos.Rendezvous("c", KEY, 1, 1), ValueError, "ps"),
        (lambda: _tfos.Node("tfos", "{}", "text"), TypeError, "payload: expected bytes"),
        (lambda: _tfos.Node(node_executable(), "{", b""), ValueError, "config"),
        (lambda: _tfos.Node("/no/such/tfos", "{}", b""), LookupError, "/no/such/tfos"),
        (lambda: _tfos.FeedWriter("a", "c", KEY, 0, 0, 0), ValueError, "feed: expected an int from 1"),
        (lambda: _tfos.FeedWriter("a", "c", KEY, 1, -1, 0), ValueError, "partition: expected an int from 0"),
        (lambda: _tfos.find_executor(0), ValueError, "pid: expected an int from 1"),
        (lambda: _tfos.status_query(timeout_ms="x"), TypeError, "timeout_ms: expected an int"),
        (lambda: _tfos.FeedReader(), TypeError, "open_feed"),
        (lambda: _tfos.Trainer(99_999), ValueError, "99999"),
    ],
)
def test_arguments_are_checked_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_integers_of_other_classes_are_taken():
    with _tfos.Rendezvous("numbers", KEY, np.int32(3), np.int64(1), host="127.0.0.1", listen_host="127.0.0.1") as rendezvous:
        assert json.loads(rendezvous.roles()) == {"ps": [0], "worker": [1, 2]}


# -- the rendezvous


@pytest.fixture
def rendezvous():
    with _tfos.Rendezvous("alone", KEY, 2, host="127.0.0.1", listen_host="127.0.0.1") as rendezvous:
        yield rendezvous


def test_rendezvous_times_out_by_name(rendezvous):
    begin = time.monotonic()
    with pytest.raises(_tfos.TimedOutError, match="0 of 2 nodes"):
        rendezvous.wait(_tfos.RUNNING, 300)
    assert time.monotonic() - begin > 0.25
    with pytest.raises(_tfos.TimedOutError, match=r"after 0\.2\d* s have not ended"):
        rendezvous.wait(_tfos.ENDED, 200)
    assert rendezvous.next_event(10) is None
    with pytest.raises(ValueError, match="phase: expected an int from 1 to 4"):
        rendezvous.wait(9, 0)


def test_rendezvous_fails_by_its_driver(rendezvous):
    rendezvous.check()
    with pytest.raises(ValueError, match="status: expected the name of a failure"):
        rendezvous.fail("OK", "x")
    rendezvous.fail("UNSUPPORTED", "no such thing")
    with pytest.raises(_tfos.UnsupportedError, match="no such thing"):
        rendezvous.check()
    with pytest.raises(_tfos.UnsupportedError, match="no such thing"):
        rendezvous.wait(_tfos.RUNNING, -1)
    assert json.loads(rendezvous.status())["state"] == "failed"
    assert json.loads(rendezvous.next_event(1000))["event"] == "failed"


def test_status_query_finds_the_rendezvous(rendezvous):
    assert "alone" in [status["cluster_id"] for status in json.loads(_tfos.status_query())]


def test_signals_end_waits(rendezvous):
    for wait in (lambda: rendezvous.wait(_tfos.RUNNING, -1), lambda: rendezvous.next_event(-1)):
        with interrupted():
            wait()


def test_signals_end_an_agreement_that_nobody_answers():
    program = """
import json, signal, socket, struct, threading
from tensorflowonspark import _tfos, errors

node, own = socket.socketpair()
context = json.dumps({"type": "context"}).encode()
node.sendall(struct.pack(">I", len(context)) + context)
link = _tfos.Trainer(own.detach())

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    link.agree("step", "1")
except KeyboardInterrupt:
    print("interrupted")
threading.Timer(0.2, link.close).start()
try:
    link.agree("next", "1")
except _tfos.ClosedError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("interrupted\ntrainer: it is closed\n", "")


def test_waits_let_other_threads_run_and_end_with_close():
    rendezvous = _tfos.Rendezvous("threads", KEY, 1, host="127.0.0.1", listen_host="127.0.0.1")
    errors = []

    def wait(call):
        try:
            call()
        except _tfos.ClosedError as error:
            errors.append(str(error))

    calls = [lambda: rendezvous.wait(_tfos.RUNNING, -1), lambda: rendezvous.next_event(-1)] * 4
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    rendezvous.close()
    rendezvous.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(errors) == len(calls)
    for call in (rendezvous.check, rendezvous.roles, rendezvous.status, lambda: rendezvous.address):
        with pytest.raises(_tfos.ClosedError, match="rendezvous: it is closed"):
            call()


def test_the_clusters_key_is_in_no_text():
    meta = ClusterMeta(cluster_id="c", key="5ec3e7" * 10, address="driver:1", num_executors=1, num_ps=0, roles={"worker": [0]}, feeding=True,
                       default_fs="file://", working_dir="/", release_port=True, tensorboard=False, log_dir=None, gpus=GpuPlan({}),
                       queues="input")
    tasks = [NodeTask(meta, b"", 600), FeedTask(meta, 1, 600, "input", results=False)]
    texts = [repr(meta), str(meta), f"{[meta]}", repr(meta.public()), *(repr(vars(task)) for task in tasks)]
    assert not [text for text in texts if meta.key in text]
    assert "driver:1" in repr(meta)
    assert pickle.loads(pickle.dumps(meta)) == meta


def test_rendezvous_leaves_nothing():
    def work():
        with _tfos.Rendezvous("again", KEY, 1, host="127.0.0.1", listen_host="127.0.0.1") as rendezvous:
            rendezvous.status()
            with pytest.raises(_tfos.InvalidError):
                rendezvous.__init__("again", KEY, 1)
        with pytest.raises(_tfos.InvalidError):
            _tfos.Rendezvous("again", "key", 1)
        with pytest.raises(_tfos.InvalidError, match="not opened"):
            _tfos.Rendezvous.__new__(_tfos.Rendezvous).status()

    work()
    files, threads = open_files(), len(os.listdir("/proc/self/task"))
    for _ in range(20):
        work()
    assert open_files() == files and len(os.listdir("/proc/self/task")) == threads


# -- node and trainer


def test_trainer_sees_what_the_node_was_given(start):
    cluster = start("""
context = json.loads(link.context)
link.release_port()
link.report(json.dumps({"step": 3}))
agreed = json.loads(link.agree("name", json.dumps({"a": 1}), timeout_ms=20000))
try:
    link.agree("name", "not json")
    refused = None
except _tfos.InvalidError as error:
    refused = str(error)
try:
    link.open_feed("other")
    other = None
except _tfos.NotFoundError as error:
    other = str(error)
save([context["user"], context["job_name"], agreed, refused, other])
""")
    user, job_name, agreed, refused, other = cluster.saved()
    assert user == {"words": "ü"} and job_name == "worker" and agreed == [{"a": 1}]
    assert refused and "other" in other
    messages = []
    while not messages or messages[-1]["type"] not in ("ended", "failed"):
        messages.append(json.loads(cluster.node.next(10_000)))
    assert [message["type"] for message in messages] == ["registered", "running", "ended"]


def test_node_waits_and_detaches(start):
    cluster = start(READ_ALL)
    kinds = [json.loads(cluster.node.next(10_000))["type"] for _ in range(2)]
    assert kinds == ["registered", "running"]
    assert cluster.node.next(50) is None
    with interrupted():
        cluster.node.next(-1)
    cluster.node.detach()
    cluster.node.close()
    with pytest.raises(_tfos.ClosedError):
        cluster.node.next(0)
    assert cluster.feed([1, 2]) == 2
    assert cluster.saved() == [1, 2]


def test_a_handle_belongs_to_one_thread(start):
    cluster = start(READ_ALL)
    for _ in range(2):
        cluster.node.next(10_000)
    inside = threading.Event()

    def wait():
        inside.set()
        with contextlib.suppress(_tfos.Error):
            cluster.node.next(-1)

    thread = threading.Thread(target=wait)
    thread.start()
    inside.wait()
    deadline = time.monotonic() + 10
    with pytest.raises(_tfos.InvalidError, match="another thread is using it"):
        while time.monotonic() < deadline:
            cluster.node.next(0)
    cluster.node.close()
    thread.join(10)
    assert not thread.is_alive()

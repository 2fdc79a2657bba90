# SPDX-License-Identifier: Apache-2.0
"""Streams of the driver that fail or stand still while a node dies: the death is acted upon. Without Spark."""

import contextlib
import io
import logging
import os
import sys
import threading

import pytest
from pyspark import cloudpickle

from local_cluster import Cluster
from tensorflowonspark import _tfos, console, progress
from tensorflowonspark.events import EventPump

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # trainers do not have this module

STATUS = {"progress": {
    "feeding": True, "rows": 1, "epoch": 1, "epochs": 1, "partitions": {"done": 0, "total": None}, "fraction": None, "seconds_left": None,
    "slower": None, "report": None, "rows_per_second": None, "bytes_per_second": None, "ring_fill": None, "straggler": None,
}}


class Raising:
    """As a notebook's stream can be."""

    encoding = "utf-8"

    def write(self, text):
        raise RuntimeError("the kernel has gone")

    def flush(self):
        raise RuntimeError("the kernel has gone")

    def isatty(self):
        raise RuntimeError("the kernel has gone")


class Still:
    """A terminal that has been stopped, until ``go`` is set."""

    def __init__(self):
        self.go = threading.Event()

    def write(self, text):
        self.go.wait(60)

    def flush(self):
        pass

    def isatty(self):
        return True


def ascii_stream():
    return io.TextIOWrapper(io.BytesIO(), "ascii")


def closed_stream():
    stream = io.StringIO()
    stream.close()
    return stream


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return open(writer, "w", buffering=1)


STREAMS = [ascii_stream, closed_stream, broken_pipe, Raising, Still, lambda: None]
IDS = ["ascii", "closed", "broken pipe", "raises", "stands still", "None"]


@contextlib.contextmanager
def replaced(make):
    """A stream in the place of the driver's stdout and stderr, and where its log goes. (pytest has streams of its own for each phase of a test.)"""
    stream, logger = make(), logging.getLogger("tensorflowonspark")
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield stream
    finally:
        logger.removeHandler(handler)
        if isinstance(stream, Still):
            stream.go.set()


@pytest.mark.parametrize("make", STREAMS, ids=IDS)
def test_s74_a_death_is_acted_upon_whatever_the_streams_do(tmp_path, make):
    def die(folder, ctx):
        print("words \u2014 and \U0001f600")
        raise LookupError("dead \u2014")

    failed = threading.Event()
    with contextlib.ExitStack() as stack, replaced(make) as stream:
        cluster = Cluster(tmp_path, stack, die)
        pump = EventPump(cluster.rendezvous, failed.set, lambda: None)
        with pytest.raises(_tfos.Error, match="LookupError: dead"):
            cluster.rendezvous.wait(_tfos.WORKED, 60_000)
        assert failed.wait(30)
        if isinstance(stream, Still):
            stream.go.set()
        pump.close()
    if make is ascii_stream:
        assert b"[worker:0] words \\u2014 and \\U0001f600\n" in stream.buffer.getvalue()


@pytest.mark.parametrize("make", STREAMS, ids=IDS)
@pytest.mark.parametrize("wanted", [None, True])
def test_s74_progress_ends_whatever_its_stream_does(make, wanted):
    with replaced(make), progress.ProgressLine(lambda: STATUS, wanted):
        pass


def test_s74_a_notebook_that_cannot_display(monkeypatch):
    import types

    area = types.ModuleType("IPython.display")
    area.HTML = str
    area.display = lambda *arguments, **options: 1 / 0
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", area)
    with progress.ProgressLine(lambda: STATUS, None):
        pass


def test_s74_a_stream_that_takes_nothing_is_told_of_once(tmp_path, monkeypatch, caplog):
    def speak(folder, ctx):
        print("one\ntwo\nthree")

    with contextlib.ExitStack() as stack, caplog.at_level("WARNING"):
        monkeypatch.setattr(sys, "stdout", closed_stream())
        cluster = Cluster(tmp_path, stack, speak)
        pump = EventPump(cluster.rendezvous, lambda: None, lambda: None)
        cluster.rendezvous.wait(_tfos.WORKED, 60_000)
        pump.close()
    assert [record.getMessage() for record in caplog.records] == [
        "sys.stdout does not take what the nodes print (ValueError: I/O operation on closed file): the executors' logs have it"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_s74_what_cannot_be_encoded_is_escaped(monkeypatch, encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    assert console.show("stdout", "ü \udc80 \U0001f600\n") is None
    assert stream.buffer.getvalue() == "ü \udc80 \U0001f600\n".encode(encoding, "backslashreplace")

# SPDX-License-Identifier: Apache-2.0
"""What a person sees while rows flow: a line on a terminal, a bar in a notebook, lines in a log, scalars in TensorBoard."""

import contextlib
import fcntl
import glob
import os
import struct
import sys
import termios
import threading
import types

import pytest

from conftest import wait_until
from tensorflowonspark import TFCluster, launch, progress
from tensorflowonspark.TFCluster import InputMode

PROGRESS = {
    "feeding": True, "rows": 1234567, "epoch": 2, "epochs": 10, "partitions": {"done": 3, "total": 8}, "fraction": 0.25, "seconds_left": 754.2,
    "slower": "trainer", "report": {"step": 12.0, "loss": 0.12345}, "rows_per_second": 12345.6, "bytes_per_second": 9.61e6, "ring_fill": 0.93,
    "reader_wait": 0.0, "writer_wait": 0.9, "straggler": None,
}
UNKNOWN = dict.fromkeys(PROGRESS) | {"feeding": True, "rows": 0, "partitions": {"done": 0, "total": None}}


class Terminal:
    """A pseudo-terminal in the place of stderr."""

    def __init__(self, columns):
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.file = os.fdopen(slave, "w")
        self._text = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # nobody has it open any more
            while True:
                self._text += os.read(self._master, 4096)

    @property
    def text(self):
        return self._text.decode()

    def close(self):
        self.file.close()
        self._reader.join(10)
        os.close(self._master)


@pytest.fixture
def terminal(request):
    terminal = Terminal(getattr(request, "param", 80))
    yield terminal
    terminal.close()


@pytest.fixture
def notebook(monkeypatch):
    """Stands in for IPython in a kernel; gives what the output area of the cell showed, one after the other."""
    shown = []

    class Handle:
        def update(self, item):
            shown.append(item.data)

    def display(item, display_id):
        assert display_id is True
        shown.append(item.data)
        return Handle()

    module, area = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    area.HTML = lambda data: types.SimpleNamespace(data=data)
    area.display = display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", area)
    return shown


def show(status=PROGRESS, wanted=None, terminal=None):
    """Shows the figures once; on a terminal waits until it has got them."""
    with contextlib.redirect_stderr(terminal.file if terminal else sys.stderr), progress.ProgressLine(lambda: {"progress": status}, wanted):
        pass
    if terminal and wanted is not False:
        wait_until(lambda: terminal.text.endswith("\r\n"))


@pytest.mark.parametrize("terminal", [200], indirect=True)
def test_a_wide_terminal_shows_everything(terminal):
    show(terminal=terminal)
    line = terminal.text.strip()
    assert line == ("[####............]  25%  12,346 rows/s  waiting for trainers  12 min 34 s left  1,234,567 rows  9.6 MB/s  ring 93%  "
                    "epoch 2 of 10  3/8 partitions  step 12  loss 0.1235")


@pytest.mark.parametrize("terminal", [20, 80], indirect=True)
def test_a_narrow_terminal_shows_what_matters_most(terminal, request):
    width = request.node.callspec.params["terminal"]
    show(terminal=terminal)
    line = terminal.text.strip("\r\n")
    assert len(line) == width - 1
    assert line.startswith("[####")
    assert ("  12,346 rows/s  waiting for trainers  12 min 34 s left" in line) == (width == 80)


def test_without_a_total_there_is_no_bar(terminal):
    show(UNKNOWN, terminal=terminal)
    assert terminal.text.strip() == "0 rows"


@pytest.mark.parametrize("seconds, words", [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (3661, "1 h 1 min"), (360000, "100 h 0 min")])
def test_time_left(capfd, seconds, words):
    show({**PROGRESS, "seconds_left": seconds}, wanted=True)
    assert f"  {words} left  " in capfd.readouterr().err


def test_a_log_gets_lines_only_when_asked_for(capfd):
    show()
    assert capfd.readouterr().err == ""
    show(wanted=True)
    assert capfd.readouterr().err.startswith("25%  12,346 rows/s  waiting for trainers  12 min 34 s left  1,234,567 rows  ")


def test_a_notebook_has_a_bar(notebook, capfd):
    show({**PROGRESS, "report": {"<b>": 1.0}})
    assert notebook[0] == ""  # made by the cell's own thread
    assert '<progress value="0.25" max="1"></progress> 25%' in notebook[-1]
    assert "12,346 rows/s · waiting for trainers · 12 min 34 s left · 1,234,567 rows · 9.6 MB/s · ring 93%" in notebook[-1]
    assert "&lt;b&gt; 1" in notebook[-1]
    assert capfd.readouterr().err == ""


def test_a_notebook_without_a_total_has_words_only(notebook):
    show(UNKNOWN)
    assert notebook[-1] == "<div>0 rows</div>"


def test_ipython_in_a_terminal_is_a_terminal(notebook, terminal):
    sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace()
    show(terminal=terminal)
    assert notebook == []
    assert "12,346 rows/s" in terminal.text


def test_progress_can_be_switched_off(terminal, notebook):
    show(wanted=False, terminal=terminal)
    assert terminal.text == "" and notebook == []


# -- of a cluster

def take_all(args, ctx):
    feed, step = ctx.get_data_feed(), 0
    while not feed.should_stop():
        feed.next_batch(10)
        step += 1
        ctx.report(step=step)


class Gate:
    """Lets the rows of an RDD through until there are some, and the rest once the test has seen what it waits for."""

    def __init__(self, path):
        self._path = str(path)

    def open(self):
        with open(self._path, "w"):
            pass

    def __call__(self, row):
        import os
        import time

        deadline = time.monotonic() + 150
        while row >= 20 and not os.path.exists(self._path) and time.monotonic() < deadline:
            time.sleep(0.05)
        return row


def by_value(function):
    """The function as one that pickles by value, since executors do not have this test module."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return function


@pytest.mark.parametrize("terminal", [200], indirect=True)
@pytest.mark.parametrize("kind", ["rdd", "frame"])
def test_train_on_a_terminal(sc, tmp_path, terminal, kind):
    from pyspark.sql import SparkSession

    gate = by_value(Gate(tmp_path / "gate"))

    def watch():
        with contextlib.suppress(AssertionError):  # the test itself looks again
            wait_until(lambda: "waiting for Spark" in terminal.text and "/2 partitions" in terminal.text, 120)
        gate.open()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=InputMode.SPARK) as cluster:
            data = sc.parallelize(range(100), 2).map(gate)
            if kind == "frame":
                data = SparkSession(sc).createDataFrame(data.map(lambda number: (number,)), "number long")
            with contextlib.redirect_stderr(terminal.file):
                cluster.train(data, num_epochs=1)
    finally:
        watcher.join()
    wait_until(lambda: terminal.text.endswith("\r\n"))
    text = terminal.text
    assert "waiting for Spark" in text
    assert " rows/s" in text and " MB/s" in text and "step " in text
    last = text.split("\r")[-2]
    assert last.startswith("[################] 100%  ") and "  100 rows  " in last


def check_records(folder):
    """Reads a run's only event file as TensorFlow does, checksums included."""
    import tensorflow as tf

    [path] = glob.glob(f"{folder}/*tfevents*")
    events = [tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path)]
    assert events[0].file_version == "brain.Event:2"
    assert all(event.summary.value and event.wall_time > 1e9 for event in events[1:])


def test_scalars_in_tensorboard(sc, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    gate = by_value(Gate(tmp_path / "gate"))
    runs = [str(tmp_path / "logs" / "tfos"), str(tmp_path / "logs" / "tfos" / "worker_0")]

    def read(run):
        """The values of each tag, and their steps."""
        events = EventAccumulator(run).Reload()
        return {tag: ([point.value for point in events.Scalars(tag)], [point.step for point in events.Scalars(tag)])
                for tag in events.Tags()["scalars"]}

    def is_waiting(run):
        return os.path.isdir(run) and max(read(run).get("tfos/spark_wait", ([], []))[0], default=0) > 0.25

    def watch():
        with contextlib.suppress(AssertionError):  # the test itself looks again
            wait_until(lambda: all(map(is_waiting, runs)), 120)
        gate.open()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with TFCluster.run(sc, by_value(take_all), None, 1, 0, tensorboard=True, log_dir=str(tmp_path / "logs"),
                           input_mode=InputMode.SPARK) as cluster:
            cluster.train(sc.parallelize(range(100), 2).map(gate), num_epochs=1)
    finally:
        watcher.join()
    for run in runs:
        check_records(run)
        assert is_waiting(run)
        scalars = read(run)
        for tag in ("tfos/ring_fill", "tfos/spark_wait", "tfos/trainer_wait"):
            values, steps = scalars[tag]
            assert all(0 <= value <= 1 for value in values), (run, tag)
            assert steps == sorted(set(steps)), (run, tag)
        assert {"tfos/rows_per_second", "tfos/megabytes_per_second"} < set(scalars), run


@pytest.mark.parametrize("log_dir, path", [
    ("/data/logs", "/data/logs"), ("file:///data/logs", "/data/logs"), ("logs", os.path.join(os.getcwd(), "logs")),
    ("hdfs://namenode/logs", None), ("s3a://bucket/logs", None)])
def test_scalars_go_to_directories_of_this_machine_only(log_dir, path):
    assert launch._local_directory(log_dir) == path

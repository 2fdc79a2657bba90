# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, and what a person then reads: scenarios by their ids, each on real executors with real deaths."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time

import psutil
import pytest

from conftest import our_processes, wait_until
from tensorflowonspark import TFCluster, _tfos
from tensorflowonspark.TFCluster import InputMode

FEED = InputMode.SPARK


def take_all(args, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(10)


def by_value(function):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"num_executors": 1, "num_ps": 1}, ValueError, "leaves no worker"),
        ({"num_executors": 1, "num_ps": 0, "eval_node": True}, ValueError, "evaluator"),
        ({"num_executors": 2, "num_ps": 1, "eval_node": True, "master_node": "chief"}, ValueError, "worker or chief"),
        ({"num_executors": 0, "num_ps": 0}, ValueError, "num_executors"),
        ({"num_executors": 2, "num_ps": -1}, ValueError, "num_ps"),
        ({"num_executors": "2", "num_ps": 0}, TypeError, "num_executors"),
        ({"num_executors": 2, "num_ps": 0, "master_node": "worker"}, ValueError, "master_node"),
        ({"num_executors": 2, "num_ps": 0, "master_node": "chief-1"}, ValueError, "master_node"),
        ({"num_executors": 2, "num_ps": 0, "input_mode": 5}, ValueError, "input_mode"),
        ({"num_executors": 2, "num_ps": 0, "reservation_timeout": 0}, ValueError, "reservation_timeout"),
        ({"num_executors": 2, "num_ps": 0, "map_fun": 3}, TypeError, "map_fun"),
        ({"num_executors": 2, "num_ps": 0, "map_fun": lambda args, ctx: (yield)}, TypeError, "map_fun .* gives a generator"),
        ({"num_executors": 2, "num_ps": 0, "map_fun": lambda args: None}, TypeError, "map_fun .* too many positional"),
    ],
)
def test_bad_arguments_of_run(sc, arguments, error, words):
    arguments.setdefault("map_fun", lambda args, ctx: None)
    with pytest.raises(error, match=words):
        TFCluster.run(sc, tf_args=None, **arguments)


def test_function_that_cannot_be_pickled(sc):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="map_fun cannot be pickled.*lock"):
        TFCluster.run(sc, lambda args, ctx: lock, None, 2, 0)
    with pytest.raises(TypeError, match="tf_args cannot be pickled.*lock"):
        TFCluster.run(sc, lambda args, ctx: None, lock, 2, 0)


def test_bad_arguments_of_feeding(sc):
    with TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=FEED) as cluster:
        with pytest.raises(ValueError, match="num_epochs"):
            cluster.train(sc.parallelize([1]), num_epochs=-1)
        with pytest.raises(ValueError, match="feed_timeout"):
            cluster.train(sc.parallelize([1]), feed_timeout=0)
        with pytest.raises(ValueError, match="unknown queue 'rows'"):
            cluster.train(sc.parallelize([1]), qname="rows")
        with pytest.raises(ValueError, match="takes a DataFrame, an RDD or a DStream, not list"):
            cluster.train([1, 2])
    with pytest.raises(ValueError, match="shut down"):
        cluster.train(sc.parallelize([1]))
    cluster = TFCluster.run(sc, lambda args, ctx: None, None, 1, 0)
    with pytest.raises(ValueError, match="InputMode.SPARK"):
        cluster.train(sc.parallelize([1]))
    cluster.shutdown()


@pytest.mark.long
def test_s01_too_few_executors(sc):
    """About the timeout; says how many registered, on which executors, how many are missing and why; the SparkContext stays usable."""
    start = time.monotonic()
    with pytest.raises(TimeoutError) as caught:
        TFCluster.run(sc, lambda args, ctx: None, None, 3, 0, input_mode=FEED, reservation_timeout=10)
    assert 9 < time.monotonic() - start < 60  # the default is 600
    words = str(caught.value)
    assert "2 of 3" in words and "executor" in words and re.search("slots|spark.executor.instances", words)
    assert sc.parallelize(range(10), 2).sum() == 45


def test_s02_advertised_host(sc, monkeypatch):
    monkeypatch.setenv("TFOS_SERVER_HOST", "localhost")
    with TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=FEED) as cluster:
        assert cluster.cluster_meta["server_addr"].startswith("localhost:")


def test_s03_port_range(sc, monkeypatch):
    """Two clusters fit into two ports; the third names the range and what holds it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        first = probe.getsockname()[1]
    if first > 65000:
        first -= 1000
    ports = f"{first}-{first + 1}"
    monkeypatch.setenv("TFOS_SERVER_PORT", ports)
    with TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=FEED):
        with TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=FEED):
            with pytest.raises(_tfos.BusyError) as caught:
                TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=FEED)
    assert ports in str(caught.value) and str(os.getpid()) in str(caught.value)


@pytest.mark.parametrize(
    "death, words",
    [
        ("os._exit(1)", "exit status 1"),
        ("sys.exit(3)", "exit status 3"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ("ctypes.string_at(0)", "signal 11"),
        ("raise RuntimeError('out of luck')", "RuntimeError: out of luck"),
    ],
)
def test_s11_trainer_dies_while_fed(sc, death, words):
    """Fails at once with the node, the exit status or signal, and the last lines written."""

    def die(args, ctx):
        import ctypes  # noqa: F401  the deaths use it
        import os  # noqa: F401
        import sys

        feed = ctx.get_data_feed()
        for _ in range(10):
            feed.next_batch(5)
        if ctx.task_index == 0:
            print("last words", file=sys.stderr)
            exec(args)
        while not feed.should_stop():
            feed.next_batch(5)

    start = time.monotonic()
    with pytest.raises(_tfos.Error) as caught:
        with TFCluster.run(sc, die, death, 2, 0, input_mode=FEED) as cluster:
            cluster.train(sc.parallelize(range(1000000), 4), num_epochs=1)
    assert time.monotonic() - start < 300  # long before feed_timeout
    assert "worker:0" in str(caught.value) and words in str(caught.value) and "last words" in str(caught.value)


@pytest.mark.long
def test_s12_slow_consumer_then_stopped_one(sc):
    """Progress renews the timeout; without it feeding fails and shows the stack of the trainer's Python. Time counts once a row has been taken."""

    def crawl(args, ctx):
        import time

        feed = ctx.get_data_feed()
        for _ in range(args["steps"]):
            feed.next_batch(10)
            time.sleep(0.5)

        def stuck_here():
            while True:
                time.sleep(0.1)

        if args["stop"]:
            stuck_here()

    def begin(cluster, row):
        cluster.train(sc.parallelize([row], 1), num_epochs=1)
        wait_until(lambda: cluster._status()["nodes"][0].get("rows_read"), 120, "the first row's reading")

    with TFCluster.run(sc, crawl, {"steps": 13, "stop": False}, 1, 0, input_mode=FEED) as cluster:
        begin(cluster, 0)
        cluster.train(sc.parallelize(range(120), 1), num_epochs=1, feed_timeout=3)
    with pytest.raises(_tfos.Error) as caught:
        with TFCluster.run(sc, crawl, {"steps": 2, "stop": True}, 1, 0, input_mode=FEED) as cluster:
            begin(cluster, b"x")
            cluster.train(sc.parallelize([b"x" * 100000] * 1000, 1), num_epochs=1, feed_timeout=3)
    assert "stuck_here" in str(caught.value), str(caught.value)


@pytest.mark.long
def test_s17_one_result_too_few(sc):
    """The error names the partition and both counts. Of one row the result is right, so that the trainers run before time counts."""

    def short(args, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            rows = feed.next_batch(100)
            if rows:
                feed.batch_results(rows[:-1] or rows)

    def long(args, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            rows = feed.next_batch(100)
            if rows:
                feed.batch_results(rows + rows[1:])

    for function, count in ((short, "9"), (long, "19")):
        with pytest.raises(Exception) as caught:
            with TFCluster.run(sc, function, None, 1, 0, input_mode=FEED) as cluster:
                assert cluster.inference(sc.parallelize([0], 1)).collect() == [0]
                cluster.inference(sc.parallelize(range(10), 1), feed_timeout=2).collect()
        words = str(caught.value)
        assert "partition 0" in words and "10" in words and count in words


@pytest.mark.long
def test_s18_memory_stays_bounded(sc):
    """A partition of 2M rows of 1 KB and a slow consumer: a process that is not the user's takes less than 256 MB for it."""

    def slow(args, ctx):
        import time

        feed = ctx.get_data_feed()
        rows = 0
        while rows < 200000:
            rows += len(feed.next_batch(1000))
            time.sleep(0.01)
        feed.terminate()

    first, peak = {}, {}  # bytes; a node that was forked begins with its parent's pages
    done = threading.Event()

    def watch():
        while not done.wait(0.1):
            for pid, words in our_processes():
                if "node" in words and "trainer" not in words:
                    try:
                        size = psutil.Process(pid).memory_info().rss
                        peak[pid] = max(peak.get(pid, 0), size - first.setdefault(pid, size))
                    except psutil.NoSuchProcess:
                        pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with TFCluster.run(sc, slow, None, 1, 0, input_mode=FEED) as cluster:
            rows = sc.parallelize([0], 1).flatMap(lambda _: (b"%1024d" % i for i in range(2000000)))
            cluster.train(rows, num_epochs=1)
    finally:
        done.set()
        watcher.join()
    assert peak and max(peak.values()) < 256 << 20


def test_s21_task_retried_after_half_its_partition(sc, tmp_path):
    """Spark runs the feeding task again: no row twice, none lost."""
    flag = str(tmp_path / "failed-once")

    def rows(index, _):
        import os

        for i in range(2000):
            if index == 1 and i == 1000 and not os.path.exists(flag):
                open(flag, "w").close()
                raise OSError("the disk hiccups")
            yield (b"%08d" % (index * 2000 + i)) * 200

    def count(args, ctx):
        import json

        feed = ctx.get_data_feed()
        seen = []
        while not feed.should_stop():
            seen += [int(row[:8]) for row in feed.next_batch(50)]
        with open(f"{args}/rows-{ctx.executor_id}", "w") as file:
            json.dump(seen, file)

    import json

    with TFCluster.run(sc, count, str(tmp_path), 2, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize(range(4), 4).mapPartitionsWithIndex(rows), num_epochs=1)
    assert os.path.exists(flag)
    seen = sum((json.loads((tmp_path / f"rows-{i}").read_text()) for i in range(2)), [])
    assert sorted(seen) == list(range(8000))


def test_s74_a_death_ends_a_job_whose_tasks_compute(sc, tmp_path):
    """The driver's stdout has been closed, and the tasks that feed are busy with the user's code."""
    flag = str(tmp_path / "computing")

    def die(args, ctx):
        import os
        import time

        while not os.path.exists(flag):
            time.sleep(0.05)
        print("one line")
        raise LookupError("no more")

    def rows(_):
        import time

        open(flag, "w").close()
        time.sleep(3600)
        yield 1

    with open(os.devnull, "w") as closed:
        pass
    with pytest.raises(_tfos.Error, match="LookupError: no more"), contextlib.redirect_stdout(closed):
        with TFCluster.run(sc, die, None, 1, 0, input_mode=FEED) as cluster:
            cluster.train(sc.parallelize([0], 1).flatMap(rows), num_epochs=1)


def test_s76_a_task_s_exception_that_spark_cannot_send(sc):
    """Of a lone surrogate in it pyspark's worker dies, and Spark waits for ever."""
    def fail(row):
        raise LookupError("caf\udce9")

    with TFCluster.run(sc, by_value(take_all), None, 1, 0, input_mode=FEED) as cluster:
        with pytest.raises(Exception, match=r"LookupError: caf\\udce9"):
            cluster.train(sc.parallelize([1], 1).map(fail), num_epochs=1)
        with pytest.raises(Exception, match=r"LookupError: caf\\udce9"):
            cluster.inference(sc.parallelize([1], 1).map(fail)).collect()


def test_rows_that_change_shape_are_named(sc):
    """next_arrays refuses them with the partition, the row and the column."""

    def arrays(args, ctx):
        feed = ctx.get_data_feed()
        while feed.next_arrays(10) is not None:
            pass

    rows = [([1.0, 2.0], 1)] * 14 + [([1.0, 2.0, 3.0], 1)] * 3
    with pytest.raises(_tfos.Error) as caught:
        with TFCluster.run(sc, arrays, None, 1, 0, input_mode=FEED) as cluster:
            cluster.train(sc.parallelize(rows, 1), num_epochs=1)
    words = str(caught.value)
    assert "partition 0" in words and "row 14" in words and "column 0" in words


def test_executor_without_a_module(sc):
    """The error says which Python lacks what."""

    def needs(args, ctx):
        import tensorflow_that_is_not_there  # noqa: F401

    with pytest.raises(_tfos.Error) as caught:
        TFCluster.run(sc, needs, None, 2, 0).shutdown()
    assert "install 'tensorflow_that_is_not_there'" in str(caught.value) and sys.executable in str(caught.value)


def test_s08_import_needs_neither_tensorflow_nor_setuptools():
    """The package imports where TensorFlow, pkg_resources and setuptools are missing."""
    program = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "pkg_resources", "setuptools", "keras", "tf_keras", "six", "packaging"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from tensorflowonspark import TFCluster, TFNode, TFSparkNode, TFManager, compat, util, gpu_info, dataset
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_s51_s52_strangers_at_the_rendezvous(sc, caplog):
    """Garbage and wrong keys are refused while the cluster works; a wrong key is logged with its address."""
    import pickle

    with caplog.at_level("WARNING"):
        with TFCluster.run(sc, by_value(take_all), None, 2, 0, input_mode=FEED) as cluster:
            address = cluster.cluster_meta["server_addr"]
            host, _, port = address.rpartition(":")
            strangers = []
            for payload in (pickle.dumps({"type": "QUERY"}), os.urandom(4096), b"\xff\xff\xff\xff", b""):
                for _ in range(50):
                    stranger = socket.create_connection((host, int(port)), timeout=5)
                    stranger.sendall(payload)
                    strangers.append(stranger)
            with pytest.raises(_tfos.DeniedError):
                _tfos.FeedWriter(address, cluster.cluster_id, "00" * 32, 1, 0, 0)
            cluster.train(sc.parallelize(range(1000), 4), num_epochs=1, feed_timeout=60)
            wait_until(lambda: "127.0.0.1:" in caplog.text, 60, "the log line of the wrong key")
            for stranger in strangers:
                stranger.close()


@pytest.mark.long
def test_driver_killed(tmp_path):
    """When the driver is killed, nodes and trainers end by themselves."""
    program = tmp_path / "driver.py"
    program.write_text(f"""
import sys, time
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from conftest import make_context
from tensorflowonspark import TFCluster
def forever(args, ctx):
    import time
    open(args + "/" + str(ctx.executor_id), "w").close()
    while True:
        time.sleep(1)
sc = make_context("local-cluster[2,1,1024]")
TFCluster.run(sc, forever, {str(tmp_path)!r}, 2, 0, input_mode=TFCluster.InputMode.SPARK)
time.sleep(600)
""")
    driver = subprocess.Popen([sys.executable, str(program)])
    try:
        wait_until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists(), 300, "both trainers")
        assert len(our_processes()) == 4
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: not our_processes(), 60, "the end of nodes and trainers")

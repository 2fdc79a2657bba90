# SPDX-License-Identifier: Apache-2.0
"""The main path on real executors: roles, context, feeding, inference, datasets, output, several clusters."""

import contextlib
import json
import os
import subprocess
import threading
import time

import numpy as np
import psutil
import pytest

from conftest import wait_until
from tensorflowonspark import TFCluster, _tfos
from tensorflowonspark.TFCluster import InputMode

FEED = InputMode.SPARK


def read_all(folder):
    """What each node wrote as JSON into ``folder``, by file name."""
    return {name: json.loads((folder / name).read_text()) for name in sorted(os.listdir(folder))}


def sum_rows(args, ctx):
    """Reads all rows in batches; writes their number, sum and the batches' sizes."""
    import json

    feed = ctx.get_data_feed()
    sizes, total = [], 0
    while not feed.should_stop():
        rows = feed.next_batch(args["batch"])
        sizes.append(len(rows))
        total += sum(rows)
    with open(f"{args['out']}/{ctx.job_name}-{ctx.task_index}", "w") as file:
        json.dump({"sizes": sizes, "total": total}, file)


def local(function):
    """The function as one that pickles by value, since executors do not have this test module."""
    import sys

    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


def test_context_and_roles(sc, tmp_path):
    """Each node sees its role, the whole spec, TF_CONFIG and the driver's directories."""

    def describe(args, ctx):
        import json
        import os
        import sys

        config = json.loads(os.environ["TF_CONFIG"])
        assert sys.argv == args
        with open(f"{args[0]}/{ctx.executor_id}", "w") as file:
            json.dump({"job": ctx.job_name, "index": ctx.task_index, "spec": ctx.cluster_spec, "workers": ctx.num_workers,
                       "fs": ctx.defaultFS, "dir": ctx.working_dir, "path": ctx.absolute_path("a/b"), "config": config,
                       "cuda": os.environ["CUDA_VISIBLE_DEVICES"], "worker_num": ctx.worker_num}, file)

    cluster = TFCluster.run(sc, describe, [str(tmp_path)], 2, 0, master_node="chief")
    info = cluster.cluster_info
    cluster.shutdown()
    nodes = read_all(tmp_path)
    assert [(nodes[i]["job"], nodes[i]["index"]) for i in "01"] == [("chief", 0), ("worker", 0)]
    assert nodes["0"]["spec"] == nodes["1"]["spec"] == {n["job_name"]: [f"{n['host']}:{n['port']}"] for n in info}
    for i in "01":
        node = nodes[i]
        assert node["workers"] == 2 and node["worker_num"] == int(i) and node["cuda"] == ""
        assert node["fs"] == "file://" and node["dir"] == os.getcwd()
        assert node["path"] == f"file://{os.getcwd()}/a/b"
        assert node["config"]["cluster"] == node["spec"]
        assert node["config"]["task"] == {"type": node["job"], "index": node["index"]}


def serve_or_work(args, ctx):
    """A parameter server serves for ever; a worker returns once the first one does."""
    import os
    import threading
    import time

    open(f"{args}/{ctx.job_name}{ctx.task_index}", "w").close()
    if ctx.job_name == "ps":
        threading.Event().wait()
    while not os.path.exists(f"{args}/ps0"):
        time.sleep(0.05)


def test_ps_is_stopped_after_the_workers(sc, tmp_path):
    """A parameter server that serves for ever ends with the cluster and is no failure."""

    cluster = TFCluster.run(sc, local(serve_or_work), str(tmp_path), 2, 1)
    assert [n["job_name"] for n in cluster.cluster_info] == ["ps", "worker"]
    cluster.shutdown()
    assert sorted(os.listdir(tmp_path)) == ["ps0", "worker0"]


def test_a_feed_may_be_made_on_nodes_that_are_not_fed(sc):
    """Programs make it before they look at their role; to read it there is an error that says why. As on parameter servers, so without feeding."""

    def work(args, ctx):
        from tensorflowonspark import TFNode

        feed = TFNode.DataFeed(ctx.mgr)
        try:
            feed.next_batch(1)
        except LookupError as error:
            assert "not fed by Spark" in str(error)
        else:
            raise AssertionError("there are rows")

    TFCluster.run(sc, work, None, 2, 0, input_mode=InputMode.TENSORFLOW).shutdown()


@pytest.mark.long
def test_ps_in_the_driver(sc, tmp_path):
    """driver_ps_nodes needs executors for the workers only."""

    cluster = TFCluster.run(sc, local(serve_or_work), str(tmp_path), 3, 1, driver_ps_nodes=True)
    cluster.shutdown()
    assert sorted(os.listdir(tmp_path)) == ["ps0", "worker0", "worker1"]


@pytest.mark.long
def test_nodes_have_the_grace_after_the_feed(sc, tmp_path):
    """The worker runs beyond the timeout, and the evaluator beyond the worker; who is ready before is not waited for."""

    def work(args, ctx):
        import os
        import time

        if ctx.job_name == "worker":
            feed = ctx.get_data_feed()
            while not feed.should_stop():
                feed.next_batch(10)
            time.sleep(2)
        while ctx.job_name == "evaluator" and not os.path.exists(f"{args}/worker"):
            time.sleep(0.1)
        time.sleep(1)
        open(f"{args}/{ctx.job_name}", "w").close()

    cluster = TFCluster.run(sc, work, str(tmp_path), 2, 0, input_mode=FEED, eval_node=True)
    cluster.shutdown(grace_secs=600, timeout=0.5)
    assert sorted(os.listdir(tmp_path)) == ["evaluator", "worker"]


def test_port_is_kept_until_it_is_released(sc):
    """With release_port=False ctx.tmp_socket is bound to TensorFlow's port; a server that shares no port can have it after release_port()."""

    def take_port(args, ctx):
        import socket

        port = ctx.tmp_socket.getsockname()[1]
        assert ctx.cluster_spec[ctx.job_name][ctx.task_index].endswith(f":{port}")
        server = socket.socket()
        try:
            server.bind(("0.0.0.0", port))
            raise AssertionError("the port is free")
        except OSError:
            pass
        ctx.release_port()
        assert ctx.tmp_socket is None
        server.bind(("0.0.0.0", port))

    def have_no_socket(args, ctx):
        assert ctx.tmp_socket is None

    TFCluster.run(sc, take_port, None, 2, 0, release_port=False).shutdown()
    TFCluster.run(sc, have_no_socket, None, 1, 0).shutdown()


def test_every_row_once_an_epoch(sc, tmp_path):
    with TFCluster.run(sc, local(sum_rows), {"out": str(tmp_path), "batch": 7}, 2, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize(range(1000), 5), num_epochs=3)
    nodes = read_all(tmp_path)
    assert len(nodes) == 2
    assert sum(sum(node["sizes"]) for node in nodes.values()) == 3000
    assert sum(node["total"] for node in nodes.values()) == 3 * sum(range(1000))
    for node in nodes.values():
        assert all(size == 7 for size in node["sizes"][:-1]), "only the last batch may be short"


def test_a_cluster_that_refuses_pickles(sc, tmp_path):
    """Columns are fed; what would be pickled fails with what to do."""
    cluster = TFCluster.run(sc, local(sum_rows), {"out": str(tmp_path), "batch": 100}, 1, 0, input_mode=FEED, allow_pickle=False)
    try:
        cluster.train(sc.parallelize(range(100), 2), 1)
        with pytest.raises(Exception, match='column 0 is of type "pickle".*allow_pickle'):
            cluster.train(sc.parallelize([{1, 2}], 1), 1)
    finally:
        with contextlib.suppress(Exception):
            cluster.shutdown()


def test_rows_keep_their_types(sc, tmp_path):
    """Whatever can be pickled arrives equal and of the same type."""
    import datetime
    import decimal

    rows = [([1.5, -0.0], 3), ("text", b"bytes"), {"a": [1, 2], "b": None}, np.arange(6, dtype="f4").reshape(2, 3), 7, True, None,
            decimal.Decimal("1.10"), datetime.date(2026, 1, 2), {"nested": {"x": (1, "y")}}, float("inf"), 1 << 80, set([1])]

    def check(args, ctx):
        import numpy

        feed = ctx.get_data_feed()
        got = []
        while not feed.should_stop():
            got += feed.next_batch(4)
        assert len(got) == len(args), (len(got), len(args))
        for want, have in zip(args, got):
            assert type(want) is type(have), (want, have)
            if isinstance(want, numpy.ndarray):
                assert want.dtype == have.dtype and numpy.array_equal(want, have)
            else:
                assert want == have and repr(want) == repr(have)

    with TFCluster.run(sc, check, rows, 1, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize(rows, 1), num_epochs=1)


def test_next_arrays_and_input_mapping(sc, tmp_path):
    def check(args, ctx):
        import numpy

        feed = ctx.get_data_feed()
        images, labels = [], []
        while True:
            arrays = feed.next_arrays(8)
            if arrays is None:
                break
            images.append(arrays[0])
            labels.append(arrays[1])
        assert [len(a) for a in images] == [8, 8, 4]
        images, labels = numpy.concatenate(images), numpy.concatenate(labels)
        assert images.dtype == numpy.float64 and labels.dtype == numpy.int64
        order = numpy.argsort(labels)
        assert numpy.array_equal(labels[order], numpy.arange(20))
        assert numpy.array_equal(images[order], numpy.arange(20)[:, None] * numpy.ones(3) / 2)

    with TFCluster.run(sc, check, None, 1, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize([([i / 2] * 3, i) for i in range(20)], 3), num_epochs=1)

    def check_mapping(args, ctx):
        feed = ctx.get_data_feed(input_mapping={"b_label": "y", "a_image": "x"})
        batch = feed.next_batch(4)
        assert batch == {"x": [[0.0], [0.5], [1.0], [1.5]], "y": [0, 1, 2, 3]}, batch
        arrays = feed.next_arrays(4)
        assert sorted(arrays) == ["x", "y"] and arrays["x"].shape == (2, 1)

    with TFCluster.run(sc, check_mapping, None, 1, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize([([i / 2], i) for i in range(6)], 1), num_epochs=1)


def square_rows(args, ctx):
    """Answers each row by its square, in batches of five."""
    from tensorflowonspark import TFNode

    feed = TFNode.DataFeed(ctx.mgr, False)
    while not feed.should_stop():
        batch = feed.next_batch(5)
        if batch:
            feed.batch_results([x * x for x in batch])


def test_s16_inference_partitions_of_all_sizes(sc):
    """As many results as rows, in order, partition by partition; the RDD may be computed twice."""
    sizes = [0, 1, 7, 10, 11]
    rows = sc.parallelize(sizes, len(sizes)).mapPartitionsWithIndex(
        lambda index, counts: (1000 * index + i for i in range(next(counts))))
    want = [[(1000 * p + i) ** 2 for i in range(size)] for p, size in enumerate(sizes)]
    with TFCluster.run(sc, local(square_rows), None, 2, 0, input_mode=FEED) as cluster:
        results = cluster.inference(rows)
        assert results.glom().collect() == want
        assert results.glom().collect() == want


@pytest.mark.long
def test_s13_function_returns_without_reading(sc):
    """train() ends cleanly and skips the rest."""
    cluster = TFCluster.run(sc, lambda args, ctx: None, None, 2, 0, input_mode=FEED)
    cluster.train(sc.parallelize([[0.0] * 1000] * 20000, 8), num_epochs=1, feed_timeout=60)
    cluster.shutdown()


def test_s13_function_terminates_after_some_steps(sc):
    def some(args, ctx):
        feed = ctx.get_data_feed()
        for _ in range(3):
            assert len(feed.next_batch(10)) == 10
        feed.terminate()
        assert feed.should_stop()

    cluster = TFCluster.run(sc, some, None, 2, 0, input_mode=FEED)
    cluster.train(sc.parallelize([[0.0] * 1000] * 20000, 8), num_epochs=0, feed_timeout=60)
    assert json.loads(cluster.server.status())["feed"] < 10, "nobody wanted the later epochs"
    cluster.shutdown()


def test_s42_output_reaches_the_driver(sc, capfd):
    """Lines come with the node's name."""

    def speak(args, ctx):
        import sys

        print("hello from", ctx.task_index)
        print("careful", file=sys.stderr)

    TFCluster.run(sc, speak, None, 2, 0).shutdown()
    out, err = capfd.readouterr()
    assert "[worker:0] hello from 0" in out and "[worker:1] hello from 1" in out
    assert "[worker:1] careful" in err


def read_by_queues(args, ctx):
    """Rows one by one, as programs of TensorFlowOnSpark 1 read them."""
    rows, results, total = ctx.mgr.get_queue("input"), ctx.mgr.get_queue("output"), 0
    while True:
        row = rows.get(block=True)
        rows.task_done()
        if row is None:
            return total
        total += row
        if args == "infer":
            results.put(row * 2)


@pytest.mark.long
def test_s43_clusters_at_once_from_several_threads(sc):
    """Each thread has a cluster, which it feeds and shuts down; one fails, which is no concern of the others."""
    told, barrier = {}, threading.Barrier(2)

    def work(name, function):
        try:
            with TFCluster.run(sc, local(function), name, 1, 0, input_mode=FEED) as cluster:
                barrier.wait(60)
                for _ in range(2):
                    cluster.train(sc.parallelize(range(100), 2), 1)
                cluster.shutdown()
                told[name] = cluster.results()
        except _tfos.Error as error:
            told[name] = str(error)

    for functions in ((read_by_queues, read_by_queues), (read_by_queues, fail_at_once)):
        threads = [threading.Thread(target=work, args=(name, function)) for name, function in zip("ab", functions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert told.pop("a") == [9900]
        ending = told.pop("b")
        assert ending == [9900] if functions[1] is read_by_queues else "at once" in ending
    with TFCluster.run(sc, local(read_by_queues), "infer", 1, 0, input_mode=FEED) as cluster:
        assert sorted(cluster.inference(sc.parallelize(range(10), 2)).collect()) == list(range(0, 20, 2))


def fail_at_once(args, ctx):
    raise ValueError("at once")


@pytest.mark.long
def test_s43_clusters_after_a_failed_one(sc):
    """One SparkContext serves a cluster that fails and two more after it."""

    def fail(args, ctx):
        raise ValueError("not today")

    with pytest.raises(Exception, match="not today"):
        TFCluster.run(sc, fail, None, 2, 0).shutdown()
    for _ in range(2):
        with TFCluster.run(sc, local(square_rows), None, 2, 0, input_mode=FEED) as cluster:
            assert cluster.inference(sc.parallelize(range(20), 2)).sum() == sum(i * i for i in range(20))


def test_agree_gives_everyone_all_values(sc, tmp_path):
    def agree(args, ctx):
        import json

        values = [ctx.agree(f"step/{i}", {"node": ctx.executor_id, "i": i}) for i in range(500)]
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            json.dump(values, file)

    TFCluster.run(sc, agree, str(tmp_path), 2, 0).shutdown()
    want = [[{"node": n, "i": i} for n in range(2)] for i in range(500)]
    assert read_all(tmp_path) == {"0": want, "1": want}


def in_step(args, ctx):
    """For each way in turn makes a dataset and iterates it, epoch by epoch; writes each step's number of real rows and their labels."""
    import json

    written = []
    for uneven in args["ways"]:
        dataset = ctx.get_dataset(args["batch"], uneven=uneven)
        epochs = []
        for _ in range(args["epochs"]):
            steps = []
            for element in dataset:
                weights = element[2].numpy() if uneven == "pad" else None
                rows = element[1].numpy().tolist()
                steps.append(rows if weights is None else [row for row, w in zip(rows, weights) if w == 1])
                assert uneven not in ("pad", "stop") or len(rows) == args["batch"]
            epochs.append(steps)
        written.append(epochs)
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(written, file)


@pytest.mark.long
def test_s14_uneven_partitions_in_step(sc, tmp_path):
    """103 rows, two workers: equal numbers of steps in each epoch, every row once; with "stop" none twice, and steps as long as both
    have whole batches."""
    def deal(layout):
        starts = [sum(layout[:i]) for i in range(len(layout))]
        return sc.parallelize(list(zip(starts, layout)), len(layout)).flatMap(
            lambda part: [([float(i)] * 4, i) for i in range(part[0], part[0] + part[1])])

    ways, layouts = ["pad", "join", "stop"], [[70, 33], [100, 3, 0]]
    args = {"out": str(tmp_path), "batch": 10, "ways": ways, "epochs": 2 * len(layouts)}
    with TFCluster.run(sc, local(in_step), args, 2, 0, input_mode=FEED) as cluster:
        for _ in ways:
            for layout in layouts:
                cluster.train(deal(layout), num_epochs=2)
    nodes = read_all(tmp_path)
    for way, *trainings in zip(ways, *nodes.values()):
        for parts in zip(*trainings):
            seen = [row for steps in parts for step in steps for row in step]
            assert len({len(steps) for steps in parts}) == 1
            assert len(seen) == len(set(seen)) == (103 if way != "stop" else 20 * len(parts[0]))


def test_dataset_alone_and_stopping(sc, tmp_path):
    rows = sc.parallelize([([float(i)] * 4, i) for i in range(25)], 1)
    args = {"out": str(tmp_path), "batch": 10, "ways": [None, "stop"], "epochs": 2}
    with TFCluster.run(sc, local(in_step), args, 1, 0, input_mode=FEED) as cluster:
        for _ in args["ways"]:
            cluster.train(rows, num_epochs=2)
    alone, stopping = read_all(tmp_path)["0"]
    assert [[len(step) for step in epoch] for epoch in alone] == [[10, 10, 5]] * 2
    assert [[len(step) for step in epoch] for epoch in stopping] == [[10, 10]] * 2


def test_s73_a_process_forked_from_the_driver_ends_alone(sc, tmp_path):
    """It leaves the with statement, or shuts the cluster down; both are the driver's own."""
    with TFCluster.run(sc, local(sum_rows), {"batch": 10, "out": str(tmp_path)}, 1, 0, input_mode=FEED) as cluster:
        pids = []
        for leave in (lambda: cluster.__exit__(SystemExit, SystemExit(0), None), cluster.shutdown):
            pids.append(os.fork())
            if pids[-1] == 0:
                try:
                    leave()
                except _tfos.InvalidError as error:
                    os._exit(0 if "was forked from process" in str(error) else 2)
                os._exit(1)
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [1, 0]
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1)
    assert read_all(tmp_path)["worker-0"]["total"] == sum(range(100))


def test_s86_numbers_of_numpy_and_pandas(sc, tmp_path):
    """``len(df) // np.int64(2)`` and other integers of numpy, as any argument."""
    import pandas as pd

    def work(args, ctx):
        import json

        feed = ctx.get_data_feed(train_mode=args["true"])
        total = sum(feed.next_batch(args["two"])) + sum(feed.next_arrays(args["two"]).tolist())
        while not feed.should_stop():
            total += sum(feed.next_batch(args["two"]))
        ctx.report(total=args["two"])
        with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
            json.dump([total, ctx.agree("two", args["two"], timeout=np.int8(100))], file)

    two = pd.Series([5]).iloc[0] // np.int64(2)
    args = {"two": two, "true": np.True_, "out": str(tmp_path)}
    cluster = TFCluster.run(sc, local(work), args, two, np.int8(0), tensorboard=np.False_, input_mode=np.int64(FEED), driver_ps_nodes=np.False_,
                            reservation_timeout=np.float32(120), eval_node=np.False_, release_port=np.True_)
    cluster.train(sc.parallelize(range(20), 2), num_epochs=two, feed_timeout=np.int8(100), progress=np.False_, shuffle=np.False_)
    assert cluster.inference(sc.parallelize(range(20), 2), np.int8(100)) is not None
    cluster.shutdown(timeout=np.int8(100))
    written = read_all(tmp_path).values()
    assert sum(total for total, _ in written) == 2 * sum(range(20)) and [agreed for _, agreed in written] == [[2, 2]] * 2


def test_status_command_shows_a_running_cluster(sc):
    from tensorflowonspark.launch import node_executable

    def report(args, ctx):

        ctx.report(step=4, loss=0.5)
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(10)

    with TFCluster.run(sc, report, None, 2, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1)

        def reported():
            text = subprocess.run([node_executable(), "status", "--json"], capture_output=True, text=True, check=True).stdout
            status = next(c for c in json.loads(text) if c["cluster_id"] == cluster.cluster_id)
            rows = sum(node["rows_read"] for node in status["nodes"])
            done = rows == 100 and all(node["report"] == {"step": 4, "loss": 0.5} for node in status["nodes"])
            return status if done else None

        status = wait_until(reported, 60, "the figures of both nodes")
        assert [node["state"] for node in status["nodes"]] == ["running"] * 2
        human = subprocess.run([node_executable(), "status"], capture_output=True, text=True, check=True).stdout
        assert "worker:0" in human and "worker:1" in human and cluster.cluster_id in human


def test_progress_line(sc, tmp_path, capfd):
    with TFCluster.run(sc, local(sum_rows), {"out": str(tmp_path), "batch": 10}, 1, 0, input_mode=FEED) as cluster:
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1, progress=True)
    assert "100 rows" in capfd.readouterr().err


def test_s09_start_method_spawn(sc):
    """The function may use multiprocessing with the spawn method."""

    def pool(args, ctx):
        import math
        import multiprocessing

        with multiprocessing.get_context("spawn").Pool(1) as workers:
            assert workers.map(math.sqrt, [4.0, 9.0]) == [2.0, 3.0]

    TFCluster.run(sc, pool, None, 1, 0).shutdown()


@pytest.mark.long
def test_s78_tensorboard_address(sc, tmp_path):
    """It looks at the very folder."""
    import urllib.request

    folder = tmp_path / "a #b?%20[1]{port}"

    def wait_for_end(args, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(1)

    with TFCluster.run(sc, wait_for_end, None, 2, 0, tensorboard=True, log_dir=folder, input_mode=FEED) as cluster:
        url = cluster.tensorboard_url()
        assert url is not None
        assert b"TensorBoard" in urllib.request.urlopen(url, timeout=10).read()
        assert json.load(urllib.request.urlopen(f"{url}/data/environment", timeout=10))["data_location"] == str(folder)
        [node] = [node for node in cluster.cluster_info if node["tb_pid"]]
        assert "tensorboard" in " ".join(psutil.Process(node["tb_pid"]).cmdline()) and url.endswith(f":{node['tb_port']}")


def test_ctrl_c_like_cancel_ends_the_nodes(sc):
    """An error between run() and shutdown() inside `with` stops the nodes."""

    def forever(args, ctx):
        import time

        while True:
            time.sleep(1)

    start = time.monotonic()
    with pytest.raises(KeyError):
        with TFCluster.run(sc, forever, None, 2, 0, input_mode=FEED):
            raise KeyError("user code")
    assert time.monotonic() - start < 60

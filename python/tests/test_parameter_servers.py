# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy: servers without Python, and those of the user's function."""

import json
import os
import signal

import pytest

from conftest import wait_until
from local_cluster import Nodes
from tensorflowonspark import TFCluster, _tfos, launch
from test_cluster import local

pytest.importorskip("tensorflow")


def coordinate(args, ctx):
    """A custom loop, and fit of tf_keras, with variables in parts on all parameter servers; writes what they came to."""
    import importlib.util
    import json
    import os

    if ctx.job_name in ("worker", "ps"):
        with open(f"{args['out']}/{ctx.job_name}{ctx.task_index}", "w") as file:
            file.write(str(os.getpid()))
        ctx.serve()
        return
    if importlib.util.find_spec("tf_keras"):  # TensorFlow 2.15 needs none
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=64, max_shards=2)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    report = {}
    with strategy.scope():
        table = tf.Variable(tf.zeros([40, 4]))
        counted = tf.Variable(0, dtype=tf.int64)
    report["devices"] = sorted({part.device for part in table.variables})

    @tf.function
    def step(iterator):
        def add(words):
            counted.assign_add(1)
            for part in table.variables:
                part.assign_add(tf.ones_like(part))
            return tf.reduce_sum(words)

        return strategy.run(add, (next(iterator),))

    iterator = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.range(5).repeat().batch(5)))
    sums = [coordinator.schedule(step, args=(iterator,)) for _ in range(30)]
    coordinator.join()
    report["sums"] = [int(one) for one in coordinator.fetch(sums)]
    report["counted"] = int(counted.numpy())
    report["table"] = float(tf.convert_to_tensor(table).numpy().sum())

    def pairs(context):
        numbers = tf.data.Dataset.range(64).repeat().shuffle(64, seed=1).map(lambda x: tf.cast(x, tf.float32) / 64)
        return numbers.map(lambda x: ([x], [2 * x])).batch(16)

    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(1,))])
        model.compile(tf.keras.optimizers.SGD(0.2), "mse")
    report["loss"] = model.fit(tf.keras.utils.experimental.DatasetCreator(pairs), epochs=3, steps_per_epoch=20, verbose=0).history["loss"]
    with open(f"{args['out']}/chief0", "w") as file:
        json.dump(report, file)


def check_report(folder):
    report = json.loads((folder / "chief0").read_text())
    assert report["devices"] == [f"/job:ps/replica:0/task:{index}/device:CPU:0" for index in range(2)]
    assert report["sums"] == [10] * 30 and report["counted"] == 30
    assert 0 < report["table"] <= 30 * 40 * 4
    assert report["loss"][-1] < report["loss"][0] / 2


def read_process(node, name):
    with open(f"/proc/{node['trainer_pid']}/{name}") as file:
        return file.read()


def started(cluster):
    """The nodes, once each has reported that its trainer runs."""
    cluster.wait(_tfos.RUNNING)
    wait_until(lambda: all(node["trainer_pid"] for node in cluster.nodes().values()), what="the trainers")
    return cluster.nodes()


@pytest.mark.long
@pytest.mark.parametrize("native", [True, False])
def test_variables_on_all_servers(tmp_path, native):
    """The function runs on servers unless they are without Python; all of them end with the chief."""
    with Nodes(tmp_path, local(coordinate), {"out": str(tmp_path)}, 5, 2, native_ps=native) as cluster:
        nodes = started(cluster)
        for node in (nodes["ps0"], nodes["ps1"]):
            assert (read_process(node, "cmdline").split("\0")[:2] == [launch.node_executable(), "ps"]) == native
        cluster.wait()
        for node in (nodes["ps0"], nodes["ps1"]):
            assert "libtensorflow_cc.so.2" in read_process(node, "maps")
            assert ("pywrap_tensorflow" in read_process(node, "maps")) != native
    check_report(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["chief0", *([] if native else ["ps0", "ps1"]), "worker0", "worker1"]


def wait_for_ever(args, ctx):
    import threading

    threading.Event().wait()


@pytest.mark.long
def test_a_server_that_is_killed_is_named(tmp_path):
    with Nodes(tmp_path, local(wait_for_ever), None, 4, 2, native_ps=True) as cluster:
        node = started(cluster)["ps1"]
        wait_until(lambda: "libtensorflow_cc" in read_process(node, "maps"), what="the library")
        os.kill(node["trainer_pid"], signal.SIGKILL)
        with pytest.raises(_tfos.Error, match=r"ps:1 \(executor id 1, .*host .*\) failed: its trainer ended with signal 9 \(Killed\)"):
            cluster.wait()


def test_what_cannot_serve_says_why(tmp_path, monkeypatch):
    """A library that is none, and no TensorFlow."""
    def fail(words):
        with Nodes(tmp_path, local(wait_for_ever), None, 2, 1, native_ps=True) as cluster, pytest.raises(_tfos.Error, match=words):
            cluster.wait()

    monkeypatch.setattr(launch, "_server_command", lambda: [launch.node_executable(), "ps", "/nowhere/libtensorflow_cc.so.2"])
    fail(r"(?s)ps:0 .*parameter server: /nowhere/libtensorflow_cc.so.2 is no library of TensorFlow's that it can use: .*cannot open shared object")
    monkeypatch.setattr(launch, "_server_command", lambda: [launch.node_executable(), "ps", "libz.so.1"])
    fail(r"(?s)ps:0 .*libz.so.1 is no library of TensorFlow's that it can use: .*undefined symbol: TF_NewStatus")
    monkeypatch.undo()
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    fail("native_ps: a parameter server needs TensorFlow's library, and .* has no tensorflow: install it there")


def test_serve_is_for_workers_and_servers(tmp_path):
    from tensorflowonspark.TFSparkNode import TFNodeContext

    with pytest.raises(ValueError, match=r"serve\(\) is for workers and parameter servers; this node is chief:0"):
        TFNodeContext(job_name="chief", cluster_spec={"chief": ["a:1"]}).serve()
    with pytest.raises(ValueError, match="waits for a chief, and this cluster has none"):
        TFNodeContext(job_name="worker", cluster_spec={"worker": ["a:1"]}).serve()


def count_and_serve(args, ctx):
    """A variable of the chief's on the server; the worker adds to it."""
    if ctx.job_name == "worker":
        ctx.serve()
        return
    import tensorflow as tf

    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        counted = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def add():
        return counted.assign_add(1)

    for _ in range(10):
        coordinator.schedule(add)
    coordinator.join()
    with open(args, "w") as file:
        file.write(f"{int(counted.numpy())} {counted.device}")


def test_on_spark(sc, tmp_path):
    """Two executors for chief and worker; the server runs beside the driver."""
    with pytest.raises(ValueError, match="native_ps=True is for parameter servers, and num_ps is 0"):
        TFCluster.run(sc, local(count_and_serve), None, 2, 0, native_ps=True)
    with pytest.raises(ValueError, match="native_ps must be True or False"):
        TFCluster.run(sc, local(count_and_serve), None, 2, 1, native_ps="yes")
    out = tmp_path / "out"
    TFCluster.run(sc, local(count_and_serve), str(out), 3, 1, master_node="chief", native_ps=True, driver_ps_nodes=True).shutdown()
    assert out.read_text() == "10 /job:ps/replica:0/task:0/device:CPU:0"

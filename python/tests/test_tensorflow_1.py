# SPDX-License-Identifier: Apache-2.0
"""Programs of TensorFlow 1's style under tf.compat.v1: parameter servers that join, sessions of every kind, and what they export."""

import json

import pytest

from tensorflowonspark import TFCluster
from test_cluster import local

pytestmark = pytest.mark.long
pytest.importorskip("tensorflow")

STEPS = 20


def train_in_graphs(args, ctx):
    """Between-graph replication by two kinds of session, one after the other; the chief exports once from each."""
    import json
    import os

    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    cluster, server = ctx.start_cluster_server(num_gpus=0)
    if ctx.job_name == "ps":
        server.join()
    is_chief = ctx.job_name == "chief"
    index = 0 if is_chief else ctx.task_index + 1
    device = v1.train.replica_device_setter(cluster=cluster, worker_device=f"/job:{ctx.job_name}/task:{ctx.task_index}")

    def build(name, optimizer_of):
        """The loss falls to 0 where the weight is 3; also the optimizer, whose step is the global one."""
        with v1.device(device):
            step = v1.train.create_global_step()
            weight = v1.get_variable(name, initializer=0.0)
            x = v1.placeholder(tf.float32, [None], "x")
            y = tf.multiply(x, weight, name="y")
            optimizer = optimizer_of(v1.train.GradientDescentOptimizer(0.1))
            train = optimizer.minimize(tf.reduce_mean(tf.square(y - 3 * x)), step)
        return step, weight, x, y, train, optimizer

    report = {}

    def export(session, name, x, y):
        if is_chief and not os.path.exists(f"{args['out']}/{name}"):
            ctx.export_saved_model(session, f"{args['out']}/{name}", "serve", {"predict": {"inputs": {"x": x}, "outputs": {"y": y}}})

    with tf.Graph().as_default():
        # The rows of both workers are one step.
        step, weight, x, y, train, optimizer = build("synchronous", lambda o: v1.train.SyncReplicasOptimizer(o, 2, 2))
        report["placed"] = weight.device
        hooks = [optimizer.make_session_run_hook(is_chief), v1.train.StopAtStepHook(last_step=args["steps"])]
        with v1.train.MonitoredTrainingSession(server.target, is_chief, f"{args['out']}/checkpoints", hooks=hooks, save_checkpoint_steps=5,
                                               stop_grace_period_secs=1) as session:  # its queues do not end in 120 either
            while not session.should_stop():
                value, reached = session.run([weight, step, train], {x: [1.0, 2.0]})[:2]
                if reached >= args["steps"] // 2:
                    export(session, "monitored", x, y)
        report["synchronous"] = float(value)
    ctx.agree("first", index)
    with tf.Graph().as_default():
        step, weight, x, y, train, _ = build("asynchronous", lambda o: o)
        supervisor = v1.train.Supervisor(is_chief=is_chief, logdir=f"{args['out']}/log" if is_chief else None, global_step=step, save_model_secs=0,
                                         recovery_wait_secs=1)
        with supervisor.managed_session(server.target) as session:
            while session.run(step) < args["steps"]:
                value, _ = session.run([weight, train], {x: [1.0, 2.0]})
            export(session, "supervised", x, y)
            ctx.agree("second", index)
        report["asynchronous"] = float(value)
    if is_chief:  # a model in parts
        with tf.Graph().as_default():
            with v1.device("/job:ps/task:0"):
                x = v1.placeholder(tf.float32, [2])
                first = tf.reduce_sum(x)
            with v1.device("/job:worker/task:0"):
                second = tf.square(first)
            trace = v1.RunMetadata()
            with v1.Session(server.target) as session:
                report["square"] = float(session.run(second, {x: [1, 2]}, v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), trace))
            report["computed"] = {node.node_name: part.device for part in trace.step_stats.dev_stats for node in part.node_stats}
    ctx.agree("third", index)
    with open(f"{args['out']}/{ctx.job_name}{ctx.task_index}.json", "w") as file:
        json.dump(report, file)


def test_sessions_of_every_kind_on_one_cluster(sc, tmp_path):
    import tensorflow as tf

    cluster = TFCluster.run(sc, local(train_in_graphs), {"out": str(tmp_path), "steps": STEPS}, 3, 1, driver_ps_nodes=True, master_node="chief")
    cluster.shutdown()
    for name in ("chief0", "worker0"):
        report = json.loads((tmp_path / f"{name}.json").read_text())
        assert "/job:ps" in report["placed"]
        assert abs(report["synchronous"] - 3) < 0.5 and abs(report["asynchronous"] - 3) < 0.5, report
    chief = json.loads((tmp_path / "chief0.json").read_text())
    assert chief["square"] == 9 and "/job:ps" in chief["computed"]["Sum"] and "/job:worker" in chief["computed"]["Square"]
    assert tf.train.latest_checkpoint(str(tmp_path / "checkpoints"))
    for name in ("monitored", "supervised"):
        predict = tf.saved_model.load(str(tmp_path / name)).signatures["predict"]
        assert abs(float(predict(x=tf.constant([2.0]))["y"][0]) - 6) < 1


def train_an_estimator(args, ctx):
    """tf.estimator's train_and_evaluate on what Spark feeds, with a parameter server."""
    import json
    import os

    import tensorflow as tf

    def rows():
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            for x, y in feed.next_batch(8):
                yield [x], y

    def data():
        dataset = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32), ([1], []))
        return dataset.batch(8).map(lambda x, y: ({"x": x}, y))

    estimator = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x")], model_dir=args["out"])
    tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(data, max_steps=args["steps"]), tf.estimator.EvalSpec(data))
    ctx.get_data_feed().terminate()
    if ctx.job_name == "chief":
        with open(f"{args['out']}/step.json", "w") as file:
            json.dump([int(estimator.get_variable_value("global_step")), os.environ["TF_CONFIG"]], file)


def test_an_estimator_on_what_spark_feeds(sc, tmp_path):
    import tensorflow as tf

    if not hasattr(tf, "estimator"):
        pytest.skip("TensorFlow has no estimators from 2.16 on")
    cluster = TFCluster.run(sc, local(train_an_estimator), {"out": str(tmp_path), "steps": 30}, 3, 1, input_mode=TFCluster.InputMode.SPARK,
                            driver_ps_nodes=True, master_node="chief")
    cluster.train(sc.parallelize([(i / 100, 2 * i / 100) for i in range(2000)], 4), 5)
    cluster.shutdown()
    step, config = json.loads((tmp_path / "step.json").read_text())
    assert step >= 30 and json.loads(config)["task"] == {"type": "chief", "index": 0}

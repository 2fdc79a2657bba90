# SPDX-License-Identifier: Apache-2.0
"""Several queues: validation beside training, a fed evaluator, and queues that a user names, on real executors."""

import json
import os
import sys

import pytest

from conftest import wait_until
from tensorflowonspark import TFCluster, _tfos
from tensorflowonspark.TFCluster import InputMode

FEED = InputMode.SPARK


def by_value(function):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


def read_all(folder):
    """What each node wrote as JSON into ``folder``, by file name."""
    return {name: json.loads((folder / name).read_text()) for name in sorted(os.listdir(folder))}


def train_and_validate(args, ctx):
    """Reads an epoch of training and then one of validation; writes the labels of both, step by step."""
    import json

    def labels(dataset):
        steps = [(element[1].numpy().tolist(), element[2].numpy().tolist()) for element in dataset]
        return [[row for row, weight in zip(rows, weights) if weight == 1] for rows, weights in steps]

    training = ctx.get_dataset(args["batch"], uneven="pad")
    validation = ctx.get_dataset(args["batch"], uneven="pad", split="validation")
    assert training.element_spec == validation.element_spec
    epochs = [[labels(training), labels(validation)] for _ in range(args["epochs"])]
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(epochs, file)


def rows_of(sc, layout, width=4, first=0):
    """An RDD with so many rows in each partition, numbered on, made where they are fed."""
    starts = [first + sum(layout[:i]) for i in range(len(layout))]
    return sc.parallelize(list(zip(starts, layout)), len(layout)).flatMap(
        lambda part: (([float(i % 100)] * width, i) for i in range(part[0], part[0] + part[1])))


def check_epochs(nodes, training, validation, epochs):
    for epoch in range(epochs):
        for kind, want in ((0, training), (1, validation)):
            parts = [node[epoch][kind] for node in nodes.values()]
            assert len({len(steps) for steps in parts}) == 1
            assert sorted(row for steps in parts for step in steps for row in step) == want


@pytest.mark.long
def test_s19_validation_beside_training(sc, tmp_path):
    """Each worker gets a share of both, in step, and every row once an epoch."""
    layouts = [([70, 33], [20, 1]), ([10, 0, 1], [0, 60, 0, 3])]
    args = {"out": str(tmp_path), "batch": 10, "epochs": 3 * len(layouts)}
    with TFCluster.run(sc, by_value(train_and_validate), args, 2, 0, input_mode=FEED) as cluster:
        for training, validation in layouts:
            cluster.train(rows_of(sc, training), num_epochs=3, validation=rows_of(sc, validation, first=1000))
    written = read_all(tmp_path)
    for number, (training, validation) in enumerate(layouts):
        nodes = {name: epochs[3 * number:3 * number + 3] for name, epochs in written.items()}
        check_epochs(nodes, list(range(sum(training))), list(range(1000, 1000 + sum(validation))), 3)


@pytest.mark.long
def test_s19_epochs_larger_than_the_ring(sc, tmp_path):
    """Nobody waits for a row of the validation before the epoch of training is through, nor for a slot that feeding tasks hold."""
    args = {"out": str(tmp_path), "batch": 512, "epochs": 2}
    training, validation = [4000, 4000], [3000, 3000]  # rows of 6 KB: channels hold 2,600
    with TFCluster.run(sc, by_value(train_and_validate), args, 2, 0, input_mode=FEED) as cluster:
        cluster.train(rows_of(sc, training, 784), num_epochs=2, validation=rows_of(sc, validation, 784, 100_000))
    check_epochs(read_all(tmp_path), list(range(8000)), list(range(100_000, 106_000)), 2)


@pytest.mark.long
def test_s21_a_retried_task_feeds_the_validation_once(sc, tmp_path):
    def fails_once(rows):
        from pyspark import TaskContext

        for number, row in enumerate(rows):
            if number == 60 and TaskContext.get().attemptNumber() == 0:
                raise OSError("the disk is gone")
            yield row

    args = {"out": str(tmp_path), "batch": 16, "epochs": 2}
    validation = rows_of(sc, [100, 100], first=1000).mapPartitions(fails_once)
    with TFCluster.run(sc, by_value(train_and_validate), args, 2, 0, input_mode=FEED) as cluster:
        cluster.train(rows_of(sc, [40, 40]), num_epochs=2, validation=validation)
    check_epochs(read_all(tmp_path), list(range(80)), list(range(1000, 1200)), 2)


@pytest.mark.long
def test_s19_an_evaluator_is_fed(sc, tmp_path):
    """All of the validation, after each epoch; its task keeps its slot, and the worker's alone feeds both."""

    def function(args, ctx):
        import json

        queue = "validation" if ctx.job_name == "evaluator" else "input"
        feed, rows = ctx.get_data_feed(qname_in=queue), []
        while not feed.should_stop():
            rows += feed.next_batch(7)
        with open(f"{args}/{ctx.job_name}", "w") as file:
            json.dump(rows, file)

    cluster = TFCluster.run(sc, function, str(tmp_path), 2, 0, input_mode=FEED, eval_node=True)
    cluster.train(sc.parallelize(range(100), 4), num_epochs=2, validation=sc.parallelize(range(500, 530), 3))
    rows = {node["job_name"]: node["rows_read"] for node in cluster._status()["nodes"]}
    cluster.shutdown()
    assert rows == {"evaluator": 60, "worker": 200}
    nodes = read_all(tmp_path)
    assert sorted(nodes["worker"]) == sorted([*range(100)] * 2)
    assert sorted(nodes["evaluator"]) == sorted([*range(500, 530)] * 2)


@pytest.mark.long
def test_an_evaluator_has_a_dataset_of_the_validation_alone(sc, tmp_path):
    def function(args, ctx):
        import json

        dataset = ctx.get_dataset(10, split="validation" if ctx.job_name == "evaluator" else "train")
        sizes = [[len(element[1]) for element in dataset] for _ in range(2)]
        with open(f"{args}/{ctx.job_name}", "w") as file:
            json.dump(sizes, file)

    with TFCluster.run(sc, function, str(tmp_path), 2, 0, input_mode=FEED, eval_node=True) as cluster:
        cluster.train(rows_of(sc, [25]), num_epochs=2, validation=rows_of(sc, [13]))
    assert read_all(tmp_path) == {"evaluator": [[10, 3]] * 2, "worker": [[10, 10, 5]] * 2}


@pytest.mark.long
def test_keras_validates_in_step(sc, tmp_path):
    """``fit`` with ``validation_data`` on two workers whose shares of both are unequal."""

    def function(args, ctx):
        import json
        import os

        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow as tf

        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        batch = 8 * ctx.num_workers
        training = ctx.get_dataset(batch, uneven="pad", dtypes="float32")
        validation = ctx.get_dataset(batch, uneven="pad", dtypes="float32", split="validation")
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
            model.compile(optimizer="sgd", loss="mse", weighted_metrics=["mae"])
        history = model.fit(training, epochs=3, validation_data=validation, verbose=0).history
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            json.dump({key: values for key, values in history.items()}, file)

    def rows(layout):
        return rows_of(sc, layout).map(lambda row: ([row[1] / 100.0] * 4, row[1] / 50.0))

    with TFCluster.run(sc, function, str(tmp_path), 2, 0, input_mode=FEED) as cluster:
        cluster.train(rows([61, 30]), num_epochs=3, validation=rows([40, 3]))
    nodes = read_all(tmp_path)
    assert len(nodes["0"]["loss"]) == len(nodes["0"]["val_loss"]) == len(nodes["0"]["val_mae"]) == 3
    assert nodes["0"]["val_loss"] == pytest.approx(nodes["1"]["val_loss"])
    assert nodes["0"]["val_loss"][2] < nodes["0"]["val_loss"][0]


@pytest.mark.long
def test_keras_validates_after_some_epochs(sc, tmp_path):
    """``validation_freq`` means the same to both."""

    def function(args, ctx):
        import json
        import os

        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow as tf

        training = ctx.get_dataset(8, dtypes="float32")
        validation = ctx.get_dataset(8, dtypes="float32", split="validation")
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        model.compile(optimizer="sgd", loss="mse")
        counts = []
        for epochs, frequency in ((4, 2), (3, [1, 3]), (2, 5)):
            history = model.fit(training, epochs=epochs, validation_data=validation, validation_freq=frequency, verbose=0).history
            counts.append([len(history["loss"]), len(history.get("val_loss", []))])
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            json.dump(counts, file)

    rows = rows_of(sc, [20]).map(lambda row: ([row[1] / 100.0] * 4, row[1] / 50.0))
    with TFCluster.run(sc, function, str(tmp_path), 1, 0, input_mode=FEED) as cluster:
        cluster.train(rows, num_epochs=4, validation=rows, validation_freq=2)
        cluster.train(rows, num_epochs=3, validation=rows, validation_freq=[1, 3])
        cluster.train(rows, num_epochs=2, validation=rows, validation_freq=5)
    assert read_all(tmp_path) == {"0": [[4, 2], [3, 2], [2, 0]]}


def test_dataframes_are_described_before_the_first_row(sc, tmp_path):
    from pyspark.sql import SparkSession

    def function(args, ctx):
        import json

        schemas = [json.loads(ctx.mgr.link.description(queue, 60_000)) for queue in ("input", "validation")]
        unknown = ctx.mgr.link.description("other", 100)
        training = ctx.get_dataset(10)
        validation = ctx.get_dataset(10, split="validation")
        counts = [[sum(len(element["n"]) for element in dataset) for dataset in (training, validation)] for _ in range(2)]
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            json.dump([schemas, unknown, counts], file)

    spark = SparkSession(sc)
    frame, checks = spark.range(30).selectExpr("id AS n", "id * 2 AS other"), spark.range(12).selectExpr("id * 2 AS other", "id AS n")
    with TFCluster.run(sc, function, str(tmp_path), 1, 0, input_mode=FEED, queues=["other"]) as cluster:
        with pytest.raises(ValueError, match="no column 'missing'"):
            cluster.train(frame, validation=checks, columns=["missing"])
        cluster.train(frame, num_epochs=2, validation=checks, columns=["n"])
    schema = json.loads(frame.select("n").schema.json())
    assert read_all(tmp_path) == {"0": [[schema, schema], None, [[30, 12]] * 2]}


@pytest.mark.long
def test_s12_a_validation_that_nobody_reads_is_named(sc):
    def function(args, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(10)

    with TFCluster.run(sc, function, None, 1, 0, input_mode=FEED) as cluster:
        with pytest.raises(_tfos.TimedOutError, match='unread in queue ("input" and )?"validation"'):  # the trainer may begin late
            cluster.train(sc.parallelize(range(20)), num_epochs=1, feed_timeout=2, validation=sc.parallelize(range(20)))
    large = sc.parallelize(range(2), 2).flatMap(lambda i: (bytes(1 << 20) for _ in range(40)))
    cluster = TFCluster.run(sc, function, None, 1, 0, input_mode=FEED)
    with pytest.raises(_tfos.TimedOutError, match='taken nothing from queue "validation" for 2 s'):
        cluster.train(sc.parallelize(range(20)), num_epochs=1, feed_timeout=2, validation=large)
    cluster.shutdown()


def test_the_validation_alone_can_be_given_up(sc, tmp_path):
    def function(args, ctx):
        training, validation = ctx.get_data_feed(), ctx.get_data_feed(qname_in="validation")
        count, checked = len(training.next_batch(20)), len(validation.next_batch(20))
        validation.terminate()
        while not training.should_stop():
            count += len(training.next_batch(20))
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            file.write(f"[{count}, {checked}]")

    cluster = TFCluster.run(sc, function, str(tmp_path), 1, 0, input_mode=FEED)
    cluster.train(sc.parallelize(range(20), 2), num_epochs=4, validation=sc.parallelize(range(20), 2))
    queues = wait_until(lambda: [q for q in [cluster._status()["nodes"][0]["queues"]] if q["validation"]["terminated"]])[0]
    assert not queues["input"]["terminated"]
    cluster.shutdown()
    assert read_all(tmp_path) == {"0": [80, 20]}


@pytest.mark.long
def test_two_queues_are_read_alternately(sc, tmp_path):
    def function(args, ctx):
        import json

        feeds = [ctx.get_data_feed(qname_in=name) for name in ("left", "right")]
        got = [feeds[turn % 2].next_batch(5) for turn in range(6)]
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            json.dump(got, file)

    with TFCluster.run(sc, function, str(tmp_path), 1, 0, input_mode=FEED, queues=["left", "right"]) as cluster:
        assert cluster.queues == ["input", "validation", "left", "right"]
        for turn in range(6):
            cluster.train(sc.parallelize(range(turn * 5, turn * 5 + 5), 1), num_epochs=1, qname=("left", "right")[turn % 2])
    assert read_all(tmp_path) == {"0": [list(range(turn * 5, turn * 5 + 5)) for turn in range(6)]}


def test_inference_by_a_queue_of_its_own(sc):
    def function(args, ctx):
        feed = ctx.get_data_feed(train_mode=False, qname_in="questions")
        while not feed.should_stop():
            feed.batch_results([row * 2 for row in feed.next_batch(10)])

    with TFCluster.run(sc, function, None, 2, 0, input_mode=FEED, queues=["questions"]) as cluster:
        assert cluster.inference(sc.parallelize(range(100), 4), qname="questions").collect() == [2 * i for i in range(100)]


def test_unknown_queues_are_refused_by_name(sc):
    def function(args, ctx):
        try:
            ctx.get_data_feed(qname_in="nothing")
        except LookupError as error:
            raise RuntimeError(f"refused: {error}") from None

    for queues, error, words in (("input", TypeError, "list of names"), (["a b"], ValueError, "'a b'"), ([3], ValueError, "3 is no name"),
                                 ([f"q{i}" for i in range(15)], ValueError, "17 queues")):
        with pytest.raises(error, match=words):
            TFCluster.run(sc, function, None, 1, 0, input_mode=FEED, queues=queues)
    cluster = TFCluster.run(sc, function, None, 1, 0, input_mode=FEED, queues=["a"])
    with pytest.raises(ValueError, match="unknown queue 'b'; this cluster has input, validation, a"):
        cluster.train(sc.parallelize([1]), qname="b")
    with pytest.raises(_tfos.ClosedError, match='no queue "nothing": a node has "input", "validation", "a"'):
        cluster.shutdown()


def test_wrong_arguments_are_refused(sc, tmp_path):
    def function(args, ctx):
        words = []
        for arguments in ({"split": "test"}, {"split": "validation"}):
            try:
                ctx.get_dataset(10, **arguments)
            except ValueError as error:
                words.append(str(error))
        with open(f"{args}/{ctx.executor_id}", "w") as file:
            import json

            json.dump(words, file)

    with TFCluster.run(sc, function, str(tmp_path), 1, 0, input_mode=FEED) as cluster:
        rows = sc.parallelize([1])
        with pytest.raises(ValueError, match="is the queue of the validation"):
            cluster.train(rows, qname="validation", validation=rows)
        with pytest.raises(ValueError, match="validation takes a DataFrame or an RDD, not list"):
            cluster.train(rows, validation=[1, 2])
        for frequency in (0, True, "2", 1.5, [], [0], [1, None]):
            with pytest.raises(ValueError, match="validation_freq must be"):
                cluster.train(rows, validation=rows, validation_freq=frequency)
    split, order = read_all(tmp_path)["0"]
    assert "'train' or 'validation', not 'test'" in split and "asked for first" in order

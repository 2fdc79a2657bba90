# SPDX-License-Identifier: Apache-2.0
"""What ``get_dataset`` knows of a DataFrame before the first row, and of one of which a node gets none."""

import os

import pytest

from tensorflowonspark import TFCluster, _tfos
from tensorflowonspark.TFCluster import InputMode
from test_validation import by_value, read_all

FEED = InputMode.SPARK
pytestmark = pytest.mark.long
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


WAYS = ("jvm", "arrow")


def held_back(frame, gate):
    """The frame, whose rows wait for a file."""
    def wait(value):
        import os
        import time

        deadline = time.monotonic() + 60
        while not os.path.exists(gate):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {gate}")
            time.sleep(0.02)
        return value

    frame.sparkSession.udf.register("wait", wait, "long")
    return frame.selectExpr("wait(id) as waited", "*").drop("id")


WIDE = ["waited", "cast(id as float) as x", "named_struct('a', cast(id as short), 'b', concat('t', id)) as s",
        "array(id, id + 1) as fixed", "sequence(0, id % 3) as ragged", "map('k', id) as m", "date'2024-01-01' as day"]


def save_specs(args, ctx):
    """For each training opens its gate when the structure is known, and counts the rows of each epoch."""
    import json

    written = []
    for gate in args["gates"]:
        dataset = ctx.get_dataset(4, shapes={"fixed": 2}, ragged="ragged", **args["options"])
        spec = {name: str(value) for name, value in dataset.element_spec.items()}
        open(gate, "w").close()
        written.append([spec, [sum(len(element["waited"]) for element in dataset) for _ in range(2)]])
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(written, file)


def test_the_structure_is_known_before_the_first_row(spark, tmp_path):
    args = {"out": str(tmp_path / "out"), "gates": [str(tmp_path / via) for via in WAYS], "options": {"null_value": 0}}
    os.mkdir(args["out"])
    with TFCluster.run(spark.sparkContext, by_value(save_specs), args, 2, 0, input_mode=FEED) as cluster:
        for via, gate in zip(WAYS, args["gates"]):
            frame = held_back(spark.range(0, 10, 1, 1), gate).selectExpr("waited", *(text.replace("id", "waited") for text in WIDE[1:]))
            cluster.train(frame, num_epochs=2, via=via)
    for (spec, counts), (other_spec, other_counts) in zip(*read_all(tmp_path / "out").values()):
        assert spec == other_spec == {
            "waited": "TensorSpec(shape=(None,), dtype=tf.int64, name=None)",
            "x": "TensorSpec(shape=(None,), dtype=tf.float32, name=None)",
            "s": "{'a': TensorSpec(shape=(None,), dtype=tf.int16, name=None), 'b': TensorSpec(shape=(None,), dtype=tf.string, name=None)}",
            "fixed": "TensorSpec(shape=(None, 2), dtype=tf.int64, name=None)",
            "ragged": "RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64)",
            "m": spec["m"],
            "day": "TensorSpec(shape=(None,), dtype=tf.int32, name=None)",
        }
        assert "RaggedTensorSpec" in spec["m"]
        # Each epoch is one on both nodes, though its only partition goes to one of them.
        assert [sum(pair) for pair in zip(counts, other_counts)] == [10, 10]


@pytest.mark.parametrize("via", WAYS)
def test_a_wrong_column_is_refused_before_the_first_row(spark, tmp_path, via):
    def function(args, ctx):
        ctx.get_dataset(4, columns=["waited", "missing"])

    frame = held_back(spark.range(0, 10, 1, 1), str(tmp_path / "never"))
    cluster = TFCluster.run(spark.sparkContext, function, None, 1, 0, input_mode=FEED)
    with pytest.raises(_tfos.Error, match="there is no column missing: the rows have waited"):
        cluster.train(frame.selectExpr("waited", "waited as other"), num_epochs=1, via=via)
    cluster.shutdown()


def fit(args, ctx):
    import json

    import tensorflow as tf

    seen, written = [], []
    count = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(batch))
    for _ in range(args["trainings"]):
        dataset = ctx.get_dataset(args["batch"], **args["options"])
        spec = str(dataset.element_spec["pixels"].shape)
        pairs = dataset.map(lambda row: (row["pixels"], row["label"]))
        model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        seen.clear()
        model.fit(pairs, verbose=0, callbacks=[count])
        written.append([spec, len(seen)])
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(written, file)


def test_fit_on_a_node_without_rows(spark, tmp_path):
    """Its epoch is empty, which Keras 2 takes for a mistake; lists are as long as they are in each batch."""
    pytest.importorskip("keras", minversion="3")
    frame = spark.range(0, 50, 1, 1).selectExpr("array_repeat(cast(id as float) / 50, 20) as pixels", "cast(id as float) as label", "id")
    args = {"out": str(tmp_path), "batch": 10, "options": {"columns": ["pixels", "label"]}, "trainings": len(WAYS)}
    with TFCluster.run(spark.sparkContext, by_value(fit), args, 2, 0, input_mode=FEED) as cluster:
        for via in WAYS:
            cluster.train(frame, num_epochs=1, via=via)
    for parts in zip(*read_all(tmp_path).values()):
        assert sorted(parts) == [["(None, 20)", 5], ["(None, None)", 0]]


def read_in_step(args, ctx):
    import json

    written = []
    for _ in range(args["trainings"]):
        dataset = ctx.get_dataset(args["batch"], uneven="pad")
        shape = str(dataset.element_spec[0]["x"].shape)
        weights = [element[1].numpy().sum() for element in dataset]
        written.append([shape, len(weights), int(sum(weights))])
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(written, file)


def test_s14_a_partition_larger_than_the_ring_goes_to_both(spark, tmp_path):
    """Who has no row yet learns from the other what they are; each gets half of them, to a batch."""
    frame = spark.range(0, 6000, 1, 1).selectExpr("array_repeat(cast(id as double), 784) as x")
    kinds = [frame, spark.sparkContext.range(0, 6000, 1, 1).map(lambda i: {"x": [float(i)] * 784})]
    args = {"out": str(tmp_path), "batch": 100, "trainings": len(kinds)}
    with TFCluster.run(spark.sparkContext, by_value(read_in_step), args, 2, 0, input_mode=FEED) as cluster:
        for data in kinds:
            cluster.train(data, num_epochs=1, feed_timeout=60)
    for (shape, steps, rows), (other_shape, other_steps, other_rows) in zip(*read_all(tmp_path).values()):
        assert shape == other_shape == "(100, 784)" and steps == other_steps
        assert rows + other_rows == 6000 and abs(rows - other_rows) <= 100


def read_twice(args, ctx):
    import json

    found = []
    for _ in range(3):
        dataset = ctx.get_dataset(100)
        found.append([repr(dataset.element_spec), sum(1 for _ in dataset)])
    with open(f"{args}/{ctx.executor_id}", "w") as file:
        json.dump(found, file)


def test_each_training_has_its_own_structure(spark, tmp_path):
    """A description is of its own feeds only: neither the next DataFrame's rows nor an RDD's are taken for them."""
    with TFCluster.run(spark.sparkContext, by_value(read_twice), str(tmp_path), 1, 0, input_mode=FEED) as cluster:
        cluster.train(spark.range(3), num_epochs=1)
        cluster.train(spark.sparkContext.parallelize([1.5, 2.5], 1), num_epochs=1)
        cluster.train(spark.range(3).selectExpr("cast(id as string) as text"), num_epochs=1)
    (first, *_), (second, *_), (third, *_) = read_all(tmp_path)["0"]
    assert "'id': TensorSpec(shape=(None,), dtype=tf.int64" in first
    assert second.startswith("TensorSpec(shape=(None,), dtype=tf.float64") and "'text': TensorSpec(shape=(None,), dtype=tf.string" in third


def test_a_frame_without_rows(spark, tmp_path):
    args = {"out": str(tmp_path), "batch": 10, "trainings": len(WAYS)}
    with TFCluster.run(spark.sparkContext, by_value(read_in_step), args, 2, 0, input_mode=FEED) as cluster:
        for via in WAYS:
            cluster.train(spark.range(9).where("id < 0").selectExpr("array(id) as x"), num_epochs=1, via=via)
    assert read_all(tmp_path) == dict.fromkeys("01", [["(10, None)", 0, 0]] * len(WAYS))

# SPDX-License-Identifier: Apache-2.0
"""Keras 3 in step on Spark: the README's nine lines, on uneven partitions."""

import os

import numpy as np
import pytest

from tensorflowonspark import TFCluster
from test_cluster import FEED, local, read_all

pytest.importorskip("keras", "3.0")

ROWS = 400


def main_fun(args, ctx):
    """The README's lines; writes the steps, the weights, and what fit says."""
    import json
    import os

    import keras
    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    class Count(keras.callbacks.Callback):
        steps = 0

        def on_train_batch_end(self, batch, logs=None):
            self.steps += 1

    keras.utils.set_random_seed(ctx.executor_id)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    model = distribute(model, **args["settings"])
    ds = ctx.get_dataset(args["batch"], uneven=args["uneven"], dtypes="float32")

    def prepare(row, weight=None):
        features = tf.stack([row["a"], row["b"]], axis=1)
        return (features, row["y"]) if weight is None else (features, row["y"], weight)

    count = Count()
    against = ctx.get_dataset(args["batch"], uneven=args["uneven"], dtypes="float32", split="validation").map(prepare)
    history = model.fit(ds.map(prepare), epochs=args["epochs"], verbose=0, callbacks=[count], validation_data=against).history
    if ctx.job_name == "chief":
        model.save(f"{args['folder']}/model.keras")
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump({"steps": count.steps, "kernel": model.get_weights()[0].ravel().tolist(), "history": history,
                   "threads": os.environ.get("TF_NUM_INTRAOP_THREADS")}, file)


def nine_lines(spark, folder, uneven, epochs=3, batch=8, **settings):
    """What both workers have written, having trained on one part in four and the rest."""
    out = folder / f"out-{uneven}"
    out.mkdir()
    rows = spark.sparkContext.parallelize(range(ROWS), 4).map(lambda i: ((i % 10) / 10, (i % 7) / 7, (i % 10) / 10 + 2 * (i % 7) / 7))
    frame = spark.createDataFrame(rows, ["a", "b", "y"]).coalesce(3)
    args = {"out": str(out), "folder": str(folder), "batch": batch, "epochs": epochs, "uneven": uneven, "settings": settings}
    cluster = TFCluster.run(spark.sparkContext, local(main_fun), args, 2, 0, input_mode=FEED, master_node="chief")
    cluster.train(frame, epochs, validation=frame.where("a > 0.5"))
    cluster.shutdown()
    return list(read_all(out).values())


def check(first, second, folder, epochs=3, batch=8):
    import keras

    assert first["kernel"] == second["kernel"] and first["history"] == second["history"]
    assert first["history"]["mae"][-1] < first["history"]["mae"][0] / 2
    assert first["steps"] + second["steps"] >= 2 * epochs * ROWS // (2 * batch)
    saved = keras.models.load_model(folder / "model.keras")
    assert saved.get_weights()[0].ravel().tolist() == pytest.approx(first["kernel"])
    # The validation is that of one process, on all its rows.
    a, b = ((np.arange(ROWS) % base / base).astype("float32") for base in (10, 7))
    chosen = a > 0.5
    errors = (np.stack([a, b], 1) @ first["kernel"] - (a + 2 * b))[chosen]
    assert first["history"]["val_mae"][-1] == pytest.approx(np.abs(errors).mean(), abs=1e-5)
    assert first["history"]["val_loss"][-1] == pytest.approx(np.square(errors).mean(), abs=1e-5)


@pytest.mark.parametrize("uneven", ["pad", None])
def test_nine_lines(sc, tmp_path, uneven):
    from pyspark.sql import SparkSession

    first, second = nine_lines(SparkSession(sc), tmp_path, uneven)
    check(first, second, tmp_path)
    assert first["threads"] == str(max(1, len(os.sched_getaffinity(0)) // 2))  # a trainer's share of the cores


@pytest.mark.long
def test_asynchronously_on_uneven_partitions(sc, tmp_path):
    """One worker has rows when the other has none left, for which it does not wait."""
    import keras
    from pyspark.sql import SparkSession

    first, second = nine_lines(SparkSession(sc), tmp_path, None, mode="async", staleness=2, every=1)
    assert first["kernel"] == second["kernel"]
    for one in (first, second):
        assert one["history"]["mae"][-1] < one["history"]["mae"][0] / 2, one
    assert first["steps"] != second["steps"] and (first["steps"] + second["steps"]) * 8 >= 3 * ROWS
    assert keras.models.load_model(tmp_path / "model.keras").get_weights()[0].ravel().tolist() == pytest.approx(first["kernel"])

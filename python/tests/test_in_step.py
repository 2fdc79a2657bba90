# SPDX-License-Identifier: Apache-2.0
"""Keras's fit on two workers that train in step, on all rows of what Spark feeds, however unevenly they are dealt out."""

import pytest

from tensorflowonspark import TFCluster
from test_cluster import FEED, local, read_all

pytest.importorskip("tf_keras")

ROWS = 400


def fit_in_step(args, ctx):
    """Fits a model for each training, for the epochs that there are, without steps_per_epoch; writes the steps, the model and its error."""
    import json
    import os

    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    class Count(tf.keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.steps = []

        def on_epoch_begin(self, epoch, logs=None):
            self.steps.append(0)

        def on_train_batch_end(self, batch, logs=None):
            self.steps[-1] += 1

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    reports = []
    for _ in range(args["trainings"]):
        dataset = ctx.get_dataset(args["batch"] * ctx.num_workers, uneven="pad", dtypes="float32")
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", input_shape=(2,))])
            model.compile(tf.keras.optimizers.SGD(0.05), "mse", weighted_metrics=[tf.keras.metrics.MeanSquaredError()])
        count = Count()
        history = model.fit(dataset, epochs=args["epochs"], verbose=0, callbacks=[count]).history
        reports.append({"steps": count.steps, "kernel": model.get_weights()[0].ravel().tolist(), "error": history["mean_squared_error"]})
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(reports, file)


@pytest.mark.long
def test_s15_fit_on_uneven_partitions(sc, tmp_path):
    """One part in four to one worker: equal steps of both, enough for all rows, one model, which has learned y = x0 + 2 x1."""
    def deal(layout):
        starts = [sum(layout[:i]) for i in range(len(layout))]
        return sc.parallelize(list(zip(starts, layout)), len(layout)).flatMap(
            lambda part: [([(i % 10) / 10, (i % 7) / 7], [(i % 10) / 10 + 2 * (i % 7) / 7]) for i in range(part[0], part[0] + part[1])])

    layouts = [[100, 300], [120, 10, 60, 0, 30, 90, 40, 50]]
    args = {"out": str(tmp_path), "batch": 8, "epochs": 3, "trainings": len(layouts)}
    with TFCluster.run(sc, local(fit_in_step), args, 2, 0, input_mode=FEED, master_node="chief") as cluster:
        for layout in layouts:
            cluster.train(deal(layout), num_epochs=3)
    for first, second in zip(*read_all(tmp_path).values()):
        assert first["steps"] == second["steps"] and len(first["steps"]) == 3
        assert first["steps"][0] * 32 >= ROWS
        assert len(set(first["steps"])) == 1  # Keras takes the first epoch's for all
        assert first["kernel"] == second["kernel"]
        assert first["error"][-1] < first["error"][0] / 5

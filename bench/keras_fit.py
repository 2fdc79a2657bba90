# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""MNIST by Keras 3 on Spark: fit on two workers that Spark feeds, against one process's in-memory fit of the same global batch; and what comes before
the first step ends.
"""

import json
import os
import sys
import time

import digits
import harness

BATCH, WORKERS, EPOCHS = 64, 2, 3
ROUND_S = 600
FIRST_STEP_S = 4


def build_model():
    import keras

    layers = keras.layers
    model = keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax"),
    ])
    model.compile(keras.optimizers.SGD(0.001), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def clock(moments):
    """Notes when fit, its first step and each epoch have ended."""
    import keras

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            moments.setdefault("first step", time.time())

        def on_epoch_end(self, epoch, logs=None):
            moments[f"epoch {epoch}"] = time.time()

    return Clock()


def main_fun(args, ctx):
    moments = {"function": time.time()}
    import keras  # noqa: F401
    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    moments["imports"] = time.time()
    model = build_model()
    moments["model"] = time.time()
    model = distribute(model)
    moments["group"] = time.time()

    def scale(row, weight):
        return tf.reshape(tf.cast(row["pixels"], tf.float32), [-1, 28, 28, 1]) / 255.0, row["label"], weight

    dataset = ctx.get_dataset(args["batch"], uneven="pad", shapes={"pixels": (784,)})
    moments["fit"] = time.time()
    model.fit(dataset.map(scale), epochs=args["epochs"], verbose=0, callbacks=[clock(moments)])
    with open(os.path.join(args["folder"], f"{ctx.executor_id}.json"), "w") as file:
        json.dump(moments, file)


def train(cluster, frame, folder, preload=""):
    """The moments of both workers since TFCluster.run was called; their trainers are started, or forked from a process that has imported ``preload``."""
    from tensorflowonspark import TFCluster

    os.mkdir(folder)
    os.environ["TFOS_PRELOAD"] = preload
    start = time.time()
    nodes = TFCluster.run(
        cluster.context, main_fun, {"batch": BATCH, "epochs": EPOCHS, "folder": folder}, WORKERS, 0,
        input_mode=TFCluster.InputMode.SPARK, master_node="chief",
    )
    nodes.train(frame, EPOCHS)
    nodes.shutdown()
    found = []
    for rank in range(WORKERS):
        with open(os.path.join(folder, f"{rank}.json")) as file:
            found.append({name: moment - start for name, moment in json.load(file).items()})
    return {"moments": {name: max(one[name] for one in found) for name in found[0]}}


def fit_alone(pixels, labels):
    import tensorflow as tf

    moments = {}
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = tf.data.Dataset.from_tensor_slices((pixels, labels)).batch(BATCH * WORKERS)
    dataset = dataset.map(lambda pixels, label: (tf.reshape(tf.cast(pixels, tf.float32), [-1, 28, 28, 1]) / 255.0, label)).prefetch(2)
    model = build_model()
    start = time.time()
    model.fit(dataset.with_options(options), epochs=EPOCHS, verbose=0, callbacks=[clock(moments)])
    return {"moments": {"fit": 0.0, **{name: moment - start for name, moment in moments.items()}}}


def side(name):
    pixels, labels = digits.rows()
    if name == "keras_single":
        harness.serve({"versions": harness.versions, "measure": lambda folder: fit_alone(pixels, labels)})
        return
    import pyarrow as pa

    with harness.LocalCluster() as cluster:
        table = pa.table({"pixels": pa.array(list(pixels.astype("int16"))), "label": pa.array(labels)})
        frame = cluster.spark.createDataFrame(table).repartition(10).cache()
        frame.count()
        harness.serve({"versions": harness.versions, "measure": lambda **options: train(cluster, frame, **options)})


def seconds_of_epochs(result):
    """All of fit, and the epochs behind the first, in which Keras traces the model."""
    moments = result["moments"]
    last = moments[f"epoch {EPOCHS - 1}"]
    return last - moments["fit"], (last - moments["epoch 0"]) / (EPOCHS - 1)


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as ours, harness.Side("keras_single", sys.executable, folder) as single:
        harness.check_same_versions((ours, single))
        results = {"ours": [], "keras_single": []}
        for index, contender in enumerate(harness.turns((ours, single), rounds + 1)):
            result = contender.ask("measure", ROUND_S, folder=os.path.join(folder, str(index)))
            harness.note(f"{contender.name}: " + ", ".join(f"{name} {moment:.2f}" for name, moment in result["moments"].items()))
            if index >= 2:  # a first round, in which the executors are cold, is not counted
                results[contender.name].append(result)
        preloaded = [ours.ask("measure", ROUND_S, folder=os.path.join(folder, f"preloaded {index}"), preload="tensorflow") for index in range(rounds + 1)][1:]
    all_of_fit, epochs = ({name: [seconds_of_epochs(result)[which] for result in results[name]] for name in results} for which in (0, 1))
    harness.print_line("keras_fit", "epoch behind the first", "s", epochs["ours"], epochs["keras_single"], "keras_single", 1 / 1.15)
    harness.print_line("keras_fit", f"fit, {EPOCHS} epochs", "s", all_of_fit["ours"], all_of_fit["keras_single"], "keras_single")
    print_first_step("", results["ours"])
    print_first_step(", preloaded", preloaded)


def print_first_step(words, results):
    moments = [result["moments"] for result in results]
    harness.print_line("first_step", f"all{words}", "s", [one["first step"] for one in moments], [FIRST_STEP_S], "limit", 1)
    names = ["function", "imports", "model", "group", "fit", "first step"]
    for before, name in zip(["run", *names], names):
        took = [one[name] - one.get(before, 0.0) for one in moments]
        harness.print_line("first_step", f"{before} to {name}{words}", "s", took, [FIRST_STEP_S], "limit")


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

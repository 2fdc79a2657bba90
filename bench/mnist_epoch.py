# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""One epoch of MNIST, fed by Spark to two workers that train in step, from cluster.run to the end of training.

The original trains as its own example does, on the newest Spark and TensorFlow that it works with: rows one by one through next_batch(1) and
from_generator, and an end at 90 % of the steps, since it has no other way to end together. Ours trains Keras 3 on every row, on the newest of both.
Beside them, one process fits the same model, on ours' TensorFlow, on the same rows in memory.
"""

import json
import os
import sys
import time

import digits
import harness
import original

BATCH = 64
WORKERS = 2
PARTITIONS = 10
EPOCH_S = 900


def parse(line):
    """A row of the example's CSV: the label, then the pixels."""
    numbers = [int(text) for text in line.split(",")]
    return numbers[1:], numbers[0]


def build_model():
    """The example's model."""
    import tensorflow as tf

    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax"),
    ])
    model.compile(tf.keras.optimizers.SGD(0.001), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def fit(model, dataset, args, ctx, weights, **options):
    """One epoch, with the example's checkpoint at its end, and a note of its steps and when they and fit had ended."""
    import tensorflow as tf

    report = {"steps": 0, "start": time.time()}

    def count(batch, logs):
        report.update(steps=report["steps"] + 1, last_step=time.time())

    checkpoint = tf.keras.callbacks.ModelCheckpoint(
        os.path.join(args["folder"], weights), save_weights_only=True
    )
    counter = tf.keras.callbacks.LambdaCallback(on_train_batch_end=count)
    model.fit(dataset, epochs=1, verbose=2, callbacks=[checkpoint, counter], **options)
    report["end"] = time.time()
    path = os.path.join(args["folder"], str(ctx.executor_id))
    with open(path + ".part", "w") as file:
        json.dump(report, file)
    os.rename(path + ".part", path + ".json")


def train_original(args, ctx):
    import numpy as np
    import tensorflow as tf

    from tensorflowonspark import TFNode

    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    feed = TFNode.DataFeed(ctx.mgr, False)

    def rows():
        while not feed.should_stop():
            batch = feed.next_batch(1)
            if not batch:
                return
            pixels, label = batch[0]
            image = np.array(pixels).astype(np.float32) / 255.0
            yield image.reshape(28, 28, 1), np.array([label], np.float32)

    dataset = tf.data.Dataset.from_generator(
        rows, (tf.float32, tf.float32), (tf.TensorShape([28, 28, 1]), tf.TensorShape([1]))
    )
    with strategy.scope():
        model = build_model()
    steps = args["rows"] / args["batch"] / ctx.num_workers * 0.9
    fit(model, dataset.batch(args["batch"]), args, ctx, "weights-{epoch:04d}", steps_per_epoch=steps)
    feed.terminate()


def train_ours(args, ctx):
    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    def scale(pixels, label, weight):
        return tf.reshape(tf.cast(pixels, tf.float32), [-1, 28, 28, 1]) / 255.0, label, weight

    dataset = ctx.get_dataset(args["batch"], uneven="pad", dtypes=(tf.uint8, tf.int64))
    fit(distribute(build_model()), dataset.map(scale), args, ctx, "{epoch:04d}.weights.h5")


def measure(cluster, function, csv, rows, folder):
    """Seconds from cluster.run to the end of training: until the last worker's fit has returned, and to its last step."""
    from tensorflowonspark import TFCluster

    os.mkdir(folder)
    args = {"batch": BATCH, "rows": rows, "folder": folder}
    rdd = cluster.context.textFile(csv).map(parse)
    start = time.time()
    nodes = TFCluster.run(
        cluster.context, function, args, WORKERS, 0,
        input_mode=TFCluster.InputMode.SPARK, master_node="chief",
    )
    ran = time.time()
    nodes.train(rdd, 1)
    nodes.shutdown()
    reports = []
    for name in os.listdir(folder):
        if name.endswith(".json"):
            with open(os.path.join(folder, name)) as file:
                reports.append(json.load(file))
    if len(reports) != WORKERS:
        raise RuntimeError(f"{len(reports)} of {WORKERS} workers finished training")
    return {
        "epoch": max(report["end"] for report in reports) - start,
        "last_step": max(report["last_step"] for report in reports) - start,
        "run": ran - start,
        "fit": max(report["end"] - report["start"] for report in reports),
        "steps": [report["steps"] for report in reports],
    }


def measure_single(data):
    """Seconds of a fit in memory with the global batch of the two workers."""
    import numpy as np

    with np.load(data) as arrays:
        images = arrays["images"].reshape(-1, 28, 28, 1).astype(np.float32) / 255.0
        labels = arrays["labels"].astype(np.int64)
    model = build_model()
    start = time.time()
    model.fit(images, labels, batch_size=BATCH * WORKERS, epochs=1, verbose=2)
    return {"fit": time.time() - start}


def side(name):
    functions = {"versions": harness.versions}
    if name == "keras_single":
        harness.serve({**functions, "measure": measure_single})
        return
    function = train_original if name == "original" else train_ours
    with harness.LocalCluster() as cluster:
        functions["measure"] = lambda csv, rows, folder: measure(cluster, function, csv, rows, folder)
        harness.serve(functions)


def load(folder):
    """The 60,000 training digits: uint8 pixels (rows, 784) and labels."""
    if folder is None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf

        try:
            (images, labels), _ = tf.keras.datasets.mnist.load_data()
        except Exception as error:  # Keras raises no narrower one
            raise harness.BenchError(
                f"keras.datasets cannot fetch MNIST ({error}); set MNIST_DIR to a folder of the idx files, gzipped"
            ) from error
        return images.reshape(-1, 784), labels
    return digits.read_idx(folder)


def write_csv(images, labels, folder):
    """The form in which the example's data preparation leaves them: text, in ten files."""
    import numpy as np

    os.mkdir(folder)
    for index, part in enumerate(np.array_split(np.arange(len(labels)), PARTITIONS)):
        with open(os.path.join(folder, f"part-{index:05d}"), "w") as file:
            for row in part:
                file.write(f"{labels[row]}," + ",".join(map(str, images[row].tolist())) + "\n")


def compete(folder, rounds, data):
    import numpy as np

    images, labels = load(data)
    csv, arrays = os.path.join(folder, "csv"), os.path.join(folder, "mnist.npz")
    write_csv(images, labels, csv)
    np.savez(arrays, images=images, labels=labels)
    with harness.Side("original", original.python(), folder) as theirs, harness.Side(
        "ours", sys.executable, folder
    ) as ours, harness.Side("keras_single", sys.executable, folder) as single:
        harness.note(f"original: {theirs.ask('versions', harness.START_S)}")
        harness.check_same_versions((ours, single))
        results = {"original": [], "ours": [], "keras_single": []}
        for index, contender in enumerate(harness.turns((theirs, ours, single), rounds)):
            if contender is single:
                result = contender.ask("measure", EPOCH_S, data=arrays)
            else:
                result = contender.ask(
                    "measure", EPOCH_S, csv=csv, rows=len(labels),
                    folder=os.path.join(folder, str(index)),
                )
            if contender is ours and min(result["steps"]) < len(labels) / (BATCH * WORKERS):
                raise harness.BenchError(f"ours has left rows out: {result}")
            results[contender.name].append(result)
            harness.note(f"{contender.name}: {result}")
    for case, anchor, goal in (("epoch", "original", 4), ("last_step", "original", None), ("fit", "original", None), ("fit", "keras_single", 1 / 1.15)):
        ours_s, anchor_s = ([result[case] for result in results[name]] for name in ("ours", anchor))
        harness.print_line("mnist_epoch", case, "s", ours_s, anchor_s, anchor, goal)


if __name__ == "__main__":
    parser = harness.arguments(__doc__, rounds=3)
    parser.add_argument(
        "--data",
        default=os.environ.get("MNIST_DIR"),
        help="folder of the idx files, gzipped (default: $MNIST_DIR, else keras.datasets downloads them)",
    )
    options = parser.parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds, options.data)))

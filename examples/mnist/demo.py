# SPDX-License-Identifier: Apache-2.0
"""The demonstration: two Spark executors on this machine train on MNIST and then classify test digits."""

import argparse
import contextlib
import glob
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "keras"))
MASTER = "local-cluster[2,1,1024]"
WORKERS = 2
PARTITIONS = 10


class Phases:
    """Says what is being done, and remembers how long each thing took."""

    def __init__(self, names):
        self._names = names
        self.seconds = {}

    @contextlib.contextmanager
    def phase(self, name, text):
        print(f"[{len(self.seconds) + 1}/{len(self._names)}] {text}", flush=True)
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start

    def summary(self):
        times = [f"{name} {seconds:.1f}" for name, seconds in self.seconds.items()]
        return ", ".join([*times, f"all {sum(self.seconds.values()):.1f}"])


@contextlib.contextmanager
def errors_to(path):
    """Descriptor 2 goes to a file meanwhile: what the JVM inherits and writes to is that file, for its whole life."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with open(path, "wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def start_spark(log):
    """A context with two executor processes, on loopback alone."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(MASTER).setAppName("tfos demo").setAll([
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{HERE}/log4j2.properties"),
        ("spark.executorEnv.TF_CPP_MIN_LOG_LEVEL", "3"),
        ("spark.executorEnv.TF_ENABLE_ONEDNN_OPTS", "0"),
    ])
    try:
        with errors_to(log):
            return SparkContext(conf=conf)
    except Exception as error:
        with open(log, errors="replace") as file:
            lines = file.read().splitlines()
        raise SystemExit("\n".join([*lines[-20:], f"Spark did not start: {error}"])) from error


def clear(output):
    """Removes what an earlier run left, and nothing else."""
    import mnist_data_setup

    for name in (*mnist_data_setup.FORMATS, "model", "export", "predictions"):
        shutil.rmtree(os.path.join(output, name), ignore_errors=True)
    os.makedirs(output, exist_ok=True)


def prepare(sc, data, output):
    """The digits as CSV; returns how many there are for training and for the test."""
    import mnist_data_setup

    sc.addPyFile(mnist_data_setup.__file__)
    counts = []
    for split in ("train", "test"):
        images, labels = mnist_data_setup.read_digits(data, split)
        mnist_data_setup.save(sc, images, labels, output, split, PARTITIONS, ["csv"])
        counts.append(len(labels))
    return counts


def train(sc, args):
    from pyspark.sql import SparkSession

    import mnist_spark
    from tensorflowonspark import TFCluster

    cluster = TFCluster.run(
        sc, mnist_spark.main_fun, args, WORKERS, num_ps=0, input_mode=TFCluster.InputMode.SPARK, master_node="chief"
    )
    digits = mnist_spark.read_digits(SparkSession(sc), f"{args.output}/csv/train", "csv")
    cluster.train(digits, args.epochs, progress=True)
    cluster.shutdown()


def classify(sc, args):
    """Writes the predictions; returns [(label, prediction)] of all test digits, and the images of the first 25."""
    import mnist_spark_inference
    from tensorflowonspark import TFCluster

    rows = sc.textFile(f"{args.output}/csv/test").map(mnist_spark_inference.from_csv)
    cluster = TFCluster.run(
        sc, mnist_spark_inference.main_fun, args, WORKERS, num_ps=0, input_mode=TFCluster.InputMode.SPARK
    )
    folder = f"{args.output}/predictions"
    cluster.inference(rows).saveAsTextFile(folder)
    cluster.shutdown()
    lines = []
    for path in sorted(glob.glob(f"{folder}/part-*")):
        with open(path) as file:
            lines += file.readlines()
    # Spark reads files in an order of its own; results come in the order of the rows.
    return [tuple(map(int, line.split())) for line in lines], [pixels for pixels, _ in rows.take(25)]


def draw(args, results, images, path):
    """The loss of each ten steps, and the first 25 test digits with what the model made of them."""
    import matplotlib
    import numpy as np

    matplotlib.use("Agg")
    from matplotlib import pyplot

    step, loss, accuracy = np.loadtxt(f"{args.model_dir}/losses.csv", delimiter=",", skiprows=1, unpack=True, ndmin=2)
    figure = pyplot.figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.plot(step, loss, label="loss (mean of the epoch so far)")
    axes.plot(step, accuracy, label="accuracy (likewise)")
    axes.set(xlabel="step", ylim=(0, max(1.05, min(2.5, loss.max()))), title="Training on two Spark executors")
    axes.legend()
    right.suptitle("Test digits and predictions")
    for axes, image, (label, prediction) in zip(right.subplots(5, 5).flat, images, results):
        axes.imshow(np.reshape(image, (28, 28)), cmap="gray_r")
        right_answer = label == prediction
        axes.set_title(
            str(prediction) if right_answer else f"{prediction} (is {label})",
            fontsize=10, pad=2, color="black" if right_answer else "red",
        )
        axes.axis("off")
    figure.savefig(path, dpi=110)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--data", help="folder with the four idx files", default=os.path.join(HERE, "data"))
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--output", help="folder to write to", default=os.path.join("build", "demo"))
    args = parser.parse_args()
    args.data, args.output = os.path.abspath(args.data), os.path.abspath(args.output)
    args.model_dir, args.export_dir = f"{args.output}/model", f"{args.output}/export"
    args.verbose = False
    return args


def main():
    args = parse_arguments()
    clear(args.output)
    log, picture = f"{args.output}/spark.log", f"{args.output}/demo.png"
    phases = Phases(["spark", "data", "training", "inference", "picture"])

    with phases.phase("spark", f"Spark starts: {MASTER}"):
        sc = start_spark(log)
    try:
        import mnist_spark
        import mnist_spark_inference

        mnist_spark.add_files(sc)
        sc.addPyFile(mnist_spark_inference.__file__)
        with phases.phase("data", "MNIST digits become CSV files"):
            training, test = prepare(sc, args.data, args.output)
        with phases.phase("training", f"{WORKERS} workers train: {args.epochs} epochs of {training:,} digits, a DataFrame fed by Spark"):
            train(sc, args)
        with phases.phase("inference", f"{WORKERS} nodes classify {test:,} test digits"):
            results, images = classify(sc, args)
    finally:
        sc.stop()
    with phases.phase("picture", "A picture of it"):
        draw(args, results, images, picture)

    correct = sum(label == prediction for label, prediction in results)
    print(f"\naccuracy     {correct / len(results):.4f} ({correct:,} of {len(results):,} test digits)")
    print(f"seconds      {phases.summary()}")
    for name, path in (
        ("model", args.export_dir), ("checkpoints", args.model_dir), ("event files", args.model_dir),
        ("predictions", f"{args.output}/predictions"), ("picture", picture),
    ):
        print(f"{name:<12} {os.path.relpath(path)}")


if __name__ == "__main__":
    main()

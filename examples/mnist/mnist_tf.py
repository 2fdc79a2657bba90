# SPDX-License-Identifier: Apache-2.0
"""Trains on MNIST digits that the workers read for themselves (InputMode.TENSORFLOW).

    spark-submit mnist_tf.py --cluster_size 2                                            the digits in data/, as idx files
    spark-submit mnist_tf.py --cluster_size 2 --images_labels data/mnist/csv/train       CSV, local or on HDFS
    spark-submit mnist_tf.py --cluster_size 2 --images_labels data/mnist/tfrecord/train  TFRecord files

Each worker takes every n-th row, n being the number of workers.
"""

import argparse
import os

import mnist_data_setup
import mnist_model


def main_fun(args, ctx):
    """Runs on each worker."""
    import tensorflow as tf

    own = read_rows(args.images_labels, ctx).shard(ctx.num_workers, ctx.executor_id)
    own = own.shuffle(args.buffer_size)
    if args.steps_per_epoch:
        own = own.repeat()
    own = own.batch(args.batch_size).map(mnist_model.scale).prefetch(tf.data.AUTOTUNE)
    mnist_model.train(own, args, ctx, args.steps_per_epoch)


def read_rows(path, ctx):
    """A dataset of (784 pixels, label) from a folder of CSV files, TFRecord files or idx files."""
    import tensorflow as tf

    files = tf.io.gfile.glob(ctx.absolute_path(path) + "/part-*")
    if not files:
        images, labels = mnist_data_setup.read_digits(path, "train")
        return tf.data.Dataset.from_tensor_slices((images, labels.astype("int64")))

    if all(file.endswith(".tfrecord") for file in files):
        features = {"pixels": tf.io.FixedLenFeature([784], tf.int64), "label": tf.io.FixedLenFeature([], tf.int64)}

        def parse_example(record):
            found = tf.io.parse_single_example(record, features)
            return found["pixels"], found["label"]

        return tf.data.TFRecordDataset(sorted(files)).map(parse_example)

    def parse(line):
        numbers = tf.strings.to_number(tf.strings.split(line, ","), tf.int64)
        return tf.ensure_shape(numbers[1:], [784]), numbers[0]

    return tf.data.TextLineDataset(sorted(files)).map(parse)


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("mnist_tf"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--buffer_size", help="rows among which to shuffle", type=int, default=10000)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--images_labels", help="folder of CSV, TFRecord or idx files", default=mnist_data_setup.DATA)
    parser.add_argument("--model_dir", help="where checkpoints and event files go", default="mnist_model")
    parser.add_argument("--export_dir", help="where the SavedModel goes", default="mnist_export")
    parser.add_argument("--steps_per_epoch", help="steps of an epoch; without it, as many as the rows make", type=int)
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args = parser.parse_args()
    args.verbose = True
    print("args:", args)

    folder = os.path.dirname(os.path.abspath(__file__))
    for name in ("mnist_data_setup.py", "mnist_model.py"):
        sc.addPyFile(os.path.join(folder, name))
    cluster = TFCluster.run(
        sc, main_fun, args, args.cluster_size, num_ps=0, tensorboard=args.tensorboard,
        input_mode=TFCluster.InputMode.TENSORFLOW, log_dir=args.model_dir, master_node="chief",
    )
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()

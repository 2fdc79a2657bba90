# SPDX-License-Identifier: Apache-2.0
"""Trains on MNIST digits that the workers read for themselves (InputMode.TENSORFLOW).

    spark-submit mnist_tf.py --cluster_size 2                                        the digits in ../data, as idx files
    spark-submit mnist_tf.py --cluster_size 2 --images_labels data/mnist/csv/train   CSV, local or on HDFS

Each worker takes every n-th row, n being the number of workers. ``mnist_tf_ds.py`` reads TFRecord files.
"""

import argparse
import os

import mnist_model

SETUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "mnist_data_setup.py")


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
    """A dataset of (784 pixels, label) from a folder of CSV files or idx files."""
    import tensorflow as tf

    files = tf.io.gfile.glob(ctx.absolute_path(path) + "/part-*")
    if not files:
        import mnist_data_setup

        images, labels = mnist_data_setup.read_digits(path, "train")
        return tf.data.Dataset.from_tensor_slices((images, labels.astype("int64")))

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
    parser.add_argument("--images_labels", help="folder of CSV or idx files", default=os.path.join(os.path.dirname(SETUP), "data"))
    parser.add_argument("--model_dir", help="where checkpoints and event files go", default="mnist_model")
    parser.add_argument("--export_dir", help="where the SavedModel goes", default="mnist_export")
    parser.add_argument("--steps_per_epoch", help="steps of an epoch; without it, as many as the rows make", type=int)
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args = parser.parse_args()
    print("args:", args)

    sc.addPyFile(SETUP)
    sc.addPyFile(mnist_model.__file__)
    cluster = TFCluster.run(
        sc, main_fun, args, args.cluster_size, num_ps=0, tensorboard=args.tensorboard,
        input_mode=TFCluster.InputMode.TENSORFLOW, log_dir=args.model_dir, master_node="chief",
    )
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()

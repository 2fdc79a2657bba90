# SPDX-License-Identifier: Apache-2.0
"""Trains on TFRecord files that the workers read for themselves (InputMode.TENSORFLOW), wherever they were written.

    spark-submit mnist_tf_ds.py --cluster_size 2 --images_labels data/mnist/tfr/train
    spark-submit mnist_tf_ds.py --cluster_size 2 --images_labels 'mnist/3.0.1/mnist-train.tfrecord*' --data_format tfds

``tfos`` is what mnist_data_setup.py writes, and TensorFlowOnSpark's of any version: ``image``, 784 ints, and ``label``, one int or ten of which one is 1.
``tfds`` is what tensorflow_datasets downloads: ``image`` is a PNG. Every record goes to one worker, also where there are fewer files than workers.
"""

import argparse

import mnist_model


def main_fun(args, ctx):
    """Runs on each worker."""
    import tensorflow as tf

    pattern = ctx.absolute_path(args.images_labels)
    files = sorted(tf.io.gfile.glob(f"{pattern}/part-*" if tf.io.gfile.isdir(pattern) else pattern))
    if not files:
        raise FileNotFoundError(f"--images_labels: there are no files at {pattern}")
    parse = {"tfos": parse_tfos, "tfds": parse_tfds}[args.data_format]
    records = tf.data.TFRecordDataset(files).shard(ctx.num_workers, ctx.worker_num)
    rows = records.map(parse, num_parallel_calls=tf.data.AUTOTUNE).shuffle(args.buffer_size).batch(args.batch_size)
    mnist_model.train(rows.map(mnist_model.scale).prefetch(tf.data.AUTOTUNE), args, ctx)


def parse_tfos(record):
    """784 pixels and the label of an Example."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([784], tf.int64), "label": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    found = tf.io.parse_single_example(record, features)
    label = found["label"]
    return found["image"], tf.where(tf.size(label) == 1, label[0], tf.argmax(label))


def parse_tfds(record):
    """The same of an Example with a PNG."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_single_example(record, features)
    return tf.reshape(tf.io.decode_png(found["image"], channels=1), [784]), found["label"]


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("mnist_tf_ds"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--buffer_size", help="rows among which to shuffle", type=int, default=10000)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--data_format", help="who wrote the records", choices=["tfos", "tfds"], default="tfos")
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--images_labels", help="folder, or pattern, of TFRecord files", required=True)
    parser.add_argument("--model_dir", help="where checkpoints and event files go", default="mnist_model")
    parser.add_argument("--export_dir", help="where the SavedModel goes", default="mnist_export")
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args = parser.parse_args()
    print("args:", args)

    sc.addPyFile(mnist_model.__file__)
    cluster = TFCluster.run(
        sc, main_fun, args, args.cluster_size, num_ps=0, tensorboard=args.tensorboard,
        input_mode=TFCluster.InputMode.TENSORFLOW, log_dir=args.model_dir, master_node="chief",
    )
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()

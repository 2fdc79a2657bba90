# SPDX-License-Identifier: Apache-2.0
"""Classifies MNIST digits that Spark feeds, with the SavedModel that training left, on the nodes of a cluster.

    spark-submit mnist_spark_inference.py --cluster_size 2 --images_labels data/mnist/csv/test --export_dir mnist_export

Each line of the output has the label and the prediction, in the order of the input.
"""

import argparse


def from_csv(line):
    """The row ``([784 ints], label)`` of a line."""
    label, *pixels = map(int, line.split(","))
    return pixels, label


def main_fun(args, ctx):
    """Runs on each node: answers every row fed to it with a line "label prediction"."""
    import numpy as np
    import tensorflow as tf

    # The variable keeps the model's functions alive.
    saved_model = tf.saved_model.load(ctx.absolute_path(args.export_dir))
    predict = saved_model.signatures["serving_default"]

    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        arrays = feed.next_arrays(args.batch_size)
        if arrays is None:
            break
        images, labels = arrays
        images = images.reshape(-1, 28, 28, 1).astype("float32") / 255.0
        probabilities = next(iter(predict(image=tf.constant(images)).values()))
        answers = np.argmax(probabilities, axis=1)
        feed.batch_results([f"{label} {answer}" for label, answer in zip(labels, answers)])


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("mnist_spark_inference"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows of a batch", type=int, default=128)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--images_labels", help="folder of CSV files", required=True)
    parser.add_argument("--export_dir", help="where the SavedModel is", default="mnist_export")
    parser.add_argument("--output", help="where the predictions go", default="predictions")
    args = parser.parse_args()
    print("args:", args)

    rows = sc.textFile(args.images_labels).map(from_csv)
    cluster = TFCluster.run(sc, main_fun, args, args.cluster_size, num_ps=0, input_mode=TFCluster.InputMode.SPARK)
    cluster.inference(rows).saveAsTextFile(args.output)
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()

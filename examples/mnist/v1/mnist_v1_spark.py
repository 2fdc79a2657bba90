# SPDX-License-Identifier: Apache-2.0
"""MNIST in TensorFlow 1's style, fed by Spark (InputMode.SPARK): a parameter server, and workers that do not wait for each other.

    spark-submit mnist_v1_spark.py --cluster_size 3 --format tfr --images data/mnist/tfr/train
    spark-submit mnist_v1_spark.py --cluster_size 3 --images data/mnist/csv/train/images --labels data/mnist/csv/train/labels
    spark-submit mnist_v1_spark.py --cluster_size 3 --mode inference --format tfr --images data/mnist/tfr/test

CSV without ``--labels`` has the label before the pixels of each line.
"""

import argparse
import time

import mnist_v1_graph


def map_fun(args, ctx):
    """Runs on each node."""
    import tensorflow as tf

    cluster, server = ctx.start_cluster_server(1, args.rdma)
    if ctx.job_name == "ps":
        server.join()
    training = args.mode == "train"
    feed = ctx.get_data_feed(training)
    with mnist_v1_graph.on_worker(cluster, ctx):
        network = mnist_v1_graph.build()
        settings = {} if training else {"save_checkpoint_secs": None, "save_checkpoint_steps": None}
        hooks = [tf.compat.v1.train.StopAtStepHook(last_step=args.steps)] if training else []
        with tf.compat.v1.train.MonitoredTrainingSession(
            server.target, is_chief=ctx.task_index == 0, checkpoint_dir=ctx.absolute_path(args.model), hooks=hooks, **settings
        ) as session:
            while not session.should_stop() and not feed.should_stop():
                rows = feed.next_batch(args.batch_size)
                if rows and training:
                    mnist_v1_graph.train_step(ctx, session, network, rows)
                elif rows:
                    answer(session, network, feed, rows)
        if training:
            feed.terminate()
    ctx.agree("done", True)  # a worker's session needs the others' servers


def answer(session, network, feed, rows):
    """A line for each of the rows."""
    images, labels = mnist_v1_graph.arrays_of(rows)
    found = session.run([network.label, network.prediction], {network.images: images, network.labels: labels})
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    feed.batch_results([f"{now} Label: {label}, Prediction: {prediction}" for label, prediction in zip(*found)])


def read(spark, args):
    """An RDD of (784 pixels, label or ten numbers one of which is 1)."""
    from tensorflowonspark import tfrecord

    sc = spark.sparkContext
    if args.format == "tfr":
        tfrecord.add_to(spark)
        return spark.read.format("tfrecord").load(args.images).select("image", "label").rdd.map(tuple)
    lines = sc.textFile(args.images).map(lambda line: list(map(int, line.split(","))))
    if not args.labels:
        return lines.map(lambda numbers: (numbers[1:], numbers[0]))
    return lines.zip(sc.textFile(args.labels).map(lambda line: list(map(float, line.split(",")))))


def main():
    from pyspark.sql import SparkSession

    from tensorflowonspark import TFCluster

    spark = SparkSession.builder.appName("mnist_v1_spark").getOrCreate()
    sc = spark.sparkContext
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mnist_v1_graph.add_arguments(parser, int(sc.getConf().get("spark.executor.instances", "1")))
    parser.add_argument("--format", help="of the data", choices=["csv", "tfr"], default="csv")
    parser.add_argument("--images", help="folder of the images", required=True)
    parser.add_argument("--labels", help="folder of their labels, where these are in files of their own")
    args = parser.parse_args()
    print("args:", args)

    sc.addPyFile(mnist_v1_graph.__file__)
    rows = read(spark, args)
    cluster = TFCluster.run(sc, map_fun, args, args.cluster_size, 1, args.tensorboard, TFCluster.InputMode.SPARK)
    if args.mode == "train":
        cluster.train(rows, args.epochs)
    else:
        cluster.inference(rows).saveAsTextFile(args.output)
    cluster.shutdown()
    spark.stop()


if __name__ == "__main__":
    main()

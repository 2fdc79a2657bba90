# SPDX-License-Identifier: Apache-2.0
"""MNIST in TensorFlow 1's style on a stream of Spark: files that appear in a folder are trained on until ``--steps`` are done.

    spark-submit mnist_v1_streaming.py --cluster_size 3 --images stream --interval 10
    mv data/mnist/csv2/train/part-00000 stream/

A line is ``label|pixel,pixel,...``. Files are to be moved into the folder: Spark reads what is new and whole. Ctrl-C ends it, too.
"""

import argparse

import mnist_v1_graph


def map_fun(args, ctx):
    """Runs on each node."""
    import tensorflow as tf

    tf.compat.v1.disable_eager_execution()  # in the supervisor's threads, too
    cluster, server = ctx.start_cluster_server(1, args.rdma)
    if ctx.job_name == "ps":
        server.join()
    feed = ctx.get_data_feed()
    with mnist_v1_graph.on_worker(cluster, ctx):
        network = mnist_v1_graph.build()
        supervisor = tf.compat.v1.train.Supervisor(
            is_chief=ctx.task_index == 0, logdir=ctx.absolute_path(args.model), global_step=network.global_step, summary_op=None, save_model_secs=10
        )
        step = 0
        with supervisor.managed_session(server.target) as session:
            while step < args.steps and not supervisor.should_stop() and not feed.should_stop():
                rows = feed.next_batch(args.batch_size)
                if rows:
                    step = mnist_v1_graph.train_step(ctx, session, network, rows)
            feed.terminate()
            if ctx.task_index == 0:
                supervisor.saver.save(session, supervisor.save_path, global_step=network.global_step)
            ctx.agree("done", True)  # a worker's session needs the others' servers


def parse(line):
    """(784 pixels, ten numbers one of which is 1) of a line."""
    label, pixels = line.split("|")
    return list(map(int, pixels.split(","))), [float(digit == int(label)) for digit in range(mnist_v1_graph.DIGITS)]


def main():
    from pyspark import SparkConf, SparkContext
    from pyspark.streaming import StreamingContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("mnist_v1_streaming"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mnist_v1_graph.add_arguments(parser, int(sc.getConf().get("spark.executor.instances", "1")))
    parser.add_argument("--images", help="folder to watch", required=True)
    parser.add_argument("--interval", help="seconds between batches of Spark", type=int, default=60)
    args = parser.parse_args()
    print("args:", args)

    sc.addPyFile(mnist_v1_graph.__file__)
    ssc = StreamingContext(sc, args.interval)
    cluster = TFCluster.run(sc, map_fun, args, args.cluster_size, 1, args.tensorboard, TFCluster.InputMode.SPARK)
    cluster.train(ssc.textFileStream(args.images).map(parse))
    ssc.start()
    cluster.shutdown(ssc)
    sc.stop()


if __name__ == "__main__":
    main()

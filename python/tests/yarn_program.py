# SPDX-License-Identifier: Apache-2.0
"""What test_yarn submits: feeds a cluster whose size is the application's, and leaves what its trainers saw on HDFS.

usage: yarn_program.py RUN (the name of a folder of the user's on HDFS) feed|wait (for ever) PIDS (a local folder, which gets a file a trainer)
"""

import os
import sys


def main_fun(args, ctx):
    import tensorflow as tf

    from tensorflowonspark import TFNode

    _, run, what, pids = args
    folder = ctx.absolute_path(run)
    with open(os.path.join(pids, str(os.getpid())), "w"):
        print(f"trainer {ctx.executor_id} writes to {folder}", flush=True)
    while what == "wait":
        TFNode.DataFeed(ctx.mgr).next_batch(1)
    count = total = 0
    for row, weight in ctx.get_dataset(100, uneven="pad"):
        count += 1
        total += int(tf.reduce_sum(tf.cast(row["id"], tf.float64) * tf.cast(weight, tf.float64)))
    with tf.io.gfile.GFile(f"{folder}/{ctx.executor_id}", "w") as file:
        file.write(f"{count} {total} {sys.executable}")


def main():
    from pyspark.sql import SparkSession

    from tensorflowonspark import TFCluster

    spark = SparkSession.builder.getOrCreate()
    cluster = TFCluster.run(spark, main_fun, sys.argv, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(spark.range(0, 1000, 1, 3), 1)
    cluster.shutdown()
    spark.stop()


if __name__ == "__main__":
    main()

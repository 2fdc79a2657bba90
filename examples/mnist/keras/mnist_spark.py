# SPDX-License-Identifier: Apache-2.0
"""Trains on MNIST digits that Spark feeds (InputMode.SPARK), the workers in step.

    spark-submit mnist_spark.py --cluster_size 2 --images_labels data/mnist/csv/train
    spark-submit mnist_spark.py --cluster_size 2 --images_labels data/mnist/tfr/train --format tfr

Every row is used, however unevenly Spark deals them out: ``uneven="pad"`` lets all workers agree on the end of an epoch.
"""

import argparse
import os

import mnist_model

FORMATS = ("csv", "tfr", "pickle")
SCHEMA = "image array<smallint>, label smallint"


def main_fun(args, ctx):
    """Runs on each worker."""
    dataset = ctx.get_dataset(args.batch_size, uneven="pad", shapes={"image": (28, 28, 1)})
    mnist_model.train(dataset.map(mnist_model.scale_row), args, ctx)


def read_digits(spark, path, kind):
    """A DataFrame of ``image``, 784 numbers, and ``label``."""
    from tensorflowonspark import tfrecord

    if kind == "pickle":
        return spark.createDataFrame(spark.sparkContext.pickleFile(path), SCHEMA)
    if kind == "tfr":
        tfrecord.add_to(spark)
        return spark.read.format("tfrecord").schema(SCHEMA).load(path)
    numbers = spark.read.text(path).selectExpr("cast(split(value, ',') AS array<smallint>) AS numbers")
    return numbers.selectExpr("slice(numbers, 2, 784) AS image", "numbers[0] AS label")


def add_files(sc):
    """Sends the modules of this example to the executors."""
    for path in (mnist_model.__file__, __file__):
        sc.addPyFile(os.path.abspath(path))


def main():
    from pyspark.sql import SparkSession

    from tensorflowonspark import TFCluster

    spark = SparkSession.builder.appName("mnist_spark").getOrCreate()
    sc = spark.sparkContext
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--format", help="of the rows", choices=FORMATS, default="csv")
    parser.add_argument("--images_labels", help="folder that mnist_data_setup.py wrote", required=True)
    parser.add_argument("--model_dir", help="where checkpoints and event files go", default="mnist_model")
    parser.add_argument("--export_dir", help="where the SavedModel goes", default="mnist_export")
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args = parser.parse_args()
    print("args:", args)

    add_files(sc)
    cluster = TFCluster.run(
        sc, main_fun, args, args.cluster_size, num_ps=0, tensorboard=args.tensorboard,
        input_mode=TFCluster.InputMode.SPARK, log_dir=args.model_dir, master_node="chief",
    )
    cluster.train(read_digits(spark, args.images_labels, args.format), args.epochs)
    cluster.shutdown()
    spark.stop()


if __name__ == "__main__":
    main()

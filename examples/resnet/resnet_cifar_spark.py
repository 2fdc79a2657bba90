# SPDX-License-Identifier: Apache-2.0
"""Trains a ResNet on CIFAR-10, the workers in step, each with its part of the files.

    spark-submit resnet_cifar_spark.py --cluster_size 2 --data_dir /shared/cifar-10-batches-bin --train_epochs 182

Flags that are not listed here are those of resnet_cifar_dist.py.
"""

import argparse

import resnet_cifar_dist


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("resnet_cifar"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--num_ps", help="number of parameter servers, which nothing here uses", type=int, default=0)
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args, rest = parser.parse_known_args()
    resnet_cifar_dist.parse_arguments(rest)  # what is wrong is said here

    sc.addPyFile(resnet_cifar_dist.__file__)
    cluster = TFCluster.run(
        sc, resnet_cifar_dist.main_fun, rest, args.cluster_size, args.num_ps, args.tensorboard, TFCluster.InputMode.TENSORFLOW, master_node="chief"
    )
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""MNIST as stages of Spark ML: an Estimator that trains, and a Model that classifies the columns of a DataFrame.

    spark-submit mnist_pipeline.py --mode train --cluster_size 2 --images_labels data/mnist/csv/train
    spark-submit mnist_pipeline.py --mode inference --images_labels data/mnist/tfr/test --format tfr

Inference writes lines of JSON with ``label``, ``prediction`` (ten scores) and ``argmax``.
"""

import argparse

import mnist_spark


def train(df, args):
    from tensorflowonspark.pipeline import TFEstimator

    estimator = (
        TFEstimator(mnist_spark.main_fun, args)
        .setInputMapping({"image": "image", "label": "label"})
        .setModelDir(args.model_dir)
        .setExportDir(args.export_dir)
        .setClusterSize(args.cluster_size)
        .setMasterNode("chief")
        .setTensorboard(args.tensorboard)
        .setEpochs(args.epochs)
        .setBatchSize(args.batch_size)
    )
    return estimator.fit(df)


def classify(df, args):
    """A DataFrame with the label, ten scores, and the digit that has the highest."""
    from tensorflowonspark.pipeline import TFModel

    model = (
        TFModel(args)
        .setInputMapping({"image": "image"})
        .setOutputMapping({"output_0": "prediction"})
        .setKeep(["label"])
        .setSignatureDefKey("serving_default")
        .setExportDir(args.export_dir)
        .setBatchSize(args.batch_size)
    )
    images = df.selectExpr("label", "transform(image, pixel -> cast(pixel AS float) / 255) AS image")
    return model.transform(images).selectExpr("*", "array_position(prediction, array_max(prediction)) - 1 AS argmax")


def shared(sc, path):
    """The path as driver and executors all see it."""
    path = sc._jvm.org.apache.hadoop.fs.Path(path)
    return path.getFileSystem(sc._jsc.hadoopConfiguration()).makeQualified(path).toString()


def main():
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("mnist_pipeline").getOrCreate()
    sc = spark.sparkContext
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--format", help="of the rows", choices=mnist_spark.FORMATS, default="csv")
    parser.add_argument("--images_labels", help="folder that mnist_data_setup.py wrote", required=True)
    parser.add_argument("--mode", help="what to do", choices=["train", "inference"], default="train")
    parser.add_argument("--model_dir", help="where checkpoints and event files go", default="mnist_model")
    parser.add_argument("--export_dir", help="where the SavedModel goes", default="mnist_export")
    parser.add_argument("--output", help="where the predictions go", default="predictions")
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args = parser.parse_args()
    args.export_dir = shared(sc, args.export_dir)
    print("args:", args)

    mnist_spark.add_files(sc)
    df = mnist_spark.read_digits(spark, args.images_labels, args.format)
    if args.mode == "train":
        train(df, args)
    else:
        predictions = classify(df, args).cache()
        predictions.select("label", "argmax").show()
        predictions.write.json(args.output)
    spark.stop()


if __name__ == "__main__":
    main()

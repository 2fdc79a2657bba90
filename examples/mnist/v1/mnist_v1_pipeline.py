# SPDX-License-Identifier: Apache-2.0
"""MNIST in TensorFlow 1's style as stages of Spark ML: an Estimator with a parameter server, and a Model that classifies in one of three ways.

    spark-submit mnist_v1_pipeline.py --train --cluster_size 3 --format tfr --images data/mnist/tfr/train
    spark-submit mnist_v1_pipeline.py --inference_mode signature --format tfr --images data/mnist/tfr/test
    spark-submit mnist_v1_pipeline.py --inference_mode checkpoint --inference_output features --format tfr --images data/mnist/tfr/test

``signature`` takes the SavedModel by its signatures, ``direct`` by its tensors' names, ``checkpoint`` the checkpoint with its graph. ``predictions`` are
digits, ``features`` the 128 numbers of the hidden layer. The output has a line of JSON for each row.
"""

import argparse

import mnist_v1_graph
import mnist_v1_spark

INFERENCE_MODES = ["none", "signature", "direct", "checkpoint"]


def train_fun(args, ctx):
    """Runs on each node."""
    import tensorflow as tf

    cluster, server = ctx.start_cluster_server(1, args.protocol == "rdma")
    if ctx.job_name == "ps":
        server.join()
    feed = ctx.get_data_feed(input_mapping=args.input_mapping)
    with mnist_v1_graph.on_worker(cluster, ctx):
        network = mnist_v1_graph.build()
        hooks = [tf.compat.v1.train.StopAtStepHook(last_step=args.steps)]
        with tf.compat.v1.train.MonitoredTrainingSession(
            server.target, is_chief=ctx.task_index == 0, checkpoint_dir=ctx.absolute_path(args.model_dir), hooks=hooks
        ) as session:
            while not session.should_stop() and not feed.should_stop():
                columns = feed.next_batch(args.batch_size)
                if columns["label"]:
                    mnist_v1_graph.train_step(ctx, session, network, list(zip(columns["image"], columns["label"])))
    feed.terminate()
    if ctx.task_index == 0:
        mnist_v1_graph.export(ctx, args.model_dir, args.export_dir, {"serving_default": "prediction", "featurize": "features"})
    ctx.agree("done", True)  # a worker's session needs the others' servers


def train(df, args):
    from tensorflowonspark.pipeline import TFEstimator

    estimator = (
        TFEstimator(train_fun, args)
        .setInputMapping({"image": "image", "label": "label"})
        .setModelDir(args.model_dir)
        .setExportDir(args.export_dir)
        .setClusterSize(args.cluster_size)
        .setNumPS(args.num_ps)
        .setMasterNode(None)
        .setProtocol(args.protocol)
        .setTensorboard(args.tensorboard)
        .setEpochs(args.epochs)
        .setBatchSize(args.batch_size)
        .setSteps(args.steps)
    )
    return estimator.fit(df)


def set_inference_mode(model, args):
    """Sets where the model is, and names of tensors, as ``--inference_mode`` and ``--inference_output`` say."""
    output, signature = {"predictions": ("prediction", "serving_default"), "features": ("features", "featurize")}[args.inference_output]
    model.setModelDir(None).setExportDir(args.export_dir).setTagSet("serve").setSignatureDefKey(None)
    if args.inference_mode == "checkpoint":
        model.setModelDir(args.model_dir).setExportDir(None).setTagSet(None)
    elif args.inference_mode == "signature":
        model.setSignatureDefKey(signature)
    return model.setInputMapping({"image": "image"}).setOutputMapping({output: args.inference_output}).setKeep(["label"])


def main():
    from pyspark.sql import SparkSession

    from tensorflowonspark.pipeline import TFModel

    spark = SparkSession.builder.appName("mnist_v1_pipeline").getOrCreate()
    sc = spark.sparkContext
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mnist_v1_graph.add_cluster_arguments(parser, int(sc.getConf().get("spark.executor.instances", "1")))
    parser.add_argument("--export_dir", help="where the SavedModel goes, or is", default="mnist_export")
    parser.add_argument("--format", help="of the data", choices=["csv", "tfr"], default="csv")
    parser.add_argument("--images", help="folder of the images", required=True)
    parser.add_argument("--inference_mode", help="what to classify by", choices=INFERENCE_MODES, default="none")
    parser.add_argument("--inference_output", help="what to write", choices=["predictions", "features"], default="predictions")
    parser.add_argument("--labels", help="folder of their labels, where these are in files of their own")
    parser.add_argument("--model_dir", help="where checkpoints go, or are", default="mnist_model")
    parser.add_argument("--num_ps", help="number of parameter servers", type=int, default=1)
    parser.add_argument("--output", help="where the predictions go", default="predictions")
    parser.add_argument("--protocol", help="between the nodes", choices=["grpc", "rdma"], default="grpc")
    parser.add_argument("--train", help="train first; else the model is there", action="store_true")
    args = parser.parse_args()
    print("args:", args)

    sc.addPyFile(mnist_v1_graph.__file__)
    sc.addPyFile(mnist_v1_spark.__file__)
    df = mnist_v1_spark.read(spark, args).toDF(["image", "label"])
    model = train(df, args) if args.train else TFModel(args)
    if args.inference_mode != "none":
        images = df.selectExpr("transform(image, pixel -> pixel / 255) AS image", "label")
        set_inference_mode(model, args).transform(images).write.json(args.output)
    spark.stop()


if __name__ == "__main__":
    main()

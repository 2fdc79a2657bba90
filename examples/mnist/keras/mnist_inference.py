# SPDX-License-Identifier: Apache-2.0
"""Classifies MNIST digits in TFRecord files, each executor for itself: it loads the SavedModel, reads its part of the files, writes one of predictions.

    spark-submit mnist_inference.py --cluster_size 2 --images_labels data/mnist/tfr/test --export_dir mnist_export

Each line of the output has the label and the prediction.
"""

import argparse


def inference(args, ctx):
    """Runs on each executor."""
    import numpy as np
    import tensorflow as tf

    # The variable keeps the model's functions alive.
    saved_model = tf.saved_model.load(ctx.absolute_path(args.export_dir))
    predict = saved_model.signatures["serving_default"]
    features = {"image": tf.io.FixedLenFeature([784], tf.int64), "label": tf.io.FixedLenFeature([], tf.int64)}
    files = sorted(tf.io.gfile.glob(ctx.absolute_path(args.images_labels) + "/part-*"))
    batches = tf.data.TFRecordDataset(files).shard(ctx.num_workers, ctx.worker_num).batch(128)

    output = ctx.absolute_path(args.output)
    tf.io.gfile.makedirs(output)
    with tf.io.gfile.GFile(f"{output}/part-{ctx.worker_num:05d}", "w") as file:
        for rows in batches.map(lambda records: tf.io.parse_example(records, features)):
            images = tf.reshape(tf.cast(rows["image"], tf.float32), [-1, 28, 28, 1]) / 255.0
            answers = np.argmax(predict(image=images)["output_0"], axis=1)
            file.write("".join(f"{label} {answer}\n" for label, answer in zip(rows["label"].numpy(), answers)))


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFParallel

    sc = SparkContext(conf=SparkConf().setAppName("mnist_inference"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster_size", help="number of instances", type=int, default=executors)
    parser.add_argument("--images_labels", help="folder of TFRecord files", required=True)
    parser.add_argument("--export_dir", help="where the SavedModel is", default="mnist_export")
    parser.add_argument("--output", help="where the predictions go", default="predictions")
    args = parser.parse_args()
    print("args:", args)

    TFParallel.run(sc, inference, args, args.cluster_size)
    sc.stop()


if __name__ == "__main__":
    main()

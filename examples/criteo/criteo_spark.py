# SPDX-License-Identifier: Apache-2.0
"""Learns from Criteo's logs which advertisement is clicked: logistic regression on hashed features and on pairs of them.

    spark-submit criteo_spark.py --cluster_size 2                                               made-up logs
    spark-submit criteo_spark.py --cluster_size 4 --data train --validation day_23 --model ...  Criteo's own
    spark-submit criteo_spark.py --mode inference --data day_23 --model ...                     click probabilities

A line of the logs is a label, 13 integers and 26 words, divided by tabs; any but the label may be missing. Hashing is part of the model, so that the SavedModel
takes integers and words as they are.
"""

import argparse

NUMBERS, WORDS = 13, 26
BINS = 1 << 15  # of each column of words, and of all pairs together
BOUNDARIES = [-0.5] + [1.5**power - 0.51 for power in range(40)]
MISSING = -1


def main_fun(args, ctx):
    """Runs on each worker."""
    import keras

    from tensorflowonspark import compat
    from tensorflowonspark.keras import distribute

    keras.utils.set_random_seed(1)
    model = build_model()
    model.compile(keras.optimizers.Adam(args.rate), "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
    model = distribute(model)
    shapes = {"numbers": (NUMBERS,), "words": (WORDS,)}
    rows = ctx.get_dataset(args.batch_size, uneven="pad", shapes=shapes, shuffle_buffer=args.buffer_size)
    validation = ctx.get_dataset(args.batch_size, uneven="pad", shapes=shapes, split="validation")

    def prepare(row, weight):
        return {"numbers": row["numbers"], "words": row["words"]}, row["label"][:, None], weight

    folder = ctx.absolute_path(args.model)
    callbacks = [keras.callbacks.TensorBoard(folder + "/events", profile_batch=0)] if args.tensorboard else []
    history = model.fit(rows.map(prepare), epochs=args.epochs, validation_data=validation.map(prepare), callbacks=callbacks,
                        verbose=2 if ctx.job_name == "chief" else 0)
    if ctx.job_name == "chief":
        compat.export_saved_model(model, folder + "/export", True)
    return history.history["val_auc"]


def build_model():
    """The sum of a weight for each column's value and each pair of values: an embedding of one dimension, of which a step changes those that occur."""
    import keras
    import tensorflow as tf

    pairs = [(one, other) for one in range(NUMBERS + WORDS) for other in range(one)]

    class Features(keras.layers.Layer):
        """The numbers of a row's weights; 0 for what is missing."""

        def call(self, numbers, words):
            sizes = tf.raw_ops.Bucketize(input=numbers, boundaries=BOUNDARIES)
            texts = tf.concat([tf.where(numbers == MISSING, "", tf.strings.as_string(sizes)), words], 1)
            named = tf.constant([f"{column}:" for column in range(NUMBERS + WORDS)]) + texts
            places = tf.strings.to_hash_bucket_fast(named, BINS) + BINS * tf.range(NUMBERS + WORDS, dtype=tf.int64)
            left, right = (tf.gather(named, side, axis=1) for side in zip(*pairs))
            crossed = tf.strings.to_hash_bucket_fast(tf.strings.join([left, right], "&"), BINS) + BINS * (NUMBERS + WORDS)
            present = texts != ""
            both = tf.gather(present, [one for one, _ in pairs], axis=1) & tf.gather(present, [other for _, other in pairs], axis=1)
            return tf.concat([tf.where(present, places + 1, 0), tf.where(both, crossed + 1, 0)], 1)

        def compute_output_spec(self, numbers, words):
            return keras.KerasTensor((None, NUMBERS + WORDS + len(pairs)), "int64")

    numbers = keras.Input((NUMBERS,), name="numbers", dtype="int32")
    words = keras.Input((WORDS,), name="words", dtype="string")
    weights = keras.layers.Embedding(1 + BINS * (NUMBERS + WORDS + 1), 1, embeddings_initializer="zeros")
    found = Features()(numbers, words)
    present = keras.ops.cast(found != 0, "float32")
    score = keras.ops.sum(keras.ops.squeeze(weights(found), -1) * present, axis=1, keepdims=True)
    return keras.Model({"numbers": numbers, "words": words}, keras.layers.Activation("sigmoid", name="click")(score))


def read(spark, path):
    """Label, numbers and words of the lines."""
    names = [f"number{place}" for place in range(NUMBERS)] + [f"word{place}" for place in range(WORDS)]
    kinds = ["int"] * NUMBERS + ["string"] * WORDS
    lines = spark.read.csv(path, sep="\t", schema="label float, " + ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds)))
    return lines.selectExpr(
        "label", f"array({', '.join(f'coalesce({name}, {MISSING})' for name in names[:NUMBERS])}) AS numbers",
        f"array({', '.join(f'coalesce({name}, {chr(39) * 2})' for name in names[NUMBERS:])}) AS words")


def synthetic(spark, rows, seed):
    """Made-up logs; two of the words, and whether they meet, say something of the label."""
    words = ", ".join(f"if(rand({seed + place}) < 0.2, '', concat('w', cast(pow(rand({seed + 50 + place}), 3) * 20 AS int)))" for place in range(WORDS))
    numbers = ", ".join(f"if(rand({seed + 100 + place}) < 0.2, {MISSING}, cast(exp(rand({seed + 150 + place}) * 6) AS int))" for place in range(NUMBERS))
    table = spark.range(0, rows, 1, 4).selectExpr(f"array({numbers}) AS numbers", f"array({words}) AS words", f"rand({seed + 200}) AS luck")
    score = "if(words[0] = 'w0', 0.3, 0) + if(words[1] = 'w0', 0.3, 0) + if(words[0] = 'w0' AND words[1] = 'w0', 0.3, 0) + numbers[2] / 1000"
    return table.selectExpr(f"cast(luck < {score} AS float) AS label", "numbers", "words")


def shared(sc, path):
    """The path as driver and executors all see it."""
    path = sc._jvm.org.apache.hadoop.fs.Path(path)
    return path.getFileSystem(sc._jsc.hadoopConfiguration()).makeQualified(path).toString()


def train(sc, spark, args):
    from tensorflowonspark import TFCluster

    training = read(spark, args.data) if args.data else synthetic(spark, args.synthetic_rows, 1)
    validation = read(spark, args.validation) if args.validation else synthetic(spark, args.synthetic_rows // 4, 1000)
    cluster = TFCluster.run(sc, main_fun, args, args.cluster_size, tensorboard=args.tensorboard, input_mode=TFCluster.InputMode.SPARK,
                            log_dir=args.model, master_node="chief")
    cluster.train(training, args.epochs, validation=validation)
    cluster.shutdown()
    print("AUC of the validation, each epoch:", ", ".join(f"{auc:.3f}" for auc in cluster.results()[0]))


def infer(spark, args):
    """A line for each row: the label and the probability of a click."""
    from tensorflowonspark.pipeline import TFModel

    rows = read(spark, args.data) if args.data else synthetic(spark, args.synthetic_rows // 4, 2000)
    model = TFModel(args).setExportDir(args.model + "/export").setInputMapping({"numbers": "numbers", "words": "words"})
    answers = model.setOutputMapping({"output_0": "click"}).setKeep(["label"]).setBatchSize(args.batch_size).transform(rows)
    answers.selectExpr("concat(label, ' ', click[0])").write.text(args.output)


def main():
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("criteo").getOrCreate()
    sc = spark.sparkContext
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=100)
    parser.add_argument("--buffer_size", help="rows among which to shuffle", type=int, default=10000)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--data", help="the logs; without them some are made up")
    parser.add_argument("--epochs", help="number of epochs", type=int, default=1)
    parser.add_argument("--mode", help="what to do", choices=["train", "inference"], default="train")
    parser.add_argument("--model", help="folder of the model, which all executors see", default="criteo_model")
    parser.add_argument("--output", help="where the predictions go", default="criteo_predictions")
    parser.add_argument("--rate", help="learning rate", type=float, default=5e-4)
    parser.add_argument("--synthetic_rows", help="how many are made up", type=int, default=20000)
    parser.add_argument("--tensorboard", help="run TensorBoard beside a worker", action="store_true")
    parser.add_argument("--validation", help="the logs to validate on")
    args = parser.parse_args()
    print("args:", args)
    args.model = shared(sc, args.model)
    if args.mode == "train":
        train(sc, spark, args)
    else:
        infer(spark, args)
    spark.stop()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Trains a U-Net that says of each pixel whether it belongs to a shape, to its border, or to neither.

    spark-submit segmentation_spark.py --cluster_size 2 --epochs 3                            made-up images
    spark-submit segmentation_spark.py --cluster_size 2 --images_labels 'oxford_iiit_pet-train.tfrecord*'

Files are those that tensorflow_datasets writes of oxford_iiit_pet: Examples of ``image``, a JPEG, and ``segmentation_mask``, a PNG of 1, 2 and 3.
"""

import argparse

CLASSES = 3


def main_fun(args, ctx):
    """Runs on each worker."""
    import keras

    from tensorflowonspark import compat
    from tensorflowonspark.keras import distribute

    keras.utils.set_random_seed(1)
    model = build_model(args.size, args.filters)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model = distribute(model)
    folder = ctx.absolute_path(args.model_dir)
    callbacks = [
        keras.callbacks.ModelCheckpoint(folder + "/weights-{epoch:04d}.weights.h5", save_weights_only=True),
        keras.callbacks.TensorBoard(folder, profile_batch=0),
    ]
    rows = read(args, ctx).shuffle(args.buffer_size).batch(args.batch_size).prefetch(2)
    history = model.fit(rows, epochs=args.epochs, callbacks=callbacks, verbose=2 if ctx.job_name == "chief" else 0)
    if ctx.job_name == "chief":
        model.save(folder + "/segmentation.keras")
        compat.export_saved_model(model, ctx.absolute_path(args.export_dir), True)
    return history.history["accuracy"]


def build_model(size, filters):
    """A U-Net of three levels: down to an eighth of the size, and up again beside what was there on the way down."""
    import keras

    layers = keras.layers

    def convolutions(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return layers.BatchNormalization()(x)

    images = keras.Input((size, size, 3), name="image")
    x, passed = images, []
    for level in range(3):
        x = convolutions(x, filters << level)
        passed.append(x)
        x = layers.MaxPooling2D()(x)
    x = convolutions(x, filters << 3)
    for level in reversed(range(3)):
        x = layers.Conv2DTranspose(filters << level, 2, strides=2, padding="same")(x)
        x = convolutions(layers.Concatenate()([x, passed[level]]), filters << level)
    return keras.Model(images, layers.Conv2D(CLASSES, 1, activation="softmax", name="mask")(x))


def read(args, ctx):
    """This worker's images, between 0 and 1, and masks of 0, 1 and 2."""
    import tensorflow as tf

    if not args.images_labels:
        numbers = tf.data.Dataset.range(args.synthetic_images).shard(ctx.num_workers, ctx.worker_num)
        return numbers.map(lambda number: synthetic(number, args.size))

    def parse(record):
        features = {name: tf.io.FixedLenFeature([], tf.string) for name in ("image", "segmentation_mask")}
        found = tf.io.parse_single_example(record, features)
        image = tf.io.decode_image(found["image"], channels=3, expand_animations=False)
        mask = tf.io.decode_png(found["segmentation_mask"], channels=1)
        image = tf.image.resize(image, (args.size, args.size)) / 255
        return image, tf.image.resize(mask, (args.size, args.size), "nearest") - 1

    files = sorted(tf.io.gfile.glob(ctx.absolute_path(args.images_labels)))
    records = tf.data.TFRecordDataset(files).shard(ctx.num_workers, ctx.worker_num)
    return records.map(parse, num_parallel_calls=tf.data.AUTOTUNE)


def synthetic(number, size):
    """A disc somewhere in noise: 0 inside, 1 outside, 2 its border."""
    import tensorflow as tf

    place = tf.random.stateless_uniform((3,), tf.stack([number, 1]), 0.3, 0.7)
    y, x = tf.meshgrid(tf.linspace(0.0, 1.0, size), tf.linspace(0.0, 1.0, size), indexing="ij")
    distance = tf.sqrt((x - place[0]) ** 2 + (y - place[1]) ** 2) - place[2] / 2
    mask = tf.where(tf.abs(distance) < 1.5 / size, 2, tf.where(distance < 0, 0, 1))
    noise = tf.random.stateless_uniform((size, size, 3), tf.stack([number, 2]), 0, 0.4)
    return noise + 0.6 * tf.cast(distance < 0, tf.float32)[..., None], mask[..., None]


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    sc = SparkContext(conf=SparkConf().setAppName("segmentation"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=64)
    parser.add_argument("--buffer_size", help="rows among which to shuffle", type=int, default=1000)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster", type=int, default=executors)
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--export_dir", help="where the SavedModel goes", default="segmentation_export")
    parser.add_argument("--filters", help="of the first level", type=int, default=16)
    parser.add_argument("--images_labels", help="pattern of TFRecord files; without it images are made up")
    parser.add_argument("--model_dir", help="where checkpoints, event files and the model go", default="segmentation_model")
    parser.add_argument("--size", help="pixels of a side, a multiple of 8", type=int, default=128)
    parser.add_argument("--synthetic_images", help="how many are made up", type=int, default=1000)
    parser.add_argument("--tensorboard", help="run TensorBoard beside the chief", action="store_true")
    args = parser.parse_args()
    print("args:", args)

    cluster = TFCluster.run(
        sc, main_fun, args, args.cluster_size, num_ps=0, tensorboard=args.tensorboard, input_mode=TFCluster.InputMode.TENSORFLOW,
        log_dir=args.model_dir, master_node="chief",
    )
    cluster.shutdown()
    print("accuracy of each epoch:", ", ".join(f"{value:.3f}" for value in cluster.results()[0]))
    sc.stop()


if __name__ == "__main__":
    main()

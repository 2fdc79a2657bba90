# SPDX-License-Identifier: Apache-2.0
"""ResNet for CIFAR-10 (He et al. 2015, section 4.2), trained in step by the workers of a cluster. resnet_cifar_spark.py runs it."""

import argparse
import os

SIDE, CHANNELS, CLASSES, IMAGES = 32, 3, 10, 50_000
RECORD = 1 + SIDE * SIDE * CHANNELS  # bytes of an image in the binary version of CIFAR-10: label, then red, green, blue
DECAYS = ((91, 0.1), (136, 0.01), (182, 0.001))  # epoch, factor of the learning rate


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch_size", help="rows of a step, of all workers together", type=int, default=128)
    parser.add_argument("--data_dir", help="cifar-10-batches-bin, in a folder that all executors see")
    parser.add_argument("--model_dir", help="where checkpoints, event files and the model go")
    parser.add_argument("--resnet_size", help="layers: 6n + 2", type=int, default=56)
    parser.add_argument("--skip_eval", help="no evaluation", action="store_true")
    parser.add_argument("--train_epochs", "--epochs", help="number of epochs", type=int, default=182)
    parser.add_argument("--train_steps", help="steps of an epoch at most", type=int)
    parser.add_argument("--use_synthetic_data", help="made-up images in place of files", action="store_true")
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        print("flags of the original that say nothing here:", " ".join(unknown))  # --num_gpus, --ds: the cluster's part
    if not args.use_synthetic_data and not args.data_dir:
        parser.error("--data_dir names the folder of data_batch_1.bin ..., or --use_synthetic_data")
    return args


def main_fun(argv, ctx):
    """Runs on each worker."""
    import keras

    from tensorflowonspark.keras import distribute

    args = parse_arguments(argv)
    rows = max(1, args.batch_size // ctx.num_workers)
    keras.utils.set_random_seed(1)
    model = build_model((args.resnet_size - 2) // 6)
    rate = 0.1 * args.batch_size / 128
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model = distribute(model)

    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: rate * min([factor for first, factor in DECAYS if epoch >= first], default=1))
    callbacks = [schedule]
    folder = ctx.absolute_path(args.model_dir) if args.model_dir else None
    if folder:
        callbacks.append(keras.callbacks.ModelCheckpoint(folder + "/weights-{epoch:04d}.weights.h5", save_weights_only=True))
        callbacks.append(keras.callbacks.TensorBoard(folder, profile_batch=0))
    is_chief = ctx.job_name == "chief"
    training = read(args, ctx, True).batch(rows)
    training = training.take(args.train_steps) if args.train_steps else training
    history = model.fit(training.prefetch(2), epochs=args.train_epochs, callbacks=callbacks, verbose=2 if is_chief else 0)
    stats = {name: values[-1] for name, values in history.history.items()}
    if not args.skip_eval:
        test = read(args, ctx, False).batch(rows)
        test = test.take(args.train_steps) if args.train_steps else test
        stats.update({f"eval_{name}": value for name, value in model.evaluate(test, verbose=0, return_dict=True).items()})
    if is_chief:
        print("stats:", stats)
        if folder:
            model.save(folder + "/resnet.keras")
    return stats


def build_model(blocks):
    """6 * blocks + 2 layers: three stages of 16, 32 and 64 filters."""
    import keras

    layers = keras.layers

    def convolution(x, filters, size, stride=1, activation=True):
        x = layers.Conv2D(
            filters, size, stride, padding="same", use_bias=False, kernel_initializer="he_normal", kernel_regularizer=keras.regularizers.L2(2e-4)
        )(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        return layers.ReLU()(x) if activation else x

    images = keras.Input((SIDE, SIDE, CHANNELS), name="image")
    x = convolution(images, 16, 3)
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            shortcut = convolution(x, filters, 1, stride, activation=False) if stride == 2 else x
            y = convolution(convolution(x, filters, 3, stride), filters, 3, activation=False)
            x = layers.ReLU()(layers.Add()([shortcut, y]))
    return keras.Model(images, layers.Dense(CLASSES, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def read(args, ctx, is_training):
    """This worker's images and labels; those of training in a random order and a little changed."""
    import tensorflow as tf

    if args.use_synthetic_data:
        dataset = tf.data.Dataset.range(512 if is_training else 128).map(synthetic)
    else:
        folder = ctx.absolute_path(args.data_dir)
        names = [f"data_batch_{number}.bin" for number in range(1, 6)] if is_training else ["test_batch.bin"]
        dataset = tf.data.FixedLengthRecordDataset([os.path.join(folder, name) for name in names], RECORD).map(parse)
    dataset = dataset.shard(ctx.num_workers, ctx.worker_num)
    if is_training:
        dataset = dataset.shuffle(IMAGES // ctx.num_workers).map(change, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.map(lambda image, label: (tf.image.per_image_standardization(image), label), num_parallel_calls=tf.data.AUTOTUNE)


def parse(record):
    """Image and label of a record."""
    import tensorflow as tf

    numbers = tf.io.decode_raw(record, tf.uint8)
    image = tf.transpose(tf.reshape(numbers[1:], (CHANNELS, SIDE, SIDE)), (1, 2, 0))
    return tf.cast(image, tf.float32), tf.cast(numbers[0], tf.int32)


def synthetic(number):
    """An image in which the brightness says the class."""
    import tensorflow as tf

    label = tf.cast(number % CLASSES, tf.int32)
    noise = tf.random.stateless_uniform((SIDE, SIDE, CHANNELS), tf.stack([number, 1]), 0, 64)
    ramp = tf.cast(tf.range(SIDE) * (label + 1), tf.float32)[:, None, None]
    return noise + ramp, label


def change(image, label):
    """The image moved by up to four pixels, and mirrored in half of the cases."""
    import tensorflow as tf

    image = tf.image.resize_with_crop_or_pad(image, SIDE + 8, SIDE + 8)
    return tf.image.random_flip_left_right(tf.image.random_crop(image, (SIDE, SIDE, CHANNELS))), label

# SPDX-License-Identifier: Apache-2.0
"""The model and its training, the same however the data comes. The executors get this file by ``sc.addPyFile``."""

import importlib.util
import os
import tempfile

LEARNING_RATE = 3e-3
REPORT_STEPS = 10


def use_legacy_keras():
    """To be called before TensorFlow is imported: Keras 3, its default since 2.16, cannot fit under a multi-worker
    strategy; tf_keras can."""
    if importlib.util.find_spec("tf_keras"):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"


def is_chief(ctx):
    return ctx.job_name in ("chief", "master")


def scale(pixels, *others):
    """Images of 28 by 28 by 1, between 0 and 1, from a batch of 784 pixels; label and weight stay."""
    import tensorflow as tf

    return tf.reshape(tf.cast(pixels, tf.float32), [-1, 28, 28, 1]) / 255.0, *others


def scale_row(row, weight):
    """Image, label and weight of a batch of DataFrame rows."""
    return *scale(row["pixels"], row["label"]), weight


def build_model():
    """A small convolutional network, compiled: 0.96 on test digits after three epochs of 10,000."""
    import tensorflow as tf

    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([
        layers.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dense(10, activation="softmax"),
    ])
    model.compile(
        optimizer=tf.keras.optimizers.Adam(LEARNING_RATE),
        loss="sparse_categorical_crossentropy",
        weighted_metrics=["accuracy"],
    )
    # A metric's value is that of all workers already; by default Keras would show the sum of the workers' values.
    model.distribute_reduction_method = "first"
    return model


def train(strategy, dataset, args, ctx, steps_per_epoch=None):
    """Trains for ``args.epochs`` and exports the model. Every worker calls it.

    What the chief leaves: in ``args.model_dir`` a checkpoint an epoch, event files and losses.csv; in ``args.export_dir``
    the SavedModel. The others leave nothing.
    """
    from tensorflowonspark import compat

    with strategy.scope():
        model = build_model()
    # Saving needs all workers, since they hold the model together; only the chief's copy is kept.
    with tempfile.TemporaryDirectory(prefix="mnist-") as scratch:
        folder = ctx.absolute_path(args.model_dir) if is_chief(ctx) else scratch
        model.fit(
            dataset,
            epochs=args.epochs,
            steps_per_epoch=steps_per_epoch,
            callbacks=callbacks(folder, ctx),
            verbose=2 if args.verbose and is_chief(ctx) else 0,
        )
    compat.export_saved_model(model, ctx.absolute_path(args.export_dir), is_chief(ctx))


def callbacks(folder, ctx):
    """What happens beside the training: the rate halves each epoch, checkpoints, event files, figures for the driver."""
    import tensorflow as tf

    keras = tf.keras.callbacks
    tf.io.gfile.makedirs(folder)
    wanted = [
        keras.LearningRateScheduler(lambda epoch: LEARNING_RATE * 0.5**epoch),
        keras.ModelCheckpoint(folder + "/weights-{epoch:04d}", save_weights_only=True),
        report(folder, ctx),
    ]
    if is_chief(ctx):
        if importlib.util.find_spec("tensorboard"):
            wanted.append(keras.TensorBoard(folder, update_freq=REPORT_STEPS, profile_batch=0))
        else:
            print("no event files: the package tensorboard is not installed")
    return wanted


def report(folder, ctx):
    """Tells the driver about the loss as training goes on, and keeps the chief's figures in losses.csv."""
    import tensorflow as tf

    lines = []

    def each_batch(batch, logs):
        if batch % REPORT_STEPS == 0:
            step = len(lines) * REPORT_STEPS
            ctx.report(step=step, loss=logs["loss"], accuracy=logs["accuracy"])
            lines.append(f"{step},{logs['loss']:.6f},{logs['accuracy']:.6f}\n")

    def each_epoch(epoch, logs):
        if is_chief(ctx):
            with tf.io.gfile.GFile(folder + "/losses.csv", "w") as file:
                file.write("step,loss,accuracy\n" + "".join(lines))

    return tf.keras.callbacks.LambdaCallback(on_train_batch_end=each_batch, on_epoch_end=each_epoch)

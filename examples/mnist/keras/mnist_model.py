# SPDX-License-Identifier: Apache-2.0
"""The model and its training, the same however the data comes. The executors get this file by ``sc.addPyFile``."""

import importlib.util

LEARNING_RATE = 3e-3
REPORT_STEPS = 10


def is_chief(ctx):
    return ctx.job_name in ("chief", "master")


def scale(images, *others):
    """Images of 28 by 28 by 1, between 0 and 1, from a batch of 784 pixels; label and weight stay."""
    import tensorflow as tf

    return tf.reshape(tf.cast(images, tf.float32), [-1, 28, 28, 1]) / 255.0, *others


def scale_row(row, weight):
    """Image, label and weight of a batch of DataFrame rows."""
    return *scale(row["image"], row["label"]), weight


def build_model():
    """A small convolutional network, compiled: 0.96 on test digits after three epochs of 10,000."""
    import keras

    layers = keras.layers
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((28, 28, 1), name="image"),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dense(10, activation="softmax"),
    ])
    model.compile(
        optimizer=keras.optimizers.Adam(LEARNING_RATE),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def train(dataset, args, ctx, steps_per_epoch=None):
    """Trains for ``args.epochs`` and exports the model. Every worker calls it, with its own part of the rows.

    What the chief leaves: in ``args.model_dir`` a checkpoint an epoch, event files and losses.csv; in ``args.export_dir``
    the SavedModel. The others leave nothing.
    """
    from tensorflowonspark import compat
    from tensorflowonspark.keras import distribute

    model = distribute(build_model())
    model.fit(
        dataset,
        epochs=args.epochs,
        steps_per_epoch=steps_per_epoch,
        callbacks=callbacks(ctx.absolute_path(args.model_dir), ctx),
        verbose=2 if getattr(args, "verbose", True) and is_chief(ctx) else 0,
    )
    if is_chief(ctx):
        compat.export_saved_model(model, ctx.absolute_path(args.export_dir), True)


def callbacks(folder, ctx):
    """What happens beside the training: the rate halves each epoch, checkpoints, event files, figures for the driver."""
    import keras

    wanted = [
        keras.callbacks.LearningRateScheduler(lambda epoch: LEARNING_RATE * 0.5**epoch),
        keras.callbacks.ModelCheckpoint(folder + "/weights-{epoch:04d}.weights.h5", save_weights_only=True),
        report(folder, ctx),
    ]
    if importlib.util.find_spec("tensorboard"):
        wanted.append(keras.callbacks.TensorBoard(folder, update_freq=REPORT_STEPS, profile_batch=0))
    else:
        print("no event files: the package tensorboard is not installed")
    return wanted


def report(folder, ctx):
    """Tells the driver about the loss as training goes on, and keeps the chief's figures in losses.csv."""
    import keras
    import tensorflow as tf

    lines = []

    def each_batch(batch, logs):
        if batch % REPORT_STEPS == 0:
            step = len(lines) * REPORT_STEPS
            ctx.report(step=step, loss=logs["loss"], accuracy=logs["accuracy"])
            lines.append(f"{step},{logs['loss']:.6f},{logs['accuracy']:.6f}\n")

    def each_epoch(epoch, logs):
        if is_chief(ctx):
            tf.io.gfile.makedirs(folder)
            with tf.io.gfile.GFile(folder + "/losses.csv", "w") as file:
                file.write("step,loss,accuracy\n" + "".join(lines))

    return keras.callbacks.LambdaCallback(on_train_batch_end=each_batch, on_epoch_end=each_epoch)

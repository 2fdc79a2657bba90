# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""A step of Keras's fit in two processes in step, against the same two processes that train at the same time without any exchange."""

import statistics
import sys
import time

import harness
import rank_group

SIZE, BATCH = 2, 64
STEPS = {"mnist_cnn": 100, "25M": 10}  # of an epoch that is measured
EPOCHS = 2  # measured of each fit, behind one that is not
GOAL = 0.9  # a step at most 10 % longer, and the wire's time


def build(name):
    import keras
    import numpy as np

    layers = keras.layers
    if name == "mnist_cnn":
        shape, inner = (28, 28, 1), [layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(64, 3, activation="relu"),
                                     layers.MaxPooling2D(), layers.Flatten(), layers.Dense(128, activation="relu")]
    else:
        shape, inner = (784,), [layers.Dense(width, activation="relu") for width in (4096, 4096, 1024)]
    model = keras.Sequential([keras.Input(shape), *inner, layers.Dense(10)])
    model.compile(keras.optimizers.SGD(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    random = np.random.RandomState(0)
    return model, random.rand(BATCH * 8, *shape).astype("float32"), random.randint(0, 10, BATCH * 8)


def measure(group, name, is_distributed):
    """Seconds of a step, an epoch each."""
    import keras
    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            group.all_reduce([tf.zeros([1])], "both begin")
            self.start = time.perf_counter()

        def on_train_batch_end(self, batch, logs=None):
            self.end = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            self.seconds.append((self.end - self.start) / STEPS[name])

    if name not in measure.models:
        measure.models[name] = [build(name), build(name)]
        distribute(measure.models[name][1][0], group)
    model, rows, labels = measure.models[name][is_distributed]
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(BATCH).cache().repeat().prefetch(2).with_options(options)
    clock = Clock()
    clock.seconds = []
    model.fit(dataset, steps_per_epoch=STEPS[name], epochs=1 + EPOCHS, verbose=0, callbacks=[clock])
    return clock.seconds[1:]


measure.models = {}


def time_wire(group, name):
    """Seconds of one all-reduce of as many bytes as the gradients have."""
    import tensorflow as tf

    tensor = tf.ones([sum(int(tf.size(weight.value)) for weight in measure.models[name][1][0].trainable_weights)])
    reduce = tf.function(lambda: group.all_reduce([tensor * 1.5], "wire", "mean")[0][0])
    seconds = []
    for _ in range(8):
        group.all_reduce([tf.zeros([1])], "both begin")
        start = time.perf_counter()
        reduce()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def compete(folder, rounds):
    with rank_group.Ranks(folder, SIZE) as processes:
        for name in STEPS:
            seconds, wire = {False: [], True: []}, []
            for index in range(rounds):
                for is_distributed in (index % 2 == 0, index % 2 != 0):
                    results = rank_group.good(processes.run(measure, SIZE, name=name, is_distributed=is_distributed))
                    seconds[is_distributed] += [max(epoch) for epoch in zip(*results)]
                wire.append(max(rank_group.good(processes.run(time_wire, SIZE, name=name))))
            bytes_alone = statistics.median(wire)
            harness.note(f"{name}: the wire takes {bytes_alone * 1e3:.2f} ms")
            harness.note(f"{name}: {statistics.median(seconds[True]) * 1e3:.2f} ms in step, {statistics.median(seconds[False]) * 1e3:.2f} ms without")
            harness.print_line("keras_step", name, "s", seconds[True], seconds[False], "without_exchange")
            with_wire = [one + bytes_alone for one in seconds[False]]
            harness.print_line("keras_step", f"{name}, with the wire", "s", seconds[True], with_wire, "without_exchange", GOAL)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=4).parse_args()
    sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

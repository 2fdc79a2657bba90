# SPDX-License-Identifier: Apache-2.0
"""What the processes of ``ranks`` do: the same training with a group, and without one as a single process does it."""

import keras
import numpy as np
import tensorflow as tf

from tensorflowonspark.keras import all_reduce, broadcast, distribute

L, O = keras.layers, keras.optimizers
STEPS, BATCH = 12, 24  # of one process; all numbers of ranks up to 4 divide the batch
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(STEPS * BATCH, 20).astype("float32")
Y = (X @ RANDOM.randn(20, 3) + 0.5 * RANDOM.randn(STEPS * BATCH, 3)).argmax(1).astype("int32")
WORDS = RANDOM.randint(0, 100, (STEPS * BATCH, 6)).astype("int32")
WEIGHTS = RANDOM.randint(0, 4, STEPS * BATCH).astype("float32") / 2  # some are 0


def mlp(regularizer=None, dtype=None):
    return keras.Sequential([keras.Input((20,)), L.Dense(32, activation="tanh", kernel_regularizer=regularizer, dtype=dtype),
                             L.Dense(3, dtype=dtype)])


def embedding():
    return keras.Sequential([keras.Input((6,), dtype="int32"), L.Embedding(100, 8), L.Flatten(), L.Dense(3)])


def masked():
    return keras.Sequential([keras.Input((6,), dtype="int32"), L.Embedding(100, 8, mask_zero=True), L.Dense(3)])


# name: model, optimizer, arguments of compile
CASES = {
    "sgd": (mlp, lambda: O.SGD(0.1), {}),
    "momentum_l2": (lambda: mlp("l2"), lambda: O.SGD(0.05, momentum=0.9, nesterov=True), {}),
    "rmsprop": (mlp, lambda: O.RMSprop(1e-3), {}),
    "adam": (mlp, lambda: O.Adam(1e-3), {}),
    "adam_schedule": (mlp, lambda: O.Adam(O.schedules.ExponentialDecay(1e-2, 4, 0.5)), {}),
    "adamw_ema": (mlp, lambda: O.AdamW(1e-3, use_ema=True, ema_overwrite_frequency=5), {}),
    "adamax": (mlp, lambda: O.Adamax(1e-3), {}),
    "nadam": (mlp, lambda: O.Nadam(1e-3), {}),
    "adagrad": (mlp, lambda: O.Adagrad(1e-2), {}),
    "adadelta": (mlp, lambda: O.Adadelta(0.1), {}),
    "ftrl": (mlp, lambda: O.Ftrl(1e-2), {}),
    "lamb": (mlp, lambda: O.Lamb(1e-3), {}),
    "adafactor": (mlp, lambda: O.Adafactor(1e-3), {}),
    "global_clipnorm": (mlp, lambda: O.Adam(1e-3, global_clipnorm=0.1), {}),
    "clipnorm": (mlp, lambda: O.SGD(0.1, clipnorm=0.05), {}),
    "clipvalue": (mlp, lambda: O.SGD(0.1, clipvalue=0.01), {}),
    "accumulation": (mlp, lambda: O.Adam(1e-3, gradient_accumulation_steps=3), {}),
    "accumulation_clipped": (mlp, lambda: O.SGD(0.1, gradient_accumulation_steps=4, global_clipnorm=0.1), {}),
    "loss_scale": (mlp, lambda: O.LossScaleOptimizer(O.SGD(0.1)), {}),
    "steps_per_execution": (mlp, lambda: O.Adam(1e-3), {"steps_per_execution": 5}),
    "eager": (mlp, lambda: O.SGD(0.1), {"run_eagerly": True}),
    "float64": (lambda: mlp(dtype="float64"), lambda: O.Adam(1e-3), {}),
    "mixed_dtypes": (lambda: keras.Sequential([keras.Input((20,)), L.Dense(32, dtype="float64"), L.Dense(3)]), lambda: O.SGD(0.1), {}),
    "embedding_adam": (embedding, lambda: O.Adam(1e-2), {}),
    "embedding_sgd": (embedding, lambda: O.SGD(0.1), {}),
    "sum": (lambda: mlp("l2"), lambda: O.SGD(1e-3), {"reduction": "sum"}),
    "weight_mean": (mlp, lambda: O.SGD(0.1), {"reduction": "mean_with_sample_weight"}),
    "batch_normalization": (lambda: keras.Sequential([keras.Input((20,)), L.Dense(8), L.BatchNormalization(synchronized=True), L.Dense(3)]),
                            lambda: O.SGD(0.1), {}),
}


def compiled(name, seed=1):
    make, optimizer, settings = CASES[name]
    settings = dict(settings)
    keras.utils.set_random_seed(seed)
    model = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=settings.pop("reduction", "sum_over_batch_size"))
    model.compile(optimizer(), loss, metrics=["accuracy"], weighted_metrics=[keras.metrics.SparseCategoricalCrossentropy(from_logits=True)], **settings)
    return model


def prepared(name, group):
    """A model that begins with other weights on each rank than the chief, which begins with those of one process."""
    model = compiled(name, 1 + 100 * (group.rank if group else 0))
    return distribute(model, group) if group else model


def part(array, group):
    """This rank's rows of each batch of one process."""
    size, rank = (group.size, group.rank) if group else (1, 0)
    return array.reshape(STEPS, BATCH, *array.shape[1:])[:, rank::size].reshape(-1, *array.shape[1:])


def batches(arrays, size):
    """A dataset that is not tuned, which would wait for seconds at its end."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.Dataset.from_tensor_slices(arrays).batch(size).with_options(options)


def outcome(model, history=None):
    weights = [variable.numpy() for variable in model.weights]
    return {"weights": np.concatenate([weight.ravel().astype("float64") for weight in weights]), "iterations": int(model.optimizer.iterations),
            "history": history and {name: [float(value) for value in values] for name, values in history.history.items()}}


def fit(group, names, epochs=2, weighted=False):
    """Fits a model for each name on equal parts of each batch."""
    results = {}
    for name in names:
        model = prepared(name, group)
        rows, labels = part(WORDS if name.startswith(("embedding", "mask")) else X, group), part(Y, group)
        size = BATCH // (group.size if group else 1)
        half = len(rows) // 2
        training = (rows, labels, part(WEIGHTS, group)) if weighted else (rows, labels)
        history = model.fit(batches(training, size), epochs=epochs, verbose=0, validation_data=batches((rows[:half], labels[:half]), size))
        results[name] = outcome(model, history)
    return results

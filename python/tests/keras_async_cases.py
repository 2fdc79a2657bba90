# SPDX-License-Identifier: Apache-2.0
"""What the processes of ``ranks`` do asynchronously."""

import time

import keras
import numpy as np
import tensorflow as tf

from keras_cases import OPT, L, batches
from tensorflowonspark.keras import distribute

ROWS, FEATURES, CLASSES, BATCH = 3000, 20, 3, 16
RANDOM = np.random.RandomState(1)
X = RANDOM.randn(ROWS, FEATURES).astype("float32")
Y = (X @ RANDOM.randn(FEATURES, CLASSES)).argmax(1).astype("int32")
PARTS = (0, 1600, 2992, 3000, 3000)  # of four ranks, of which the last has no row


def compiled(rank=0, **settings):
    keras.utils.set_random_seed(1 + rank)
    model = keras.Sequential([keras.Input((FEATURES,)), L.Dense(32, activation="relu"), L.BatchNormalization(), L.Dropout(0.1), L.Dense(CLASSES)])
    model.compile(OPT.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **settings)
    return model


class Steps(keras.callbacks.Callback):
    """Counts them; ends after so many."""

    def __init__(self, limit=None):
        super().__init__()
        self.steps, self.limit = 0, limit

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self.steps == self.limit:
            self.model.stop_training = True


def weights_of(model):
    return np.concatenate([weight.ravel() for weight in model.get_weights()])


def train(group, epochs=4, **settings):
    """Parts of unequal length: the steps of this rank, the weights, the accuracy on all rows, the optimizer's steps."""
    own = slice(PARTS[group.rank], PARTS[group.rank + 1])
    steps = Steps()
    model = distribute(compiled(group.rank, **settings), group, mode="async")
    model.fit(batches((X[own], Y[own]), BATCH), epochs=epochs, verbose=0, callbacks=[steps])
    return steps.steps, weights_of(model), model.evaluate(X, Y, verbose=0)[1], int(model.optimizer.iterations)


def write(group, folder):
    """Rank 1 ends after 3 steps; the chief puts back its best weights, saves them, and fits again."""
    steps = Steps(3 if group.rank == 1 else None)
    model = distribute(compiled(group.rank), group, mode="async", staleness=8, every=2)
    callbacks = [steps, keras.callbacks.ModelCheckpoint(f"{folder}/{group.rank}.keras"),
                 keras.callbacks.EarlyStopping(monitor="accuracy", patience=1, restore_best_weights=True)]
    model.fit(X[:800], Y[:800], batch_size=BATCH, epochs=2, verbose=0, callbacks=callbacks)
    if group.is_chief:
        model.save(f"{folder}/saved.keras")
    first = weights_of(model)
    model.fit(X[:160], Y[:160], batch_size=BATCH, verbose=0)
    return steps.steps, first, weights_of(model)


class Marks(keras.callbacks.Callback):
    """Rank 0 takes rounds of steps, each behind a pull of rank 1, which ends its own step when rank 0 is as far as it may be, and looks how far that is.

    ``marks``: steps that rank 0 has begun; rounds that rank 1 has begun, and those that it has ended; steps that rank 0 has pushed.
    """

    def __init__(self, path, rank, staleness, every):
        super().__init__()
        self.marks = np.memmap(path, np.int64, "r+", shape=(4,))
        self.rank, self.staleness, self.round, self.steps, self.seen = rank, staleness, staleness + every, 0, []

    def await_mark(self, mark, value):
        deadline = time.monotonic() + 60
        while self.marks[mark] < value:
            assert time.monotonic() < deadline, (self.marks, self.seen)
            time.sleep(0.001)

    def on_train_batch_begin(self, batch, logs=None):
        if self.rank == 1:
            self.marks[1] += 1
            return
        in_round = self.steps % self.round
        if in_round == 0:
            self.await_mark(1, self.steps // self.round + 1)
        if in_round >= self.staleness:  # held back until rank 1 pushed
            self.seen.append(int(self.marks[2]) == self.steps // self.round + 1)
        self.steps += 1
        self.marks[0] = self.steps

    def on_train_batch_end(self, batch, logs=None):
        if self.rank == 1:  # its next pull is behind all of the round
            self.await_mark(3, int(self.marks[2]) * self.round)
        else:
            self.marks[3] = self.steps


class Hold(keras.layers.Layer):
    """A step of rank 1 that ends when rank 0 is as far as it may be."""

    def __init__(self, marks):
        super().__init__()
        self.marks = marks

    def call(self, x, training=False):
        def hold(x):
            marks = self.marks
            if marks.rank == 1:
                ended = int(marks.marks[2])
                marks.await_mark(0, ended * marks.round + marks.staleness)
                marks.seen.append(int(marks.marks[0]) - ended * marks.round)
                marks.marks[2] += 1
            return x

        if not training:
            return x
        held = tf.py_function(hold, [x], x.dtype)
        held.set_shape(x.shape)
        return x + 0 * tf.stop_gradient(held)


def keep_bound(group, path, staleness, rounds):
    marks = Marks(path, group.rank, staleness, 1)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((FEATURES,)), Hold(marks), L.Dense(CLASSES)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    distribute(model, group, mode="async", staleness=staleness, every=1)
    size = rounds if group.rank == 1 else rounds * (staleness + 1)
    model.fit(X[:size], Y[:size], batch_size=1, verbose=0, callbacks=[marks])
    return marks.seen, weights_of(model)


def train_for_ever(group):
    model = distribute(compiled(), group, mode="async")
    model.fit(batches((X, Y), BATCH).repeat(), epochs=1, steps_per_epoch=10**9, verbose=0)


def refused(group):
    """What is refused, and in which words."""
    found = {}

    def ask(name, call):
        try:
            call()
        except ValueError as error:
            found[name] = str(error)

    ask("mode", lambda: distribute(compiled(), group, mode="asynchronous"))
    ask("sync", lambda: distribute(compiled(), group, staleness=4))
    ask("every", lambda: distribute(compiled(), group, mode="async", staleness=4, every=8))
    ask("staleness", lambda: distribute(compiled(), group, mode="async", staleness=0))
    ask("other mode", lambda: distribute(distribute(compiled(), group), group, mode="async"))
    ask("sync mode", lambda: distribute(distribute(compiled(), group, mode="async"), group))
    ask("train_on_batch", lambda: distribute(compiled(), group, mode="async").train_on_batch(X[:4], Y[:4]))
    ask("execution", lambda: distribute(compiled(steps_per_execution=100), group, mode="async").fit(X, Y, verbose=0))

    def synchronized():
        model = keras.Sequential([keras.Input((FEATURES,)), L.BatchNormalization(synchronized=True, name="norm"), L.Dense(1)])
        model.compile("sgd", "mse")
        distribute(model, group, mode="async").fit(X, Y, verbose=0)

    def double():
        model = keras.Sequential([keras.Input((FEATURES,)), L.Dense(1, dtype="float64", name="wide")])
        model.compile("sgd", "mse")
        distribute(model, group, mode="async").fit(X, Y, verbose=0)

    def uneven():
        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
        dataset._tfos_uneven = "pad"
        distribute(compiled(), group, mode="async").fit(dataset.map(lambda x, y: (x, y)).prefetch(1), verbose=0)

    ask("synchronized", synchronized)
    ask("double", double)
    ask("uneven", uneven)
    return found

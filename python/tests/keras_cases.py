# SPDX-License-Identifier: Apache-2.0
"""What the processes of ``ranks`` do: the same training with a group, and without one as a single process does it."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tensorflowonspark import compat
from tensorflowonspark.keras import all_reduce, broadcast, distribute

L, OPT = keras.layers, keras.optimizers
STEPS, BATCH = 6, 24  # of one process; all numbers of ranks up to 4 divide the batch
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
    "sgd": (mlp, lambda: OPT.SGD(0.1), {}),
    "momentum_l2": (lambda: mlp("l2"), lambda: OPT.SGD(0.05, momentum=0.9, nesterov=True), {}),
    "rmsprop": (mlp, lambda: OPT.RMSprop(1e-3), {}),
    "adam": (mlp, lambda: OPT.Adam(1e-3), {}),
    "adam_schedule": (mlp, lambda: OPT.Adam(OPT.schedules.ExponentialDecay(1e-2, 4, 0.5)), {}),
    "adamw_ema": (mlp, lambda: OPT.AdamW(1e-3, use_ema=True, ema_overwrite_frequency=5), {}),
    "adamax": (mlp, lambda: OPT.Adamax(1e-3), {}),
    "nadam": (mlp, lambda: OPT.Nadam(1e-3), {}),
    "adagrad": (mlp, lambda: OPT.Adagrad(1e-2), {}),
    "adadelta": (mlp, lambda: OPT.Adadelta(0.1), {}),
    "ftrl": (mlp, lambda: OPT.Ftrl(1e-2), {}),
    "lamb": (mlp, lambda: OPT.Lamb(1e-3), {}),
    "adafactor": (mlp, lambda: OPT.Adafactor(1e-3), {}),
    "global_clipnorm": (mlp, lambda: OPT.Adam(1e-3, global_clipnorm=0.1), {}),
    "clipnorm": (mlp, lambda: OPT.SGD(0.1, clipnorm=0.05), {}),
    "clipvalue": (mlp, lambda: OPT.SGD(0.1, clipvalue=0.01), {}),
    "accumulation": (mlp, lambda: OPT.Adam(1e-3, gradient_accumulation_steps=3), {}),
    "accumulation_clipped": (mlp, lambda: OPT.SGD(0.1, gradient_accumulation_steps=4, global_clipnorm=0.1), {}),
    "overflow": (mlp, lambda: OPT.LossScaleOptimizer(OPT.SGD(0.1), initial_scale=3e38), {}),  # the first steps are skipped
    "loss_scale": (mlp, lambda: OPT.LossScaleOptimizer(OPT.SGD(0.1)), {}),
    "steps_per_execution": (mlp, lambda: OPT.Adam(1e-3), {"steps_per_execution": 5}),
    "eager": (mlp, lambda: OPT.SGD(0.1), {"run_eagerly": True}),
    "float64": (lambda: mlp(dtype="float64"), lambda: OPT.Adam(1e-3), {}),
    "mixed_dtypes": (lambda: keras.Sequential([keras.Input((20,)), L.Dense(32, dtype="float64"), L.Dense(3)]), lambda: OPT.SGD(0.1), {}),
    "embedding_adam": (embedding, lambda: OPT.Adam(1e-2), {}),
    "embedding_sgd": (embedding, lambda: OPT.SGD(0.1), {}),
    "sum": (lambda: mlp("l2"), lambda: OPT.SGD(1e-3), {"reduction": "sum"}),
    "weight_mean": (mlp, lambda: OPT.SGD(0.1), {"reduction": "mean_with_sample_weight"}),
    "batch_normalization": (lambda: keras.Sequential([keras.Input((20,)), L.Dense(8), L.BatchNormalization(synchronized=True), L.Dense(3)]),
                            lambda: OPT.SGD(0.1), {}),
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


def fit(group, names, epochs=2, weighted=False, validation=False):
    """Fits a model for each name on equal parts of each batch."""
    results = {}
    for name in names:
        model = prepared(name, group)
        rows, labels = part(WORDS if name.startswith("embedding") else X, group), part(Y, group)
        size = BATCH // (group.size if group else 1)
        half = len(rows) // 2
        training = (rows, labels, part(WEIGHTS, group)) if weighted else (rows, labels)
        against = batches((rows[:half], labels[:half]), size) if validation else None
        history = model.fit(batches(training, size), epochs=epochs, verbose=0, validation_data=against)
        results[name] = outcome(model, history)
    return results


# ---- parts of unequal length

ROWS = (50, 29, 0)  # of three ranks
OWN = 8  # rows of a rank's batch
STARTS = np.cumsum((0, *ROWS))


def own_batches(rank, name, ending):
    """The batches of a rank as lists of arrays: "short" ones at the end, or "padded" to the steps of the rank with the most rows."""
    first, last = STARTS[rank], STARTS[rank + 1]
    arrays = [(WORDS if name.startswith("embedding") else X)[first:last], Y[first:last], WEIGHTS[first:last]]
    steps = -(-max(ROWS) // OWN)
    if ending == "padded":  # as ctx.get_dataset(uneven="pad") does
        lacking = steps * OWN - len(arrays[0])
        arrays = [np.concatenate([array, np.zeros((lacking, *array.shape[1:]), array.dtype)]) for array in arrays]
        arrays[2][len(arrays[2]) - lacking:] = -0.0
    return [[array[start:start + OWN] for array in arrays] for start in range(0, len(arrays[0]), OWN)]


def generated(found, weighted, cardinality=None, rows=X):
    """A dataset of batches of any length, of rows like ``rows``."""
    specs = tuple(tf.TensorSpec([None, *array.shape[1:]], array.dtype) for array in (rows, Y, WEIGHTS)[:3 if weighted else 2])
    dataset = tf.data.Dataset.from_generator(lambda: (tuple(arrays[:len(specs)]) for arrays in found), output_signature=specs)
    options = tf.data.Options()
    options.autotune.enabled = False
    if cardinality is not None:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(cardinality))
    return dataset.with_options(options)


def fit_uneven(group, names, endings=("short",), weighted=True, epochs=2):
    """Fits on parts of unequal length; one process takes the ranks' batches of each step together."""
    results = {}
    for name in names:
        for ending in endings:
            model = prepared(name, group)
            rows = WORDS if name.startswith("embedding") else X
            if group:
                data = generated(own_batches(group.rank, name, ending), weighted, rows=rows)
            else:
                ranks = [own_batches(rank, name, "short") for rank in range(len(ROWS))]
                found = [[np.concatenate(parts) for parts in zip(*(own[step] for own in ranks if step < len(own)))]
                         for step in range(max(map(len, ranks)))]
                data = generated(found, weighted, len(found), rows)
            history = model.fit(data, epochs=epochs, verbose=0)
            results[name, ending] = outcome(model, history)
    return results


def fit_padded_epochs(group):
    """The second of three epochs is padded to the steps of the first on all ranks; one process has no such step."""
    class Count(keras.callbacks.Callback):
        steps = ()

        def on_epoch_begin(self, epoch, logs=None):
            self.steps = (*self.steps, 0)

        def on_train_batch_end(self, batch, logs=None):
            self.steps = (*self.steps[:-1], self.steps[-1] + 1)

    size = OWN // group.size if group else OWN
    epochs = iter([3, 1, 3])

    def epoch():
        real = next(epochs)
        for step in range(3 if group else real):
            is_real = float(step < real)
            own = slice(step * OWN + (group.rank * size if group else 0), None)
            yield X[own][:size] * is_real, Y[own][:size], np.full(size, 1 if is_real else -0.0, "float32")

    model, count = prepared("adam", group), Count()
    specs = tuple(tf.TensorSpec([None, *array.shape[1:]], array.dtype) for array in (X, Y, WEIGHTS))
    dataset = tf.data.Dataset.from_generator(epoch, output_signature=specs)
    if not group:
        for _ in range(3):
            for batch in dataset:
                model.train_on_batch(*batch)
        return outcome(model)["weights"], None
    model.fit(dataset, epochs=3, verbose=0, callbacks=[count])
    return outcome(model)["weights"], count.steps


CLASSES = {0: 0.5, 2: 3.0}


def fit_classes(group):
    """Fits padded parts with weights of classes; one process has them in the weights of its rows."""
    model = prepared("sgd", group)
    if group:
        history = model.fit(generated(own_batches(group.rank, "sgd", "padded"), True), epochs=2, verbose=0, class_weight=CLASSES)
    else:
        ranks = [own_batches(rank, "sgd", "short") for rank in range(len(ROWS))]
        found = [[np.concatenate(parts) for parts in zip(*(own[step] for own in ranks if step < len(own)))] for step in range(max(map(len, ranks)))]
        weighed = [[x, y, weights * np.array([0.5, 1, 3], "float32")[y]] for x, y, weights in found]
        history = model.fit(generated(weighed, True, len(found)), epochs=2, verbose=0)
    return {"classes": outcome(model, history)}


# ---- other behaviour


def count_bytes(group, names):
    """What training exchanges in two epochs behind the first, for each model."""
    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            counts.append(group._handle.figures()["bytes"])

    found = []
    for name in names:
        counts = []
        prepared(name, group).fit(batches((part(X, group), part(Y, group)), BATCH // group.size), epochs=3, verbose=0, callbacks=[Count()])
        found.append(counts[-1] - counts[0])
    return found


def fit_twice(group, name):
    """Two runs, which must not differ in a bit."""
    return [fit(group, [name])[name]["weights"].tobytes() for _ in range(2)]


def fit_for_ever(group):
    """Fits until a rank ends."""
    model = prepared("adam", group)
    model.fit(batches((part(X, group), part(Y, group)), OWN).repeat(), epochs=1, steps_per_epoch=10**9, verbose=0)


def mismatched(group, kind):
    """Models that differ from rank to rank."""
    wide = 32 + (group.rank if kind == "shape" else 0)
    layers = [L.Dense(wide, name="inner", dtype="float64" if kind == "dtype" and group.rank else "float32"), L.Dense(3)]
    if kind == "count" and group.rank:
        layers.append(L.Dense(3))
    keras.utils.clear_session()
    model = keras.Sequential([keras.Input((20,)), *layers])
    clip = 1.0 if kind == "optimizer" and group.rank else None
    model.compile(OPT.SGD(0.1, clipnorm=clip), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    steps = 2 + group.rank if kind == "steps" else None
    distribute(model, group).fit(batches((X, Y), OWN), epochs=1, steps_per_epoch=steps, verbose=0)


def refused(group):
    """What distribute() says of what it cannot take."""
    found = {}

    def ask(name, make):
        try:
            distribute(make(), group)
        except ValueError as error:
            found[name] = str(error)

    ask("not compiled", mlp)
    ask("no model", lambda: 3)

    def under_strategy():
        with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
            return compiled("sgd")

    ask("strategy", under_strategy)

    def legacy():
        import tf_keras

        return tf_keras.Sequential([tf_keras.layers.Dense(1)])

    ask("tf_keras", legacy)

    def twice():
        found = distribute(compiled("sgd"), group)
        object.__setattr__(found._tfos, "group", None)  # a fake of another group
        return found

    ask("another group", twice)
    model = distribute(compiled("sgd"), group)
    assert distribute(model, group) is model
    model.compile("sgd", "mse", jit_compile=True)
    return found, model.jit_compile


def unbuilt(group):
    """A model without Input is built from the structure of the data; compiling again keeps it in step."""
    keras.utils.set_random_seed(1 + group.rank)
    model = keras.Sequential([L.Dense(4, activation="tanh"), L.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    distribute(model, group)
    model.fit(batches((part(X, group), part(Y, group)), OWN), verbose=0)
    model.compile("adam", loss)
    model.fit(batches((part(X, group), part(Y, group)), OWN), verbose=0)
    return outcome(model)["weights"], type(model.optimizer).__name__


def export(group, folder):
    """All ranks export to one folder; what is there then, and what other ranks than the chief have left."""
    model = prepared("adam", group)
    model.fit(batches((part(X, group), part(Y, group)), OWN), verbose=0)
    compat.export_saved_model(model, f"{folder}/model", group.is_chief)
    group.exchange(None, "exported")
    loaded = tf.saved_model.load(f"{folder}/model")
    return os.listdir(f"{folder}/model"), os.listdir(tempfile.gettempdir()), loaded.serve(X).numpy() - model.predict(X, verbose=0)


def write(group, folder, epochs, stop_at=None):
    """Fits with callbacks that write, each rank to a folder of its own; fails at an epoch if asked to."""
    own = f"{folder}/{group.rank}"

    class Count(keras.callbacks.Callback):
        begun = []

        def on_epoch_begin(self, epoch, logs=None):
            if epoch == stop_at:
                raise InterruptedError("stopped")
            self.begun.append(epoch)

    count = Count()
    count.begun = []
    model = prepared("adam", group)
    callbacks = [keras.callbacks.ModelCheckpoint(own + "/{epoch}.keras"), keras.callbacks.TensorBoard(own + "/board"),
                 keras.callbacks.BackupAndRestore(own + "/backup", delete_checkpoint=False), keras.callbacks.CSVLogger(own + "/log.csv"), count]
    try:
        model.fit(batches((part(X, group), part(Y, group)), OWN), epochs=epochs, verbose=0, callbacks=callbacks)
    except InterruptedError:
        pass
    if group.is_chief:
        model.save(own + "/saved.keras")
    return count.begun, outcome(model)["weights"]


def load(group, path):
    """What a saved file has."""
    import zipfile

    model = keras.models.load_model(path)
    with zipfile.ZipFile(path) as archive:
        config = archive.read("config.json").decode()
    return type(model), type(model.optimizer), int(model.optimizer.iterations), config, outcome(model)["weights"]


def stop_early(group, where):
    """One rank alone decides to stop, in an epoch or at its end."""
    class Stop(keras.callbacks.Callback):
        batches = epochs = 0

        def on_train_batch_end(self, batch, logs=None):
            self.batches += 1
            if where == "batch" and group.rank == 1 and batch == 2:
                self.model.stop_training = True

        def on_epoch_end(self, epoch, logs=None):
            self.epochs += 1
            if where == "epoch" and group.rank == 1:
                self.model.stop_training = True

    stop = Stop()
    model = prepared("sgd", group)
    model.fit(batches((part(X, group), part(Y, group)), OWN).filter(lambda x, y: True), epochs=5, verbose=0, callbacks=[stop])
    return stop.batches, stop.epochs, outcome(model)["weights"]


def draw_dropout(group):
    """Masks of two epochs, and the seeds that the chief keeps."""
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((200,)), L.Dropout(0.5), L.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.compile(OPT.SGD(0.0), "mse")
    distribute(model, group)
    masks = []
    model.layers[0].call = lambda inputs, training=False, call=model.layers[0].call: _kept(masks, call(inputs, training=training))
    ones = np.ones((4, 200), "float32")
    model.run_eagerly = True
    model.fit(batches((ones, ones[:, :1]), 4), epochs=2, verbose=0)
    return masks


def _kept(masks, tensor):
    if tf.executing_eagerly() and hasattr(tensor, "numpy"):
        masks.append((tensor.numpy() != 0).tobytes())
    return tensor


def judge(group):
    """evaluate and predict on parts of unequal length, with padding."""
    model = prepared("batch_normalization", group)
    if group:
        own = own_batches(group.rank, "adam", "padded")
        data = generated(own, True)
    else:
        found = [array for rank in range(3) for array in own_batches(rank, "adam", "short")]
        data = generated(found, True, len(found))
    rows = generated([arrays for arrays in own_batches(group.rank if group else 0, "adam", "padded" if group else "short")], True)
    return model.evaluate(data, verbose=0, return_dict=True), len(model.predict(rows, verbose=0))


def average_statistics(group):
    """Moving averages after an epoch in which each rank has seen other rows."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((20,)), L.BatchNormalization(momentum=0.5), L.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    distribute(model, group).fit(batches((part(X, group)[:OWN] * (group.rank + 1), part(Y, group)[:OWN]), OWN), verbose=0)
    return model.layers[0].moving_mean.numpy(), (part(X, group)[:OWN] * (group.rank + 1)).mean(0)


def loop(group):
    """A GradientTape loop."""
    model = compiled("sgd", 1 + (100 * group.rank if group else 0))
    optimizer = OPT.Adam(1e-2)
    optimizer.build(model.trainable_variables)
    if group:
        broadcast(model.variables, group)
    rows, labels = part(X, group), part(Y, group)
    size = BATCH // (group.size if group else 1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_weights)
        if group:
            gradients = all_reduce(gradients, tf.shape(x)[0], group)
        optimizer.apply(gradients, model.trainable_weights)

    for x, y in batches((rows, labels), size):
        step(x, y)
    return outcome(model)["weights"]


def branched(group, ending="short"):
    """Two inputs and two outputs by name, weights of each, AUC; also one batch at a time."""
    keras.utils.set_random_seed(1 + (100 * group.rank if group else 0))
    first, second = keras.Input((10,), name="first"), keras.Input((10,), name="second")
    both = L.Dense(16, activation="tanh")(L.Concatenate()([first, second]))
    outputs = {"kind": L.Dense(3, name="kind")(both), "sign": L.Dense(1, activation="sigmoid", name="sign")(both)}
    model = keras.Model({"first": first, "second": second}, outputs)
    losses = {"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "sign": "binary_crossentropy"}
    model.compile(OPT.Adam(1e-2), losses, loss_weights={"kind": 1.0, "sign": 0.3}, metrics={"sign": ["auc"]}, weighted_metrics={"kind": ["accuracy"]})
    if group:
        distribute(model, group)

    def named(arrays):
        rows, labels, weights = arrays
        signs = (rows[:, :1] > 0).astype("float32")
        ones = np.where(weights == 0, weights, 1)
        return {"first": rows[:, :10], "second": rows[:, 10:]}, {"kind": labels, "sign": signs}, {"kind": weights, "sign": ones}

    steps = -(-max(ROWS) // OWN)
    if group:
        found = own_batches(group.rank, "adam", ending)
    else:
        ranks = [own_batches(rank, "adam", "short") for rank in range(len(ROWS))]
        found = [[np.concatenate(parts) for parts in zip(*(own[step] for own in ranks if step < len(own)))] for step in range(steps)]
    example = named([X[:1], Y[:1], WEIGHTS[:1]])
    specs = tf.nest.map_structure(lambda array: tf.TensorSpec([None, *array.shape[1:]], tf.as_dtype(array.dtype)), example)
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = tf.data.Dataset.from_generator(lambda: map(named, found), output_signature=specs)
    if not group:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(found)))
    history = model.fit(dataset.with_options(options), epochs=2, verbose=0)
    for name in ("kind_loss", "sign_loss"):  # of batches, which Keras does not weigh by their rows
        del history.history[name]
    return {"branched": outcome(model, history)}


def train_batches(group):
    """train_on_batch."""
    model = prepared("adam", group)
    size = BATCH // (group.size if group else 1)
    rows, labels = part(X, group), part(Y, group)
    for start in range(0, len(rows), size):
        model.train_on_batch(rows[start:start + size], labels[start:start + size])
    return outcome(model)["weights"]


def odd_data(group):
    """Ragged and sparse batches, and padding among their rows."""
    from tensorflowonspark import keras_data

    ragged = tf.ragged.constant([[1, 2], [], [3]], ragged_rank=1)
    sparse = tf.sparse.from_dense([[1, 0], [0, 2], [0, 3]])
    weights = tf.constant([1.0, -0.0, 0.0])
    dataset = tf.data.Dataset.from_tensors((ragged, sparse, weights))
    batches = list(keras_data.endless(tf, dataset).take(3))
    counts = [[int(keras_data.count_rows(tf, part)) for part in batch] for batch in batches]
    rows, keep = keras_data.split_rows(tf, ragged, weights)
    kept = tf.function(lambda: keras_data.without_padding(tf, (ragged, sparse, weights, None), rows, keep))()
    return counts, int(rows), kept[0].to_list(), tf.sparse.to_dense(kept[1]).numpy().tolist(), kept[2].numpy().tolist(), kept[3]

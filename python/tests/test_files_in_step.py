# SPDX-License-Identifier: Apache-2.0
"""``tfrecord.dataset(files, shard=ctx)``: workers read files themselves, each row once, in step."""

import json

import pyarrow as pa
import pytest
import tensorflow as tf

from local_cluster import Nodes
from tensorflowonspark import TFCluster, tfrecord
from tensorflowonspark.TFSparkNode import TFNodeContext
from test_cluster import local

SCHEMA = pa.schema({"x": pa.int64()})
LAYOUTS = {"one": [41], "three": [20, 0, 21], "five": [8] * 5, "row": [1], "long": [200]}
WAYS = [("one", "pad"), ("three", "pad"), ("three", "join"), ("five", "join"), ("five", "stop"), ("row", "pad"), ("row", "join"), ("row", "stop")]
SPEC = {"chief": ["a:1"], "worker": ["a:2", "a:3"], "ps": ["a:4"], "evaluator": ["a:5"]}


def write(folder, counts):
    folder.mkdir()
    starts = [sum(counts[:i]) for i in range(len(counts))]
    for k, (start, count) in enumerate(zip(starts, counts)):
        tfrecord.write(folder / f"part-{k:03d}", pa.table({"x": range(start, start + count)}, SCHEMA))
    return str(folder)


# ---- alone


def test_the_shard_of_a_node(tmp_path):
    """By its place among those who train, the chief first, whatever other nodes there are."""
    folder = write(tmp_path / "a", [40])

    def rows(**node):
        context = TFNodeContext(cluster_spec=SPEC, **node)
        return [int(x) for batch in tfrecord.dataset(folder, SCHEMA, 4, shard=context) for x in batch["x"]]

    nodes = [{"job_name": "chief"}, {"job_name": "worker"}, {"job_name": "worker", "task_index": 1}]
    assert [rows(**node) for node in nodes] == [list(range(index, 40, 3)) for index in range(3)]
    for job in ("ps", "evaluator"):
        with pytest.raises(ValueError, match=f"shard: {job}:0 does not train"):
            rows(job_name=job)
    with pytest.raises(ValueError, match="uneven='pad' needs shard=ctx"):
        tfrecord.dataset(folder, SCHEMA, 4, shard=(0, 2), uneven="pad")
    with pytest.raises(ValueError, match="uneven must be None, 'pad'"):
        tfrecord.dataset(folder, SCHEMA, 4, shard=(0, 2), uneven="all")


ALONE = """
import tensorflow as tf
from tensorflowonspark import tfrecord
from tensorflowonspark.TFManager import TFManager
from tensorflowonspark.TFSparkNode import TFNodeContext
context = TFNodeContext(job_name="worker", cluster_spec={"worker": ["a:1"]}, mgr=TFManager(link, False))
dataset = tfrecord.dataset(FOLDER, batch_size=4, shard=context, uneven="pad", prefetch=0)
rows = [(batch["x"].numpy().tolist(), weights.numpy().tolist()) for batch, weights in dataset]
begun = iter(dataset)
first = next(begun)[0]["x"].numpy().tolist()
unread = iter(dataset)
link.close()
try:
    next(unread)
    error = None
except tf.errors.OpError as failure:
    error = str(failure)
del begun, unread, dataset
save((rows, first, error))
"""


@pytest.mark.long
def test_a_worker_alone_and_after_its_link(tmp_path, start):
    folder = write(tmp_path / "a", [10])
    rows, first, error = start(ALONE.replace("FOLDER", repr(folder))).saved()
    assert rows == [([0, 1, 2, 3], [1.0] * 4), ([4, 5, 6, 7], [1.0] * 4), ([8, 9, 0, 0], [1.0, 1.0, 0.0, 0.0])]
    assert first == [0, 1, 2, 3] and "the link to the node was closed" in error


# ---- two workers


def read_in_step(args, ctx):
    """Reads all layouts in several ways; writes rows and batches of each pass."""
    import importlib.util
    import itertools
    import json
    import os

    if importlib.util.find_spec("tf_keras"):  # TensorFlow 2.15 needs none
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    from tensorflowonspark import tfrecord

    def rows_of(element, uneven):
        if uneven != "pad":
            return element["x"].numpy().tolist()
        batch, weights = element
        return batch["x"].numpy()[weights.numpy() == 1].tolist()

    reports = {"fit": fit(args, ctx)}
    shuffled = {"shuffle_buffer": 9, "shuffle_files": True, "num_parallel_reads": 2}
    for way, (name, uneven) in enumerate(args["ways"]):
        dataset = tfrecord.dataset(args["folders"][name], batch_size=3, shard=ctx, uneven=uneven, **(shuffled if way % 2 else {}))
        reports[str(way)] = [[rows_of(element, uneven) for element in dataset] for _ in range(2)]
        # What is left of a pass, read ahead or not, holds up no other pass and none of another dataset.
        list(dataset.take(1))
    # From the third batch on, on all workers.
    dataset = tfrecord.dataset(args["folders"]["one"], batch_size=3, shard=ctx, uneven="join", shuffle_buffer=9, seed=1)
    iterator = iter(dataset)
    for _ in itertools.islice(iterator, 3):
        pass
    path = tf.train.Checkpoint(iterator=iterator).save(f"{args['out']}/checkpoint-{ctx.executor_id}/it")
    expected = [rows_of(element, "join") for element in iterator]
    restored = iter(dataset)
    tf.train.Checkpoint(iterator=restored).restore(path)
    reports["restored"] = [expected, [rows_of(element, "join") for element in restored]]
    # Fewer batches than the other one takes.
    long = tfrecord.dataset(args["folders"]["long"], batch_size=1, shard=ctx, uneven="join")
    iterator = iter(long.take(3 if ctx.job_name == "chief" else 90))
    try:
        reports["left"] = len(list(iterator))
    except tf.errors.InvalidArgumentError as error:
        reports["left"] = str(error)
    del iterator
    try:
        tfrecord.dataset(args["folders"]["one" if ctx.job_name == "chief" else "five"], shard=ctx, uneven="pad")
    except ValueError as error:
        reports["others"] = str(error)
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(reports, file)


def fit(args, ctx):
    """The steps of each epoch, the weights and the losses."""
    import tensorflow as tf

    from tensorflowonspark import tfrecord

    steps = []
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    dataset = tfrecord.dataset(args["folders"]["three"], batch_size=3 * ctx.num_workers, shard=ctx, uneven="pad", shuffle_buffer=20, dtypes="float32")
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(1,))])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    count = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: steps.append(0),
                                              on_train_batch_end=lambda batch, logs: steps.append(steps.pop() + 1))
    history = model.fit(dataset.map(lambda row, weight: (row["x"][:, tf.newaxis] / 41, tf.ones_like(row["x"]), weight)), epochs=3, verbose=0,
                        callbacks=[count]).history
    return {"steps": steps, "weights": [value.tolist() for value in model.get_weights()], "loss": history["loss"]}


@pytest.mark.long
def test_two_workers_in_step(tmp_path):
    pytest.importorskip("tf_keras" if int(tf.__version__.split(".")[1]) > 15 else "tensorflow")
    folders = {name: write(tmp_path / name, counts) for name, counts in LAYOUTS.items()}
    out = tmp_path / "out"
    out.mkdir()
    with Nodes(tmp_path, local(read_in_step), {"out": str(out), "folders": folders, "ways": WAYS}, 2) as cluster:
        cluster.wait()
    chief, worker = [json.loads((out / name).read_text()) for name in "01"]
    for way, (name, uneven) in enumerate(WAYS):
        for one, other in zip(chief[str(way)], worker[str(way)]):
            rows = sorted(sum(one + other, []))
            if uneven == "stop":
                assert len(one) == len(other) == {"five": 6, "row": 0}[name]
                assert len(set(rows)) == len(rows) == 6 * len(one)
            else:
                assert rows == list(range(sum(LAYOUTS[name])))
                assert len(one) == len(other) == max(-(-len(sum(part, [])) // 3) for part in (one, other))
    for expected, restored in (chief["restored"], worker["restored"]):
        assert expected == restored and len(expected) == 4
    assert chief["left"] == 3 and "another node takes no more batches of its pass over the files" in worker["left"]
    assert "nodes in step do not read the same files: this one has 1, another 5" in chief["others"]
    assert "this one has 5, another 1" in worker["others"]
    assert chief["fit"]["steps"] == worker["fit"]["steps"] and len(set(chief["fit"]["steps"])) == 1
    assert chief["fit"]["steps"][0] >= 6  # batches of the larger part, which the strategy cuts in two
    assert chief["fit"]["weights"] == worker["fit"]["weights"] and chief["fit"]["loss"][-1] < chief["fit"]["loss"][0] / 2


def test_on_spark(sc, tmp_path):
    """Each row once in each pass, in equal steps; Keras 3 trains on them in step."""

    def work(args, ctx):
        import json

        import keras

        from tensorflowonspark import tfrecord
        from tensorflowonspark.keras import distribute

        dataset = tfrecord.dataset(args["folder"], batch_size=3, shard=ctx, uneven="pad", columns=["x"])
        passes = [[batch["x"].numpy()[weights.numpy() == 1].tolist() for batch, weights in dataset] for _ in range(2)]
        with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
            json.dump(passes, file)
        keras.utils.set_random_seed(ctx.executor_id)
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.compile(keras.optimizers.SGD(0.5), "mse", metrics=["mae"])
        rows = dataset.map(lambda batch, weights: (tf.cast(batch["x"][:, None], tf.float32) / 22, tf.cast(batch["x"], tf.float32) / 11, weights))
        history = distribute(model).fit(rows, epochs=5, verbose=0).history
        return model.get_weights()[0].tolist(), history["mae"]

    pytest.importorskip("keras", "3.0")
    out = tmp_path / "out"
    out.mkdir()
    cluster = TFCluster.run(sc, work, {"folder": write(tmp_path / "rows", [9, 10, 3]), "out": str(out)}, 2, 0)
    cluster.shutdown()
    (first, errors), (second, others) = cluster.results()
    assert first == second and errors == others and errors[-1] < errors[0] / 2
    for one, other in zip(*(json.loads((out / name).read_text()) for name in "01")):
        assert len(one) == len(other) and sorted(sum(one + other, [])) == list(range(22))

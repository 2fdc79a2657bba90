# SPDX-License-Identifier: Apache-2.0
"""tfrecord.dataset where tf.data saves and restores iterators, and where strategies share a dataset out among workers."""

import itertools
import json
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute
from tensorflow.python.distribute import input_ops

from conftest import free_ports
from tensorflowonspark import tfrecord

POLICY = tf.data.experimental.AutoShardPolicy
SCHEMA = pa.schema({"x": pa.int64(), "ids": pa.list_(pa.int64())})
COUNTS = {"one": [41], "three": [20, 0, 21], "many": [5] * 9}


def write(folder, counts, compression="none"):
    paths, number = [], 0
    for k, count in enumerate(counts):
        paths.append(str(folder / f"part-{k:03d}"))
        rows = range(number, number + count)
        tfrecord.write(paths[-1], pa.table({"x": list(rows), "ids": [[row] * (row % 4) for row in rows]}, SCHEMA), compression=compression)
        number += count
    return paths


def rows_of(elements):
    """The rows in all elements, whose columns must belong together."""
    rows = []
    for element in elements:
        numbers = element["x"].numpy().tolist()
        if "ids" in element:
            assert element["ids"].to_list() == [[number] * (number % 4) for number in numbers]
        rows += numbers
    return rows


# ---- saved and restored


def assert_restored(make, folder, moments):
    """An iterator that is saved after so many elements continues, in a dataset made anew, with what the first would have given."""
    prefix = str(folder / "checkpoint")
    for moment in moments:
        iterator = iter(make())
        for _ in itertools.islice(iterator, moment):
            pass
        path = tf.train.Checkpoint(iterator=iterator).save(prefix)
        expected = rows_of(iterator)
        restored = iter(make())
        for _ in itertools.islice(restored, moment // 2):
            pass
        tf.train.Checkpoint(iterator=restored).restore(path).assert_consumed()
        assert rows_of(restored) == expected, moment


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("options", [
    {}, {"num_parallel_reads": 3}, {"shuffle_buffer": 10, "prefetch": 0}, {"shuffle_files": True, "shuffle_buffer": 1000, "num_parallel_reads": 2},
    {"shard": (1, 2), "drop_remainder": True},
])  # fmt: skip
def test_s88_an_iterator_is_restored(tmp_path, compression, options):
    paths = write(tmp_path, COUNTS["three"], compression)

    def make():
        return tfrecord.dataset(paths, SCHEMA, 4, ragged="ids", seed=3, **options)

    assert_restored(make, tmp_path, [0, 1, 4, 7, 11])


def test_s88_what_is_made_of_a_dataset_is_restored(tmp_path):
    paths = write(tmp_path, COUNTS["many"])

    def make():
        rows = tfrecord.dataset(paths, SCHEMA, 2, columns=["x"], shuffle_buffer=7, shuffle_files=True, seed=3)
        return rows.unbatch().repeat(3).shuffle(5, seed=1).map(lambda row: row, num_parallel_calls=2).batch(4).prefetch(2)

    assert_restored(make, tmp_path, [0, 1, 7, 20, 33])


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"shuffle_buffer": 300}])
def test_s88_long_passes_are_restored(tmp_path, options):
    paths = write(tmp_path, [600, 200])

    def make():
        return tfrecord.dataset(paths, SCHEMA, 1, columns=["x"], seed=3, **options)

    assert_restored(make, tmp_path, [254, 255, 256, 257, 513, 799, 800])


def test_s88_later_passes_have_orders_of_their_own(tmp_path):
    paths = write(tmp_path, COUNTS["three"])
    dataset = tfrecord.dataset(paths, SCHEMA, 4, columns=["x"], shuffle_buffer=50, seed=3, prefetch=0).repeat(4)
    iterator = iter(dataset)
    for _ in itertools.islice(iterator, 15):  # 11 are a pass
        pass
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "checkpoint"))
    expected = rows_of(iterator)
    restored = iter(tfrecord.dataset(paths, SCHEMA, 4, columns=["x"], shuffle_buffer=50, prefetch=0).repeat(4))
    tf.train.Checkpoint(iterator=restored).restore(path)
    found = rows_of(restored)
    assert found[: 7 * 4 - 3] == expected[: 7 * 4 - 3]  # the same pass, though the seed is another
    passes = [found[25:66], found[66:]]
    assert passes[0] != passes[1] and [sorted(one) for one in passes] == 2 * [list(range(41))]


def test_s88_other_datasets_refuse_the_iterator(tmp_path):
    paths = write(tmp_path, COUNTS["three"])
    iterator = iter(tfrecord.dataset(paths, SCHEMA, 4, columns=["x"], prefetch=0))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "checkpoint"))
    for other, words in [
        (tfrecord.dataset(paths[1:], SCHEMA, 4, columns=["x"], prefetch=0), "the number of files is 3 there and 2 here"),
        (tfrecord.dataset(paths, SCHEMA, 4, columns=["x"], num_parallel_reads=2, prefetch=0), "read side by side is 1 there and 2 here"),
    ]:
        restored = iter(other)
        tf.train.Checkpoint(iterator=restored).restore(path)
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            next(restored)


def test_s88_files_may_be_in_another_folder(tmp_path):
    paths = write(tmp_path, COUNTS["three"])
    iterator = iter(tfrecord.dataset(paths, SCHEMA, 4, columns=["x"], prefetch=0))
    assert rows_of(itertools.islice(iterator, 7)) == list(range(28))
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "checkpoint"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = [shutil.move(path, elsewhere) for path in paths]
    restored = iter(tfrecord.dataset(moved, SCHEMA, 4, columns=["x"], prefetch=0))
    tf.train.Checkpoint(iterator=restored).restore(path)
    assert rows_of(restored) == list(range(28, 41))


@pytest.mark.long
def test_s88_fit_is_resumed_by_backup_and_restore(tmp_path):
    """In the middle of an epoch, with the steps and the model that tf.data's own dataset of the files leads to."""
    path = write(tmp_path, [41])[0]

    class Interrupted(Exception):
        pass

    class Steps(tf.keras.callbacks.Callback):
        def __init__(self, most):
            super().__init__()
            self.count, self.most = 0, most

        def on_train_batch_end(self, batch, logs=None):
            self.count += 1
            if self.count == self.most:
                raise Interrupted

    def fit(rows, name, most):
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        steps, pass_size = Steps(most), tf.data.experimental.assert_cardinality(11)  # TensorFlow 2.15 resumes passes of known size only
        backup = tf.keras.callbacks.BackupAndRestore(str(tmp_path / name), save_freq=2)
        pairs = rows.map(lambda batch: (tf.cast(batch["x"], "float32")[:, tf.newaxis] / 41, tf.cast(batch["x"], "float32")))
        try:
            model.fit(pairs.apply(pass_size), epochs=3, verbose=0, callbacks=[backup, steps])
        except Interrupted:
            pass
        return steps.count, [weights.tolist() for weights in model.get_weights()]

    found = []
    for name in ("ours", "theirs"):
        if name == "ours":
            rows = tfrecord.dataset(path, SCHEMA, 4, columns=["x"])
        else:
            rows = tf.data.TFRecordDataset(path).batch(4).map(lambda one: tf.io.parse_example(one, {"x": tf.io.FixedLenFeature([], tf.int64)}))
        found.append([fit(rows, name, 15), fit(rows, name, 0)])
    assert found[0] == found[1] and found[0][0][0] == 15 and found[0][1][0] > 11


def test_s88_a_row_that_does_not_fit_is_named_after_restoring(tmp_path):
    table = pa.table({"x": pa.array([*range(8), None, 9], pa.int64())})
    tfrecord.write(tmp_path / "a", table)
    dataset = tfrecord.dataset(tmp_path / "a", table.schema, 2, prefetch=0)
    iterator = iter(dataset)
    assert rows_of(itertools.islice(iterator, 4)) == list(range(8))
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "checkpoint"))
    restored = iter(dataset)
    tf.train.Checkpoint(iterator=restored).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{tmp_path}/a, row 8: column x"):
        next(restored)


# ---- shared out among workers


def share(dataset, workers, policy=None):
    """What each of so many workers of a strategy gets of a dataset."""
    if policy is not None:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        dataset = dataset.with_options(options)
    shares = []
    for index in range(workers):
        parts = distribute._LegacyRebatchDataset(dataset, workers)
        shares.append(rows_of(input_ops.auto_shard_dataset(parts, workers, index, workers)))
    return shares


@pytest.mark.parametrize("files", sorted(COUNTS))
@pytest.mark.parametrize("policy", [None, POLICY.AUTO, POLICY.FILE, POLICY.DATA])
def test_s92_each_row_goes_to_one_worker(tmp_path, files, policy):
    paths = write(tmp_path, COUNTS[files], "gzip" if policy is None else "none")
    total = sum(COUNTS[files])
    for workers, reads in [(1, 0), (2, 0), (3, 2), (4, 8)]:
        plain = tfrecord.dataset(paths, SCHEMA, 8, columns=["x"], num_parallel_reads=reads)
        shares = share(plain, workers, policy)
        assert sorted(sum(shares, [])) == list(range(total))
        # Each of our readers has its own order of chance, unless all read everything and leave out what is for others.
        shuffled = tfrecord.dataset(paths, SCHEMA, 8, columns=["x"], shuffle_files=True, shuffle_buffer=20)
        if policy != POLICY.DATA:
            mixed = shuffled.map(lambda batch: batch, num_parallel_calls=2).shuffle(3).repeat(2)
            assert sorted(sum(share(mixed, workers, policy), [])) == sorted(2 * list(range(total)))


def test_s92_balanced_however_few_files_there_are(tmp_path):
    paths = write(tmp_path, [41])
    assert [len(rows) for rows in share(tfrecord.dataset(paths, SCHEMA, 8, columns=["x"]), 4)] == [11, 10, 10, 10]
    paths = write(tmp_path, [8] * 6)
    assert [len(rows) for rows in share(tfrecord.dataset(paths, SCHEMA, 8, columns=["x"]), 4)] == [12] * 4


def test_s92_with_other_datasets(tmp_path):
    paths = write(tmp_path, COUNTS["three"])
    dataset = tfrecord.dataset(paths, SCHEMA, 8, columns=["x"])
    assert sorted(sum(share(dataset.concatenate(dataset), 2), [])) == sorted(2 * list(range(41)))
    # What cannot be shared out by files is by elements, whose order is the same on all workers.
    numbered = dataset.enumerate().map(lambda number, batch: batch)
    assert sorted(sum(share(numbered, 2), [])) == list(range(41))
    nested = tf.data.Dataset.range(2).interleave(lambda _: dataset, cycle_length=2)
    assert sorted(sum(share(nested, 3), [])) == sorted(2 * list(range(41)))


def test_s92_the_same_seed_on_all_workers(tmp_path, monkeypatch):
    paths = write(tmp_path, COUNTS["three"])

    def read(tasks):
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": tasks}, "task": {"type": "worker", "index": len(orders)}}))
        orders.append(rows_of(tfrecord.dataset(paths, SCHEMA, 8, columns=["x"], shuffle_buffer=50)))
        return orders[-1]

    orders = []
    assert read(["a:1", "b:1"]) == read(["a:1", "b:1"]) != read(["a:1", "b:2"])
    assert read(["a:1"]) != read(["a:1"])


def test_s92_shards_by_hand(tmp_path):
    paths = write(tmp_path, COUNTS["many"])
    shares = []
    for index in range(3):
        context = tf.distribute.InputContext(num_input_pipelines=3, input_pipeline_id=index, num_replicas_in_sync=6)
        dataset = tfrecord.dataset(paths, SCHEMA, context.get_per_replica_batch_size(24), shard=context)
        shares.append(rows_of(dataset))
        assert shares[-1] == rows_of(tfrecord.dataset(paths, SCHEMA, 4, shard=(index, 3)))
        assert share(dataset, 2) == 2 * [shares[-1]]  # it is one already
    assert sorted(sum(shares, [])) == list(range(45)) and [len(rows) for rows in shares] == [15, 15, 15]
    for wrong in [(3, 3), (-1, 2), 3, (0, 0), (True, 2), "ab"]:
        with pytest.raises(ValueError, match="shard must be"):
            tfrecord.dataset(paths, SCHEMA, 4, shard=wrong)


def test_s92_rows_of_a_shard_are_named_by_their_numbers(tmp_path):
    table = pa.table({"x": pa.array([1, 2, 3, None, 5, None], pa.int64())})
    tfrecord.write(tmp_path / "a", table)
    for shuffle in (0, 5):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{tmp_path}/a, row [35]: column x"):
            list(tfrecord.dataset(tmp_path / "a", table.schema, 3, shard=(1, 2), shuffle_buffer=shuffle))
        assert len(rows_of(tfrecord.dataset(tmp_path / "a", table.schema, 3, shard=(0, 2), shuffle_buffer=shuffle))) == 3


WORKER = """
import importlib.util, json, os, sys
if importlib.util.find_spec("tf_keras"):  # TensorFlow 2.15 needs none
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
from tensorflowonspark import tfrecord

rows = 40
strategy = tf.distribute.MultiWorkerMirroredStrategy()

class Unseen(tf.keras.metrics.Metric):  # how many rows of all were not seen once
    def __init__(self):
        super().__init__(name="unseen")
        self.seen = self.add_weight(name="seen", shape=(rows,), initializer="zeros")

    def update_state(self, numbers, predictions, sample_weight=None):
        self.seen.assign_add(tf.reduce_sum(tf.one_hot(tf.cast(tf.reshape(numbers, [-1]), tf.int32), rows), axis=0))

    def reset_state(self):
        self.seen.assign(tf.zeros([rows]))

    def result(self):
        return tf.reduce_sum(tf.cast(tf.not_equal(self.seen, 1), tf.float32))

def read(distributed):
    return [int(x) for batch in distributed for part in strategy.experimental_local_results(batch["x"]) for x in part]

def work(paths):
    def dataset(**options):
        return tfrecord.dataset(paths, batch_size=8, columns=["x"], **options)

    def by_hand(context):
        return tfrecord.dataset(paths, batch_size=context.get_per_replica_batch_size(8), columns=["x"], shard=context, shuffle_buffer=50)

    seen = [
        read(strategy.experimental_distribute_dataset(dataset())),
        read(strategy.experimental_distribute_dataset(dataset(shuffle_files=True, shuffle_buffer=50, num_parallel_reads=2, prefetch=-1))),
        read(strategy.distribute_datasets_from_function(by_hand)),
    ]
    pairs = dataset(shuffle_buffer=50, dtypes="float32").map(lambda batch: (batch["x"][:, tf.newaxis] / rows, batch["x"]))
    history = model.fit(pairs, epochs=2, verbose=0).history
    return seen, [float(value) for value in history["unseen"]]

with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Unseen()])
print(json.dumps([work(paths) for paths in json.loads(sys.argv[1])]))
"""


@pytest.mark.long
def test_s92_under_a_multi_worker_strategy(tmp_path):
    layouts = []
    for counts in ([40], [8] * 5):
        folder = tmp_path / str(len(counts))
        folder.mkdir()
        layouts.append(write(folder, counts))
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    workers = []
    for index in range(2):
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        workers.append(subprocess.Popen([sys.executable, "-c", WORKER, json.dumps(layouts)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "TF_CONFIG": config}, text=True))  # fmt: skip
    try:
        outputs = [worker.communicate(timeout=150) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], outputs[0][1][-3000:] + outputs[1][1][-3000:]
    results = [json.loads(output.splitlines()[-1]) for output, _ in outputs]
    for (one, unseen), (other, others_unseen) in zip(*results):
        for rows, others_rows in zip(one, other):
            assert sorted(rows + others_rows) == list(range(40)) and len(rows) in (16, 20, 24)
        assert unseen == others_unseen == [0.0, 0.0]

# SPDX-License-Identifier: Apache-2.0
"""ctx.get_dataset on a real node: its options, what elements look like, tf.data's operations on it, and how it ends.

One trainer serves the whole module: it is asked for one thing after another, each of them a dataset and an epoch of its own.
"""

import os
import pickle
import signal
import time

import numpy as np
import psutil
import pytest

from conftest import our_processes, wait_until
from local_cluster import starting
from tensorflowonspark.dataset import get_dataset

SERVE = """
import gc, importlib.util, itertools, json, time
import tensorflow as tf
import tensorflowonspark.dataset
from tensorflowonspark.TFSparkNode import TFNodeContext

ctx = TFNodeContext.of(link, json.loads(link.context))
folder = os.environ["OUT"]

def plain(value):
    if isinstance(value, tf.RaggedTensor):
        return {"ragged": value.to_list()}
    if isinstance(value, tf.SparseTensor):
        return {"sparse": tf.sparse.to_dense(value).numpy(), "indices": value.indices.numpy().tolist()}
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(member) for member in value)
    return value.numpy()

def batches(dataset):
    found = []
    for element in dataset:
        tf.nest.assert_same_structure(dataset.element_spec, element, expand_composites=True)
        for spec, value in zip(tf.nest.flatten(dataset.element_spec), tf.nest.flatten(element)):
            assert spec.is_compatible_with(value), (spec, value)
        found.append(plain(element))
    return found

def catch_up():
    # After a failure: on to the row that the test has fed to find its way by, and the end of its epoch.
    tensorflowonspark.dataset._in_use.clear()
    gc.collect()
    feed = link.open_feed()
    while "way-mark" not in feed.next_rows(1, False):
        pass
    while feed.next_rows(1, False, stop_at_epoch=True):
        pass

for number in itertools.count():
    path = f"{folder}/ask-{number}"
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as file:
        options, program = pickle.load(file)
    if program is None:
        break
    dataset = None
    try:
        open(f"{folder}/begun-{number}", "w").close()
        if options:
            dataset = ctx.get_dataset(**options)
        answer = (repr(dataset and dataset.element_spec), eval(program))
    except BaseException as error:
        answer = (ValueError if isinstance(error, ValueError) else RuntimeError)(type(error).__name__, str(error))
    save_as = f"{folder}/answer-{number}"
    with open(save_as + ".new", "wb") as file:
        pickle.dump(answer, file)
    os.rename(save_as + ".new", save_as)
"""


class Served:
    """The node, asked for datasets."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.asked = self.fed = 0

    def ask(self, program="batches(dataset)", **options):
        """Asks without waiting; returns the number of the question."""
        path = self.folder / f"ask-{self.asked}"
        path.with_suffix(".new").write_bytes(pickle.dumps((options, program)))
        path.with_suffix(".new").rename(path)
        self.asked += 1
        return self.asked - 1

    def answer(self, number, seconds=60):
        path = self.folder / f"answer-{number}"
        wait_until(path.exists, seconds, "the trainer's answer")
        answer = pickle.loads(path.read_bytes())
        if isinstance(answer, Exception):
            raise answer
        return answer

    def feed(self, *partitions, ends=True):
        """One epoch of rows, or of Arrow batches."""
        self.fed += 1
        for number, rows in enumerate(partitions):
            with self.cluster.writer(number, feed=self.fed) as writer:
                if isinstance(rows, list) and rows and hasattr(rows[0], "__arrow_c_array__"):
                    for batch in rows:
                        writer.append(batch)
                    writer.finish()
                else:
                    writer.feed(rows)
        if ends:
            self.cluster.rendezvous.end_epoch(self.fed)

    def batches(self, *partitions, program="batches(dataset)", **options):
        """The specs and the batches of one epoch."""
        number = self.ask(program, **options)
        self.feed(*partitions)
        return self.answer(number)

    def failure(self, *partitions, program="batches(dataset)", **options):
        """What such an epoch fails with."""
        number = self.ask(program, **options)
        self.feed(*partitions)
        with pytest.raises((ValueError, RuntimeError)) as caught:
            self.answer(number)
        number = self.ask("catch_up()")
        self.feed(["way-mark"])
        self.answer(number)
        return caught.value


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset")
    with starting(folder) as start:
        os.mkdir(folder / "out")
        served = Served(start(SERVE), folder / "out")
        yield served
        served.ask(None)
        served.cluster.end()


@pytest.fixture
def nothing_left():
    """The node of this module's tests stays until the last of them."""


def rows_of(count):
    return [([float(i)] * 4, i, f"row {i}") for i in range(count)]


# ---- structure


def test_tuples(served):
    specs, found = served.batches(rows_of(13), rows_of(12), batch_size=10)
    assert specs.startswith("(TensorSpec(shape=(None, 4), dtype=tf.float64")
    assert [len(batch[1]) for batch in found] == [10, 10, 5]
    assert np.concatenate([batch[1] for batch in found]).tolist() == [*range(13), *range(12)]
    assert found[0][0].dtype == np.float64 and found[0][2].tolist()[9] == b"row 9"


def test_single_values_dictionaries_and_rows(served):
    from pyspark.sql import Row

    specs, found = served.batches([1, 2, 3], batch_size=2)
    assert specs.startswith("TensorSpec(shape=(None,), dtype=tf.int64")
    assert [batch.tolist() for batch in found] == [[1, 2], [3]]
    _, found = served.batches([{"b": 1.5, "a": True}, {"b": 2.5, "a": False}], batch_size=5)
    assert {name: value.tolist() for name, value in found[0].items()} == {"a": [True, False], "b": [1.5, 2.5]}
    _, found = served.batches([Row(z=np.arange(6, dtype="float32").reshape(2, 3), a=b"\0x")], batch_size=5)
    assert found[0]["z"].shape == (1, 2, 3) and found[0]["z"].dtype == np.float32 and found[0]["a"].tolist() == [b"\0x"]


def test_whole_batches_have_a_static_size(served):
    specs, found = served.batches(rows_of(25), batch_size=10, drop_remainder=True)
    assert "shape=(10, 4)" in specs and [len(batch[1]) for batch in found] == [10, 10]


def arrow(**columns):
    return pytest.importorskip("pyarrow").RecordBatch.from_pydict(columns)


def test_structs_are_dictionaries(served):
    people = [{"age": i, "name": {"first": f"f{i}", "last": f"l{i}"}} for i in range(3)]
    _, found = served.batches([arrow(id=[1, 2, 3], person=people)], batch_size=5, columns=["person.age", "person.name.first", "id"])
    assert found[0]["person"]["age"].tolist() == [0, 1, 2] and found[0]["id"].tolist() == [1, 2, 3]
    assert found[0]["person"]["name"]["first"].tolist() == [b"f0", b"f1", b"f2"] and "last" not in found[0]["person"]["name"]


def test_columns_are_chosen(served):
    _, found = served.batches([arrow(a=[1], b=["x"], c=[2.0])], batch_size=5, columns=["c", "a"])
    assert sorted(found[0]) == ["a", "c"]
    assert "no column d" in str(served.failure([arrow(a=[1])], batch_size=5, columns=["d"]))


def test_shapes(served):
    pixels = [[float(row * 6 + i) for i in range(6)] for row in range(4)]
    specs, found = served.batches([arrow(pixels=pixels)], batch_size=3, shapes={"pixels": (2, 3)})
    assert "shape=(None, 2, 3)" in specs
    assert np.concatenate([batch["pixels"] for batch in found]).reshape(4, 6).tolist() == pixels
    assert "pixels" in str(served.failure([arrow(pixels=[[1.0, 2.0]])], batch_size=3, shapes={"pixels": (2, 3)}))


def test_ragged(served):
    words = [["a", "b"], [], ["c"], ["d", "e", "f"]]
    specs, found = served.batches([arrow(words=words, n=[1, 2, 3, 4])], batch_size=3)
    assert "RaggedTensorSpec(TensorShape([None, None]), tf.string, 1, tf.int64)" in specs
    assert [batch["words"]["ragged"] for batch in found] == [[[b"a", b"b"], [], [b"c"]], [[b"d", b"e", b"f"]]]
    specs, found = served.batches([arrow(x=[[1, 2], [3, 4]])], batch_size=3, ragged="x", dtypes="float32")
    assert "RaggedTensorSpec" in specs and found[0]["x"]["ragged"] == [[1.0, 2.0], [3.0, 4.0]]
    deep = [[[1], [2, 3]], [], [[]]]
    _, found = served.batches([arrow(x=deep)], batch_size=3, ragged=["x"])
    assert found[0]["x"]["ragged"] == deep


def test_padded(served):
    lists = [[1, 2], [], [3], [4, 5, 6]]
    _, found = served.batches([arrow(x=lists)], batch_size=3, padded="x")
    assert [batch["x"].tolist() for batch in found] == [[[1, 2], [0, 0], [3, 0]], [[4, 5, 6]]]
    specs, found = served.batches([arrow(x=lists)], batch_size=4, padded={"x": 4}, null_value={"x": -1})
    assert "shape=(None, 4)" in specs
    assert found[0]["x"].tolist() == [[1, 2, -1, -1], [-1] * 4, [3, -1, -1, -1], [4, 5, 6, -1]]
    assert "x" in str(served.failure([arrow(x=lists)], batch_size=4, padded={"x": 2}))


def vectors():
    pyarrow = pytest.importorskip("pyarrow")
    kind = pyarrow.struct([("type", pyarrow.int8()), ("size", pyarrow.int32()), ("indices", pyarrow.list_(pyarrow.int32())),
                           ("values", pyarrow.list_(pyarrow.float64()))])
    rows = [{"type": 0, "size": 4, "indices": [1, 3], "values": [5.0, 7.0]},
            {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0, 3.0, 4.0]}]
    return pyarrow.RecordBatch.from_arrays([pyarrow.array(rows, kind)], ["features"])


def test_mllib_vectors(served):
    want = [[0.0, 5.0, 0.0, 7.0], [1.0, 2.0, 3.0, 4.0]]
    _, found = served.batches([vectors()], batch_size=2)
    assert found[0]["features"].tolist() == want
    specs, found = served.batches([vectors()], batch_size=2, sparse=["features"], dtypes={"features": "float32"})
    assert "SparseTensorSpec" in specs
    assert found[0]["features"]["sparse"].tolist() == want and found[0]["features"]["sparse"].dtype == np.float32
    assert found[0]["features"]["indices"][:2] == [[0, 1], [0, 3]]


def test_nulls(served):
    assert "null" in str(served.failure([arrow(a=[1, None])], batch_size=2))
    _, found = served.batches([arrow(a=[1, None], b=[None, 2.5], s=["x", None])], batch_size=2,
                              null_value={"a": -1, "b": float("nan"), "s": "nothing"})
    assert found[0]["a"].tolist() == [1, -1] and np.isnan(found[0]["b"][0]) and found[0]["s"].tolist() == [b"x", b"nothing"]
    _, found = served.batches([arrow(a=[1, None], s=["x", None])], batch_size=2, null_value=7)
    assert found[0]["a"].tolist() == [1, 7] and found[0]["s"].tolist() == [b"x", b"7"]
    assert "null_value" in str(served.failure([arrow(a=[1, None])], batch_size=2, null_value="many"))


def test_dtypes(served):
    rows = [(1, 2.5, "x"), (3, 4.5, "y")]
    _, found = served.batches(rows, batch_size=2, dtypes=("uint8", "float32", "string"))
    assert [part.dtype.name for part in found[0][:2]] == ["uint8", "float32"] and found[0][0].tolist() == [1, 3]
    _, found = served.batches([{"a": 1, "b": 2}], batch_size=2, dtypes={"a": np.float16})
    assert found[0]["a"].dtype == np.float16 and found[0]["b"].dtype == np.int64
    assert "2 columns, the rows have 3" in str(served.failure(rows, batch_size=2, dtypes=("uint8", "float32")))
    assert "the rows have names: give a dictionary" in str(served.failure([{"b": 1, "a": 2}], batch_size=2, dtypes=("uint8", "float32")))  # S82
    assert "text is not cast" in str(served.failure(rows, batch_size=2, dtypes="float32"))
    assert "'z'" in str(served.failure([{"a": 1}], batch_size=2, dtypes={"z": "int8"}))


def test_shuffle_buffer(served):
    def order(**options):
        _, found = served.batches(list(range(100)), batch_size=10, **options)
        return np.concatenate(found).tolist()

    first = order(shuffle_buffer=50, seed=1)
    assert sorted(first) == list(range(100)) != first
    assert order(shuffle_buffer=50, seed=1) == first != order(shuffle_buffer=50, seed=2)
    assert order() == list(range(100))


def test_s72_arrays_through_pickle_are_dense(served):
    """As Spark hands arrays on after cache() and repartition()."""
    rows = [{"x": np.arange(6, dtype="f4").reshape(2, 3) + i, "y": np.int8(i), "t": np.datetime64(i, "us"), "z": np.array([i, 2], ">i4")} for i in range(4)]
    specs, found = served.batches([pickle.loads(pickle.dumps(row, protocol)) for protocol, row in enumerate(rows, 2)], batch_size=4)
    assert "'x': TensorSpec(shape=(None, 2, 3), dtype=tf.float32" in specs and "'y': TensorSpec(shape=(None,), dtype=tf.int8" in specs
    assert (found[0]["x"] == np.stack([row["x"] for row in rows])).all()
    assert found[0]["t"].tolist() == [0, 1, 2, 3] and found[0]["z"].tolist() == [[i, 2] for i in range(4)]


def test_s83_rows_with_names_are_dictionaries(served):
    from test_row_kinds import Example, Pair
    from test_rows import Color

    for rows in ([Example([i, 0.5], Color.RED) for i in range(2)], [Pair([i, 0.5], True) for i in range(2)]):
        specs, found = served.batches(rows, batch_size=2)
        assert "'image': TensorSpec(shape=(None, 2), dtype=tf.float64" in specs
        assert found[0]["image"].tolist() == [[0, 0.5], [1, 0.5]] and found[0]["label"].tolist() == [1, 1]


def test_s87_lists_of_numbers(served):
    rows = [([np.float32(i)] * 2, [i, 0.5], [[i, 1], [2, 3]], [True, i], ["a", "b"]) for i in range(3)]
    specs, found = served.batches(rows, batch_size=3)
    assert specs.startswith("(TensorSpec(shape=(None, 2), dtype=tf.float32, name=None), TensorSpec(shape=(None, 2), dtype=tf.float64, name=None), "
                            "TensorSpec(shape=(None, 2, 2), dtype=tf.int64")
    assert found[0][1].tolist() == [[i, 0.5] for i in range(3)] and found[0][2].tolist() == [[[i, 1], [2, 3]] for i in range(3)]
    assert found[0][3].tolist() == [[1, i] for i in range(3)]


def test_s87_lists_of_several_lengths_are_ragged(served):
    for rows in ([[1, 2.5], [3], []], [([1, 2.5],), ([3],), ([],)], [([np.int8(1)] * 2,), ([],), ([np.int8(3)],)]):
        _, found = served.batches(rows, batch_size=3)
        column = found[0] if isinstance(rows[0], list) else found[0][0]
        assert column == {"ragged": [list(row if isinstance(row, list) else row[0]) for row in rows]}
    _, found = served.batches([([[1], [2, 3]],), ([],)], batch_size=2)
    assert found[0][0] == {"ragged": [[[1], [2, 3]], []]}
    _, found = served.batches([([1, None],), ([2.5, 3],)], batch_size=2, null_value=-1)
    assert found[0][0].tolist() == [[1, -1], [2.5, 3]]


def test_s87_integers_of_another_partition_are_floats(served):
    _, found = served.batches([(1, [0.5, 1])], [(2, [3, 4])], batch_size=1)
    assert [batch[1].tolist() for batch in found] == [[[0.5, 1]], [[3, 4]]] and found[1][1].dtype == np.float64


@pytest.mark.parametrize("first, second, where, words", [
    ([1] * 5_000 + [0.5], [], "partition 0, row 5000: column value",
     "is float64 where the first rows have int64: feed values of one type in all rows"),
    ([[1, 2]] * 5_000 + [[1, 2, 3]], [], "partition 0, row 5000", "lists of several lengths go into a tuple"),
    ([(1,)], [({"a": 1},)], "partition 1, row 0: column 0", "feed numbers, text, bytes, lists of these, or arrays of one shape"),
    ([1, 2], [3, "x"], "partition 1, row 1: column value", "has no tensor form"),
    ([(1, 2.0)], [(1, "x")], "partition 1, row 0: column 1", "is string where the first rows have float64"),
    ([(1, 2.0)], [(1,)], "partition 1, row 0: column 1", "of the first rows is missing"),
    ([{"a": 1}], [{"a": 1, "b": 2}], "partition 1, row 0: column b", "is not among those of the first rows"),
    ([{"a": [1.5]}], [{"a": 1.5}], "partition 1, row 0: column a", "is float64 where the first rows have list of float64"),
    ([([1.0, 2.0],), ([1.0, 2.0],)], [([1.0],)], "partition 1, row 0: column 0", "has a list of 1 elements where each has 2"),
])
def test_rows_that_change_are_refused(served, first, second, where, words):
    """By partition, row and column, with what was expected and what came."""
    failure = str(served.failure(first, second, batch_size=1 + len(first) // 50))
    assert where in failure and words in failure, failure


def test_batches_that_change_are_refused(served):
    pa = pytest.importorskip("pyarrow")
    cases = [
        ([arrow(a=[1])], [arrow(a=[1]), arrow(a=pa.array([1, 2], pa.int32()))], "row 1: column a is int32 where the first rows have int64"),
        ([arrow(a=[1], b=[2])], [arrow(a=[1])], "row 0: column b of the first rows is missing"),
        ([arrow(a=[[1, 2]])], [arrow(a=[[1, 2], [1, 2, 3]])], "row 1: column a has a list of 3 elements where each has 2"),
        ([arrow(a=[{"x": 1, "y": 2}])], [arrow(a=[{"x": 1, "y": "z"}])], "row 0: column a.y is string where the first rows have int64"),
        ([arrow(a=[{"x": 1}])], [arrow(a=[{"x": 1, "y": 2}])], "row 0: column a.y is not among those of the first rows"),
    ]
    for first, second, words in cases:
        failure = str(served.failure(first, second, batch_size=1))
        assert f"partition 1, {words}" in failure, failure


# ---- tf.data's operations


def test_passes_are_epochs(served):
    number = served.ask("[batches(dataset), batches(dataset)]", batch_size=3)
    served.feed([1, 2], [3, 4])
    served.feed([5, 6])
    assert [[batch.tolist() for batch in epoch] for epoch in served.answer(number)[1]] == [[[1, 2, 3], [4]], [[5, 6]]]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_nothing_reads_beyond_the_end_of_an_epoch(served, prefetch):
    """A parallel map asks for elements after the last one."""
    number = served.ask("[batches(dataset.map(lambda x: x + 1, num_parallel_calls=4)) for _ in range(2)]", batch_size=1, prefetch=prefetch)
    served.feed([1, 2])
    served.feed([3, 4])
    assert [[batch.tolist() for batch in epoch] for epoch in served.answer(number)[1]] == [[[2], [3]], [[4], [5]]]


def test_take_leaves_the_rest(served):
    number = served.ask("[batches(dataset.take(2)), batches(dataset)]", batch_size=1, prefetch=0)
    served.feed([1, 2, 3, 4])
    taken, rest = served.answer(number)[1]
    assert [batch.tolist() for batch in taken] == [[1], [2]]
    assert [batch.tolist() for batch in rest] in ([[3], [4]], [[4]])


def test_s15_a_pass_begins_where_an_epoch_was_used_up(served):
    """Who takes all batches and does not ask for the end, begins the next epoch and no pass of none."""
    number = served.ask("[[x.numpy().tolist() for _, x in zip(range(2), dataset)] for _ in range(3)] + [batches(dataset), batches(dataset)]",
                        batch_size=2, prefetch=0)  # fmt: skip
    for epoch in ([1, 2, 3], [4, 5, 6], [7, 8, 9], [], [10]):
        served.feed(epoch)
    found = served.answer(number)[1]
    assert found[:3] == [[[1, 2], [3]], [[4, 5], [6]], [[7, 8], [9]]]
    assert len(found[3]) == 0 and [batch.tolist() for batch in found[4]] == [[10]]


def test_cache_holds_more_than_the_ring(served):
    """60 MB of tensors are kept while rows come through channels of 16 MiB."""
    program = "[float(sum(tf.reduce_sum(x) for x in ds)) for ds in [dataset.cache()] for _ in range(2)]"
    big = np.ones(10_000)
    _, sums = served.batches(*[(big for _ in range(250)) for _ in range(3)], program=program, batch_size=50)
    assert sums == [7_500_000.0] * 2


def test_shuffle_map_and_unbatch(served):
    program = "sorted(x.numpy() for x in dataset.map(lambda x: x * 2).unbatch().shuffle(100))"
    assert served.batches(list(range(50)), program=program, batch_size=7)[1] == [2 * i for i in range(50)]


def test_in_place_kernels_do_not_touch_other_batches(served):
    """TensorFlow may overwrite the memory of the ring."""
    program = "[x.numpy().tolist() for x in dataset.map(lambda x: tf.sqrt((x + 1) * (x + 1)) - 1)]"
    rows = [np.full(1000, i, "float32") for i in range(40)]
    _, found = served.batches(rows, program=program, batch_size=4)
    assert np.allclose(np.concatenate(found), np.stack(rows), atol=1e-3)


FIT = """(lambda model: (model.compile("sgd", "mse"), model.fit(dataset, {how}, verbose=0).history["loss"])[1])(
    tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)]))"""


def test_fit_by_epochs_and_by_steps(served):
    rows = [([float(i)] * 4, float(i)) for i in range(10)]
    number = served.ask(FIT.format(how="epochs=3"), batch_size=3, dtypes="float32")
    for _ in range(3):
        served.feed(rows)
    assert len(served.answer(number)[1]) == 3
    number = served.ask(FIT.format(how="epochs=2, steps_per_epoch=2"), batch_size=3, dtypes="float32", prefetch=0)
    served.feed(rows + rows)
    assert len(served.answer(number)[1]) == 2


STEPS = """(lambda keras, steps: ((model := keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])).compile("sgd", "mse"),
    model.fit(dataset, epochs=3, verbose=0, callbacks=[keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: steps.append(0), on_train_batch_end=lambda *_: steps.append(steps.pop() + 1))]), steps)[-1])(
    importlib.import_module("tf_keras") if importlib.util.find_spec("tf_keras") else tf.keras, [])"""


def test_s15_fit_takes_all_epochs(served):
    """tf_keras counts the steps of the first epoch and does not ask for the end of the others."""
    number = served.ask(STEPS, batch_size=3, dtypes="float32", prefetch=0)
    for _ in range(3):
        served.feed([([float(i)] * 4, float(i)) for i in range(10)])
    assert served.answer(number)[1] == [4, 4, 4]


# ---- ends and errors


def test_an_epoch_of_no_rows(served):
    number = served.ask("[len(batches(dataset)) for _ in range(2)]", batch_size=3)
    served.feed([1])
    served.feed([])
    assert served.answer(number)[1] == [1, 0]


def test_another_dataset_ends_the_wait_of_the_one_before(served):
    """A thread of TensorFlow that waits for rows of a dataset which was given up leaves the queue to the next one."""
    program = """[(iterator := iter(dataset), next(iterator).numpy().tolist())[1], time.sleep(0.5), open(folder + "/replacing", "w").close(),
        [row.numpy().tolist()[0] for row in ctx.get_dataset(batch_size=1)], globals().pop("iterator")][0:4:3]"""
    number = served.ask(program, batch_size=1)
    served.feed([1], ends=False)
    wait_until((served.folder / "replacing").exists, 60, "the trainer")
    time.sleep(0.5)  # that it has ended the wait cannot be seen from here
    with served.cluster.writer(1, feed=served.fed) as writer:
        writer.feed(range(2, 100))
    served.cluster.rendezvous.end_epoch(served.fed)
    first, others = served.answer(number)[1]
    assert first == [1]
    assert others == list(range(others[0], 100))


def test_an_iterator_is_given_up_while_it_waits(served):
    """It goes with the next rows, and does not take the interpreter's lock with it before."""
    program = """[(iterator := iter(dataset), next(iterator).numpy().tolist())[1],
        globals().pop("iterator"), open(folder + "/given-up", "w").close()][0]"""
    number = served.ask(program, batch_size=1)
    served.feed([1], ends=False)
    time.sleep(0.5)
    with served.cluster.writer(1, feed=served.fed) as writer:
        writer.feed([2, 3])
    served.cluster.rendezvous.end_epoch(served.fed)
    assert served.answer(number)[1] == [1]


def test_one_reader_at_a_time(served):
    failure = served.failure([1, 2], batch_size=1, program="link.open_feed().next_rows(1, False)")
    assert "dataset" in str(failure)


def test_ctrl_c_ends_the_wait_for_the_first_row(served):
    number = served.ask(batch_size=1)
    wait_until((served.folder / f"begun-{number}").exists, 60, "the trainer")
    (node, _), = our_processes()
    trainer, = psutil.Process(int(node)).children()
    time.sleep(0.5)  # that it waits in C cannot be seen from here
    os.kill(trainer.pid, signal.SIGINT)
    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        served.answer(number)
    assert served.batches([1], batch_size=1)[1][0].tolist() == [1]


@pytest.mark.long
def test_a_trainer_ends_while_tensorflow_waits(tmp_path):
    """Its link is closed under an op that waits for rows."""
    program = SERVE.split("def catch_up")[0] + """
iterator = iter(ctx.get_dataset(1))
values = [next(iterator).numpy().tolist()]
link.close()
try:
    next(iterator)
except tf.errors.OpError as error:
    values.append("closed" in str(error))
save(values)
"""
    with starting(tmp_path) as start:
        cluster = start(program)
        cluster.feed([1])
        wait_until(lambda: os.path.exists(cluster.out), 120, "the trainer's end")
        assert cluster.saved() == [[1], True]


@pytest.mark.long
def test_a_feed_without_rows(tmp_path):
    program = SERVE.split("def catch_up")[0] + """
try:
    ctx.get_dataset(1)
except ValueError as error:
    save(str(error))
"""
    with starting(tmp_path) as start:
        assert "ended before the first row" in start(program).saved()


@pytest.mark.parametrize("options, message", [
    ({"batch_size": 0}, "batch_size"), ({"batch_size": True}, "batch_size"), ({"batch_size": "8"}, "batch_size"),
    ({"uneven": "drop"}, "uneven must be None, 'pad', 'join' or 'stop'"), ({"drop_remainder": 1}, "drop_remainder"),
    ({"timeout": 0}, "timeout"), ({"timeout": "1"}, "timeout"), ({"prefetch": -2}, "prefetch"), ({"prefetch": 1.5}, "prefetch"),
    ({"columns": []}, "columns"), ({"columns": 5}, "columns"), ({"columns": ["a", "a"]}, "'a' twice"), ({"columns": [1]}, "1 is none"),
    ({"shapes": (28, 28)}, "shapes must be a dictionary"), ({"shapes": {"x": (0,)}}, "shapes\\['x'\\]"),
    ({"shapes": {"x": "28"}}, "shapes\\['x'\\]"), ({"ragged": [None]}, "ragged"), ({"padded": {"x": -1}}, "padded\\['x'\\]"),
    ({"ragged": "x", "sparse": "x"}, "as ragged and as sparse"), ({"shapes": {"x": 3}, "padded": "x"}, "cannot be padded"),
    ({"null_value": [1]}, "null_value"), ({"null_value": {"x": object()}}, "null_value\\['x'\\]"), ({"null_value": b"\xff"}, "null_value"),
    ({"shuffle_buffer": -1}, "shuffle_buffer"), ({"seed": 1.5}, "seed"), ({"seed": 2**64}, "seed"),
    ({"dtypes": "floaty"}, "dtypes"), ({"dtypes": {"x": ["float32", 5j]}}, "dtypes"),
])  # fmt: skip
def test_wrong_arguments_are_refused_before_anything_waits(options, message):
    pytest.importorskip("tensorflow")
    with pytest.raises(ValueError, match=message):
        get_dataset(None, **{"batch_size": 8, **options})

# SPDX-License-Identifier: Apache-2.0
"""Rows through the extension: from a FeedWriter in this process to a trainer, and results back."""

import collections
import dataclasses
import gc
import json
import re
import resource
import socket
import threading
import time

import numpy as np
import pytest

from conftest import wait_until
from local_cluster import ANSWER_ALL, READ_ALL, interrupted, open_files
from tensorflowonspark import _tfos
from test_row_kinds import of_main

KEY = "0" * 64


@pytest.mark.parametrize("remote", [False, True])
def test_rows_arrive_as_they_were(start, remote):
    rows = [([float(i)] * (1 + i % 5), i, str(i), None if i % 7 else b"x", np.full((2, 2), i % 100, np.int8)) for i in range(20_000)]
    cluster = start(READ_ALL)
    with cluster.writer(remote=remote) as writer:
        assert writer.node == "worker:0"
        assert writer.feed(iter(rows)) == len(rows)
        with pytest.raises(_tfos.InvalidError, match="open one for each attempt"):
            writer.feed([])
    saved = cluster.saved()
    assert len(saved) == len(rows)
    for was, is_ in zip(rows, saved):
        assert was[:4] == is_[:4] and np.array_equal(was[4], is_[4]) and is_[4].dtype == np.int8


def test_many_batches_and_partitions(start):
    cluster = start(READ_ALL)
    rows = [[([float(i + j) for j in range(784)], p) for i in range(3000)] for p in range(3)]
    for partition in range(3):
        assert cluster.feed(rows[partition], partition) == 3000
    saved = cluster.saved()
    for partition in range(3):  # several partitions may be read in turn, each in its order
        assert [row for row in saved if row[1] == partition] == rows[partition]


def test_arrays_across_batches(start):
    cluster = start("""
feed, sizes, sums = link.open_feed(), [], []
while True:
    arrays = feed.next_arrays(1000)
    if arrays is None:
        break
    features, labels = arrays
    assert features.flags.owndata and features.shape == (len(labels), 784)
    assert (features[:, 0] == labels).all()
    sizes.append(len(labels))
    sums.append(int(labels.sum()))
save([sizes, sum(sums), feed.at_end])
""")
    cluster.feed((([float(i)] * 784, i) for i in range(4321)))
    assert cluster.saved() == [[1000] * 4 + [321], sum(range(4321)), True]


@pytest.mark.parametrize("make", [list, tuple, np.array])
def test_lists_of_varying_length_are_one_array_where_they_have_one(start, make):
    cluster = start("""
feed, got = link.open_feed(), []
while True:
    arrays = feed.next_arrays(8)
    if arrays is None:
        break
    got.append(arrays[0])
save(got)
""")
    rows = [(make([float(n)] * n), n) for n in range(8)] + [(make([float(n)] * 3), n) for n in range(8)]
    cluster.feed(rows)
    ragged, dense = cluster.saved()
    assert ragged.dtype == object and [row.tolist() for row in ragged] == [[float(n)] * n for n in range(8)]
    assert dense.dtype == np.float64 and dense.tolist() == [[float(n)] * 3 for n in range(8)]


def test_arrays_that_change_are_refused_by_name(start):
    cluster = start("""
feed, got = link.open_feed(), []
while True:
    try:
        arrays = feed.next_arrays(10)
    except _tfos.InvalidError as error:
        got.append(str(error))
        continue
    if arrays is None:
        break
    got.append(len(arrays[0]))
save(got)
""")
    cluster.feed([([1.0, 2.0], 1)] * 14 + [([1.0, 2.0, 3.0], 1)] * 3, partition=7)
    first, error, last = cluster.saved()
    assert (first, last) == (10, 3)
    assert "partition 7, row 14, column 0: was list of 2 float, is now list of float of varying length" in error


def test_partitions_and_epochs_end_calls(start):
    cluster = start("""
feed, calls = link.open_feed(), []
while True:
    rows = feed.next_rows(4, True, stop_at_epoch=True)
    calls.append(rows)
    if rows is None:
        break
save([calls, feed.at_end, feed.next_rows(1, False)])
""")
    for feed in (1, 2):
        for partition, count in enumerate([3, 0, 4, 5]):
            cluster.feed(range(count), partition, feed=feed)
        cluster.rendezvous.end_epoch(feed)
        cluster.rendezvous.wait(_tfos.DRAINED, 20_000)
    calls, at_end, after = cluster.saved()
    assert calls[-1] is None and at_end is True and after is None
    for epoch in (calls[:5], calls[5:10]):  # partitions may come in any order
        assert sorted(epoch) == [[], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [4]] and epoch[-1] == []
    assert len(calls) == 11


def test_reading_times_out_and_arguments_are_checked(start):
    cluster = start("""
feed, errors = link.open_feed(), []
rows = feed.next_rows(2, False)
rows += link.open_feed().next_rows(5, False, timeout_ms=500)
for call in (lambda: feed.next_rows(1, False, timeout_ms=100), lambda: feed.next_rows(0, False), lambda: feed.next_rows("1", False),
             lambda: feed.next_rows(1, 0), lambda: feed.next_rows(1), lambda: feed.put_results((1,)), lambda: feed.put_results([1])):
    try:
        errors.append(call())
    except Exception as error:
        errors.append((type(error).__name__, str(error)))
errors.append(feed.at_end)
save([rows, errors])
link.report('{"saved": 1}')
feed.next_rows(1, False)
""")
    assert cluster.feed(range(4)) == 4
    wait_until(lambda: json.loads(cluster.rendezvous.status())["nodes"][0]["report"], 60, "the trainer's report")
    rows, errors = cluster.saved()
    assert rows == [0, 1, 2, 3]
    expected = [("TimedOutError", "no row came within 100 ms"), ("ValueError", "count: expected an int from 1"),
                ("TypeError", "count: expected an int, not <class 'str'>"), ("TypeError", "stop_at_partition: expected a bool"),
                ("TypeError", "stop_at_partition is missing"), ("TypeError", "results: expected a list, not <class 'tuple'>"),
                ("InvalidError", "no row waits for one")]
    assert [name for name, _ in errors[:-1]] == [name for name, _ in expected]
    assert all(words in error for (_, error), (_, words) in zip(errors, expected))
    assert errors[-1] is False


def test_an_exception_of_the_iterator_passes_and_the_next_attempt_goes_on(start):
    """S21: no row twice, none lost."""
    cluster = start(READ_ALL)

    class Broken(Exception):
        pass

    def rows(limit):
        for i in range(10_000):
            if i == limit:
                raise Broken(i)
            yield (i, "x" * 100)

    with cluster.writer(attempt=0) as writer:
        with pytest.raises(Broken) as caught:
            writer.feed(rows(9_000))
        assert caught.value.args == (9_000,)
    with cluster.writer(attempt=1) as writer:
        assert 0 < writer.feed(rows(-1)) < 10_000
    assert cluster.saved() == list(rows(-1))


def test_a_row_that_cannot_be_fed_is_named(start):
    cluster = start(READ_ALL)
    with pytest.raises(TypeError, match="row 2 cannot be fed: its column 1 has no column form and cannot be pickled"):
        cluster.feed([(1, 1), (2, 2), (3, threading.Lock())])
    with cluster.writer(attempt=1) as writer:
        with pytest.raises(TypeError, match="rows: expected an iterable, not <class 'int'>"):
            writer.feed(5)


class Trap:
    """Does something when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("remote", [False, True])
def test_a_trainer_that_refuses_pickles_reads_none(start, tmp_path, remote):
    """Its node was stopped; that the task was not changes nothing."""
    cluster = start("link.open_feed().next_rows(10, False)", allow_pickle=False)
    with cluster.writer(0, results=True, remote=remote) as writer:
        with pytest.raises(_tfos.Error, match='column 1 is of type "pickle".*allow_pickle'):
            list(writer.results([(1, Trap(tmp_path / "trap"))]))
    assert not (tmp_path / "trap").exists()


def test_a_trainer_that_refuses_pickles_answers_with_none(start):
    cluster = start("""
feed = link.open_feed()
feed.put_results([{1, 2} for _ in feed.next_rows(10, True)])
""", allow_pickle=False)
    with cluster.writer(0, results=True) as writer, pytest.raises(_tfos.Error, match='column 0 is of type "pickle".*allow_pickle'):
        list(writer.results([1]))


def test_a_task_that_refuses_pickles_feeds_none_and_takes_none(start, tmp_path):
    cluster = start(f"""
class Trap:
    def __reduce__(self):
        return open, ({str(tmp_path / "trap")!r}, "w")

feed = link.open_feed()
feed.put_results([Trap() for _ in feed.next_rows(10, True)])
feed.next_rows(10, False)
""")
    with cluster.writer(0, results=True, allow_pickle=False) as writer:
        with pytest.raises(_tfos.UnsupportedError, match='column 0 is of type "pickle".*allow_pickle'):
            list(writer.results([1]))
    with cluster.writer(1, allow_pickle=False) as writer:
        with pytest.raises(_tfos.UnsupportedError, match='column 1 is of type "pickle".*allow_pickle'):
            writer.feed([(1, {1, 2})])
    cluster.end()
    assert not (tmp_path / "trap").exists()


def test_a_terminated_feed_is_skipped(start):
    cluster = start("""
feed = link.open_feed()
rows = feed.next_rows(10, False)
feed.terminate()
save([rows, feed.at_end, feed.next_rows(10, False)])
link.terminate()
while link.agree("end", "1") is None:
    pass
""")
    taken = []

    def endless():
        while True:
            taken.append(None)
            yield "x" * 1000

    assert cluster.feed(endless()) < len(taken) + 1
    cluster.rendezvous.wait(_tfos.DRAINED, 20_000)
    rows = iter([1, 2, 3])
    with cluster.writer(partition=1) as writer:
        assert writer.node is None
        assert writer.feed(rows) == 0
    assert list(rows) == [1, 2, 3]
    with cluster.writer(partition=2, results=True) as writer:
        assert list(writer.results([])) == []
    with pytest.raises(_tfos.ClosedError, match="partition 3: its rows get no results"):
        cluster.results([1], partition=3)
    assert cluster.saved() == [["x" * 1000] * 10, True, None]


def test_a_slow_reader_lets_signals_in(start):
    cluster = start("""
feed = link.open_feed()
feed.next_rows(1, False)
import signal
signal.pause()
""")
    with cluster.writer() as writer, interrupted(1):
        writer.feed("x" * 10_000 for _ in range(10_000))
    cluster.rendezvous.stop(0)


def test_a_writer_that_waits_times_out_with_words(start):
    cluster = start("""
feed = link.open_feed()
feed.next_rows(1, False)
import signal
signal.pause()
""")
    with pytest.raises(_tfos.TimedOutError, match=r"partition 0 .*taken nothing from queue \"input\" for 1 s"):
        cluster.feed(("x" * 10_000 for _ in range(10_000)), timeout_ms=1000)
    cluster.rendezvous.stop(0)


def test_a_dead_trainer_ends_the_feed_with_its_cause(start):
    cluster = start("""
import sys
feed = link.open_feed()
feed.next_rows(10, False)
print("last words", file=sys.stderr, flush=True)
os._exit(3)
""")
    begin = time.monotonic()
    with pytest.raises(_tfos.ClosedError, match="(?s)worker:0.*exit status 3.*last words"):
        cluster.feed("x" * 10_000 for _ in range(100_000))
    assert time.monotonic() - begin < 20


def test_writers_need_the_cluster_and_its_key(start):
    cluster = start(READ_ALL)
    with pytest.raises(_tfos.DeniedError, match=cluster.cluster_id):
        _tfos.FeedWriter(cluster.rendezvous.address, cluster.cluster_id, KEY, 1, 0, 0)
    with pytest.raises(_tfos.Error, match="127.0.0.1:1"):
        _tfos.FeedWriter("127.0.0.1:1", cluster.cluster_id, cluster.key, 1, 0, 0, timeout_ms=2000)


def test_joining_lets_signals_in():
    with socket.create_server(("127.0.0.1", 0)) as silent, interrupted():
        _tfos.FeedWriter("127.0.0.1:%d" % silent.getsockname()[1], "silent", KEY, 1, 0, 0)


def test_a_writer_waits_for_the_cluster_with_signals_and_a_limit():
    with _tfos.Rendezvous("lonely", KEY, 1, is_feeding=True, host="127.0.0.1", listen_host="127.0.0.1") as rendezvous:
        with interrupted():
            _tfos.FeedWriter(rendezvous.address, "lonely", KEY, 1, 0, 0)
        with pytest.raises(_tfos.TimedOutError, match="partition 5: the driver named no node"):
            _tfos.FeedWriter(rendezvous.address, "lonely", KEY, 1, 5, 0, timeout_ms=300)
        rendezvous.fail("CLOSED", "the reason")
        with pytest.raises(_tfos.ClosedError, match="the reason"):
            _tfos.FeedWriter(rendezvous.address, "lonely", KEY, 1, 6, 0)


# -- results


READ_MAPPED = """
import json
import numpy as np
from tensorflowonspark.TFSparkNode import TFNodeContext

ctx = TFNodeContext.of(link, json.loads(link.context))
feed, got = ctx.get_data_feed(input_mapping={"b": "second", "a": "first", "c": "third"}), []
while not feed.should_stop():
    try:
        batch = feed.next_batch(2) if len(got) % 2 == 0 else feed.next_arrays(2)
    except ValueError as error:
        got.append(str(error))
        break
    got.append(batch and {name: np.asarray(values).tolist() for name, values in batch.items()})
save(got)
"""


def by_name():
    """Rows whose columns are not in the order of their names."""
    from pyspark.sql import Row

    odd = of_main({"Odd": collections.namedtuple("Odd", "c a x b")})["Odd"]
    data = dataclasses.make_dataclass("Data", ["c", "x", "b", "a"])
    made = of_main({"Data": data})["Data"]
    yield [{"c": 3, "x": "-", "a": i, "b": [2.5, i]} for i in range(4)]
    yield [collections.OrderedDict(c=3, x="-", a=i, b=[2.5, i]) for i in range(2)]
    yield [Row(x="-", c=3, b=[2.5, i], a=i) for i in range(4)]
    yield [odd(3, i, "-", [2.5, i]) for i in range(4)]
    yield [made(3, "-", [2.5, i], i) for i in range(4)]
    yield [({"a": i, "c": 3, "b": [2.5, i]} if i % 2 else Row(x=1, c=3, b=[2.5, i], a=i)) for i in range(2)]
    yield [(i, [2.5, i], 3) for i in range(4)]
    yield [[i, [2.5, i], 3] for i in range(4)]


@pytest.mark.parametrize("rows", list(by_name()), ids=["dict", "OrderedDict", "Row", "namedtuple", "dataclass", "mixed", "tuple", "list"])
def test_s82_input_mapping_goes_by_name_where_rows_have_names(start, rows):
    cluster = start(READ_MAPPED)
    cluster.feed(rows)
    got = [batch for batch in cluster.saved() if batch and batch["first"]]
    assert [list(batch) for batch in got] == [["first", "second", "third"]] * (len(rows) // 2)
    for number, batch in enumerate(got):
        ids = [2 * number, 2 * number + 1]
        assert batch == {"first": ids, "second": [[2.5, i] for i in ids], "third": [3, 3]}


def test_s82_columns_of_a_dataframe_go_by_name(start):
    pa = pytest.importorskip("pyarrow")
    cluster = start(READ_MAPPED)
    with cluster.writer() as writer:
        writer.append(pa.RecordBatch.from_pydict({"x": ["-"] * 4, "c": [3] * 4, "a": [0, 1, 2, 3], "b": [[2.5, 0.5]] * 4}))
        writer.finish()
    assert cluster.saved()[:2] == [{"first": [i, i + 1], "second": [[2.5, 0.5]] * 2, "third": [3, 3]} for i in (0, 2)]


@pytest.mark.parametrize("rows, words", [
    ([{"a": 1, "b": 2, "d": 3}], r"partition 0, row 0: there is no column 'c', which input_mapping names: the row has \('a', 'b', 'd'\)"),
    ([{"a": 1, "b": 2, "c": 3}] * 2 + [{"a": 1, "b": 2}], "row 2: the row is one value, or has other columns than those before it"),
    ([{"a": 1, "b": 2, "c": 3}] + [{"a": 1, "b": 2}], "row 1: there is no column 'c'"),
    ([(1, 2)], "the row has 2 columns and no names, and input_mapping names 3: feed tuples of all of them"),
    ([5], "there is no column 'a', which input_mapping names, in the row, which is of class <class 'int'>"),
    ([{"a": 1}, (1,)], "there is no column 'b'"),
])
def test_s82_a_column_that_is_not_there_is_named(start, rows, words):
    cluster = start(READ_MAPPED)
    cluster.feed(rows)
    errors = [got for got in cluster.saved() if isinstance(got, str)]
    assert len(errors) == 1 and re.search(words, errors[0]), errors


@pytest.mark.parametrize("remote", [False, True])
def test_s16_as_many_results_as_rows(start, remote):
    cluster = start(ANSWER_ALL)
    for partition, count in enumerate([0, 1, 7, 10, 11]):
        rows = [(partition, i) for i in range(count)]
        assert cluster.results(rows, partition, remote=remote) == [("result", row) for row in rows]
    cluster.end()


def test_results_come_lazily_in_bounded_memory(start):
    cluster = start(ANSWER_ALL)
    taken = []

    def rows():
        for i in range(100_000):
            taken.append(i)
            yield (i, "x" * 1000)

    with cluster.writer(results=True) as writer:
        results = writer.results(rows())
        assert iter(results) is results
        assert next(results) == ("result", (0, "x" * 1000))
        ahead = len(taken)
        assert ahead < 60_000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert sum(1 for _ in results) == 99_999
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
        assert list(results) == []
    cluster.end()


def test_results_of_any_type_and_several_calls_a_batch(start):
    cluster = start("""
feed = link.open_feed()
while True:
    rows = feed.next_rows(8, True)
    if rows is None:
        break
    feed.put_results([])
    feed.put_results(rows[:3])
    feed.put_results(rows[3:])
""")
    rows = [1, "two", 3.0, None, [4], {"five": 5}, (6,), 2**80, b"nine", {10}] * 3
    assert cluster.results(rows) == rows
    cluster.end()


def test_s17_too_few_results_are_an_error_with_both_counts(start):
    cluster = start("""
feed = link.open_feed()
rows = feed.next_rows(100, True)
feed.put_results(rows[:-1])
""")
    with pytest.raises(_tfos.Error, match="partition 3 .*9 results for 10 rows"):
        cluster.results(range(10), partition=3)


def test_s17_too_few_results_time_out_with_both_counts(start):
    cluster = start("""
feed = link.open_feed()
rows = feed.next_rows(100, True)
feed.put_results(rows[:-1])
feed.next_rows(100, True)
""")
    with pytest.raises(_tfos.TimedOutError, match="(?s)partition 3 .*10 rows.*9 results"):
        cluster.results(range(10), partition=3, timeout_ms=1000)
    with pytest.raises(_tfos.TimedOutError, match="partition 3"):
        cluster.end()  # to compute the partition again would be to wait again


def test_s17_too_many_results_are_refused_by_name(start):
    cluster = start("""
feed = link.open_feed()
rows = feed.next_rows(100, True)
try:
    feed.put_results(rows + [0])
except _tfos.InvalidError as error:
    words = str(error)
feed.put_results(rows)
save(words)
feed.next_rows(100, True)
""")
    assert cluster.results(range(10), partition=3) == list(range(10))
    assert "partition 3: 11 results for the 10 rows" in cluster.saved()


def test_results_of_two_partitions_at_once(start):
    cluster = start(ANSWER_ALL)
    found = {}

    def work(partition):
        found[partition] = cluster.results([(partition, i) for i in range(3000)], partition)

    threads = [threading.Thread(target=work, args=(partition,)) for partition in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {p: [("result", (p, i)) for i in range(3000)] for p in range(3)}
    cluster.end()


def test_waiting_for_results_lets_signals_in(start):
    cluster = start("""
feed = link.open_feed()
feed.next_rows(100, True)
import signal
signal.pause()
""")
    with cluster.writer(results=True) as writer:
        results = writer.results([1, 2, 3])
        with interrupted(1):
            next(results)
        assert list(results) == []
    with cluster.writer(partition=1, results=True) as writer:
        with pytest.raises(_tfos.InvalidError, match="use results"):
            writer.feed([1])
    cluster.rendezvous.stop(0)


def test_a_trainer_whose_results_nobody_takes_lets_signals_in(start):
    cluster = start("""
import signal

def interrupt(number, frame):
    raise KeyboardInterrupt

feed = link.open_feed()
rows = feed.next_rows(2000, True)
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    feed.put_results(["x" * 10_000 for row in rows])
except KeyboardInterrupt:
    save("interrupted")
""")
    with cluster.writer(results=True, channel_size=1 << 16) as writer:
        results = writer.results(range(2000))
        assert next(results) == "x" * 10_000
        assert cluster.saved() == "interrupted"


def test_feeding_leaves_nothing(start):
    cluster = start(READ_ALL)

    def work(first):
        for i in range(10):
            cluster.feed([(1, "x", [1.0] * 3)] * 1000, partition=first + i)
        gc.collect()

    work(0)
    files, memory = open_files(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for round_ in range(1, 6):
        work(10 * round_)
    assert open_files() == files
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 4_000
    assert len(cluster.saved()) == 60_000

# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked in a trainer, and in whatever else holds a handle: none reads what another does. Without Spark."""

import multiprocessing
import os
import sys

import numpy as np
import pytest
from pyspark import cloudpickle

from local_cluster import starting
from tensorflowonspark import _tfos, tfrecord

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # trainers do not have this module

ROWS = 5000


def fork(action):
    """Runs ``action`` in a forked process; what it has given, or the text of its exception."""
    receiver, sender = multiprocessing.Pipe(False)
    pid = os.fork()
    if pid == 0:
        try:
            sender.send(action())
        except BaseException as error:
            sender.send(f"{type(error).__name__}: {error}")
            os._exit(0)  # with the exception TensorFlow 2.15 would destroy an iterator, and wait for threads that are not here
        os._exit(0)
    sender.close()
    try:
        return receiver.recv()
    finally:
        os.waitpid(pid, 0)


def take_rows(feed):
    rows = []
    while not feed.should_stop():
        rows += feed.next_batch(100)
    return rows


def write_down(folder, outcome):
    import json
    with open(f"{folder}/outcome", "w") as file:
        json.dump(outcome, file)


@pytest.fixture
def run(tmp_path):
    """Runs a function in a trainer that is fed; gives the failure's text, None when there was none, and what it has written down."""
    import json

    with starting(tmp_path) as start:
        def run_function(function):
            cluster, words = start(function), None
            try:
                cluster.feed(range(ROWS))
                cluster.end()
            except _tfos.Error as error:
                words = str(error)
            return words, json.loads((tmp_path / "outcome").read_text())
        yield run_function


def message_of(action):
    try:
        return str(action())
    except Exception as error:
        return str(error)


def read_a_feed(folder, ctx):
    feed = ctx.get_data_feed()
    first = feed.next_batch(10)
    theirs = [fork(lambda: take_rows(feed)), fork(lambda: feed.next_arrays(10).tolist()), fork(lambda: take_rows(ctx.get_data_feed()))]
    write_down(folder, [first, theirs, [message_of(lambda: feed.next_batch(10)), message_of(lambda: feed.next_arrays(10))]])


def read_a_dataset(folder, ctx):
    dataset = ctx.get_dataset(10, prefetch=0)
    batches = iter(dataset)
    first = next(batches).numpy().tolist()
    theirs = [fork(lambda: next(batches).numpy().tolist()), fork(lambda: next(iter(dataset)).numpy().tolist()), fork(lambda: ctx.get_dataset(10) and "opened")]
    write_down(folder, [first, theirs, [message_of(lambda: next(batches)), message_of(lambda: ctx.get_dataset(10))]])


@pytest.mark.parametrize("read", [read_a_feed, read_a_dataset], ids=lambda function: function.__name__)
def test_s73_a_forked_process_reads_no_row_and_the_job_tells(run, read):
    words, (first, theirs, mine) = run(read)
    assert first == list(range(10))
    for text in theirs:
        assert "was forked from process" in text and "cannot read on" in text and "use_multiprocessing=False" in text
    for text in [*mine, words]:
        assert "forked from this one, has tried to read on" in text


def test_s73_processes_that_only_begin_and_end_disturb_nothing(run):
    """They are forked while another thread reads, and end as Python does: they free what they inherit."""
    def work(folder, ctx):
        import gc
        import threading

        feed, rows = ctx.get_data_feed(), []
        reader = threading.Thread(target=lambda: rows.extend(take_rows(feed)))
        reader.start()
        outcomes = []
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                del feed, ctx
                gc.collect()
                sys.exit(7)
            outcomes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            outcomes += pool.map(abs, [-1, -2])
        reader.join()
        write_down(folder, [sorted(rows), outcomes])
    assert run(work) == (None, [list(range(ROWS)), [7] * 10 + [1, 2]])


def test_s73_a_process_that_fails_is_no_failure_of_the_trainer(run):
    def work(folder, ctx):
        def fail():
            raise LookupError("only there")
        process = multiprocessing.get_context("fork").Process(target=fail)
        process.start()
        process.join()
        if os.fork() == 0:
            fail()
        os.wait()
        write_down(folder, [process.exitcode, len(take_rows(ctx.get_data_feed()))])
    assert run(work) == (None, [1, ROWS])


def test_s73_records_are_not_read_on_in_a_forked_process(tmp_path):
    path = str(tmp_path / "records")
    tfrecord.write(path, {"x": np.arange(100)})
    batches = tfrecord.read(path, form="numpy", batch_rows=10)
    first = next(batches)
    assert fork(lambda: [len(batch["x"]) for batch in batches]).startswith("InvalidError: example reader: process")
    assert sum(len(batch["x"]) for batch in [first, *batches]) == 100


def test_s73_a_driver_that_forks_keeps_its_cluster(tmp_path):
    """The process forked from the driver, or from a feeding task, ends and leaves both alone."""
    with starting(tmp_path) as start:
        cluster = start(lambda folder, ctx: write_down(folder, take_rows(ctx.get_data_feed())))
        with cluster.writer() as writer:
            def leave():
                writer.close()
                cluster.node.close()
                cluster.rendezvous.close()
                with pytest.raises(_tfos.InvalidError, match="was forked from process"):
                    cluster.rendezvous.check()
                with pytest.raises(_tfos.InvalidError, match="was forked from process"):
                    writer.feed(range(10))
                return "left"
            assert fork(leave) == "left"
            assert writer.feed(range(ROWS)) == ROWS
        cluster.end()

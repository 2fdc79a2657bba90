# SPDX-License-Identifier: Apache-2.0
"""Streams on real executors: every row once, restarts, ends and failures of either side."""

import contextlib
import os
import threading

import pytest

from conftest import wait_until
from tensorflowonspark import TFCluster, _tfos, streaming
from test_cluster import local, read_all

pytest.importorskip("pyarrow")

FEED = TFCluster.InputMode.SPARK


def collect_rows(args, ctx):
    """Writes the ids of all rows that came, as they come; when there is a file "wait", only after the first until there is "go"."""
    import os
    import time

    feed = ctx.get_data_feed()
    with open(f"{args['out']}/{ctx.executor_id}", "a", buffering=1) as file:
        while not feed.should_stop():
            for row in feed.next_batch(1 if args.get("wait") else 10):
                file.write(f"{row[0]}\n")
            while args.get("wait") and not os.path.exists(args["wait"]):
                time.sleep(0.05)
            if args.get("limit") and file.tell() > args["limit"]:
                feed.terminate()
                return
            if args.get("failure") and file.tell() > 0:
                raise ValueError(args["failure"])


def ids_in(folder):
    return sorted(int(line) for name in os.listdir(folder) for line in (folder / name).read_text().split())


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


class Files:
    """A stream of the files of a folder, one a batch; each has rows with the ids of its range, which follow each other from ``first`` on."""

    def __init__(self, spark, folder, first=0):
        self._spark, self._folder = spark, str(folder)
        self._first = self.count = first

    def add(self, rows, padding=1):
        frame = self._spark.range(self.count, self.count + rows, 1, 1).selectExpr("id", f"repeat('x', {padding}) as text")
        frame.write.mode("append").parquet(self._folder)
        self.count += rows

    def stream(self, partitions=2):
        reader = self._spark.readStream.schema("id long, text string").option("maxFilesPerTrigger", 1)
        # By a column, and from one file: a repeated batch has the same rows in the same partitions.
        return reader.parquet(self._folder).repartition(partitions, "id")

    @property
    def ids(self):
        return list(range(self._first, self.count))


@pytest.fixture
def files(spark, tmp_path):
    return Files(spark, tmp_path / "files")


@pytest.fixture
def others(spark, tmp_path):
    return Files(spark, tmp_path / "others", first=1000)


@pytest.mark.parametrize("via", ["jvm", pytest.param("arrow", marks=pytest.mark.long)])
def test_every_row_of_a_stream_once(sc, spark, files, out, tmp_path, via):
    for rows in (30, 1, 44):
        files.add(rows)
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 2, 0, input_mode=FEED) as cluster:
        query = cluster.train(files.stream(), via=via, checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True})
        cluster.shutdown(query)
        assert not query.isActive and query.exception() is None
        assert ids_in(out) == files.ids
        assert sorted(os.listdir(tmp_path / "checkpoint" / "commits"))[-1] == "2"


def write_batches(args, ctx):
    import json

    dataset = ctx.get_dataset(25, columns=["id"])
    passes = [[batch["id"].numpy().tolist() for batch in dataset] for _ in range(2)]
    with open(f"{args}/{ctx.executor_id}", "w") as file:
        json.dump(passes, file)


@pytest.mark.long
def test_a_stream_is_one_epoch_in_the_order_of_its_batches(spark, files, out):
    for _ in range(6):
        files.add(10)
    with TFCluster.run(spark, local(write_batches), str(out), 1, 0, input_mode=FEED) as cluster:
        cluster.shutdown(cluster.train(files.stream(1), trigger={"availableNow": True}))
        batches, after = read_all(out)["0"]
        assert [len(batch) for batch in batches] == [25, 25, 10] and after == []
        assert sum(batches, []) == files.ids


@pytest.mark.long
@pytest.mark.parametrize("via", ["jvm", pytest.param("arrow", marks=pytest.mark.long)])
def test_a_query_killed_in_a_batch_feeds_the_rest_when_it_starts_again(spark, files, out, tmp_path, via):
    files.add(800, padding=100_000)  # more than the rings hold
    files.add(100)
    go, checkpoint = tmp_path / "go", tmp_path / "checkpoint"
    with TFCluster.run(spark, local(collect_rows), {"out": str(out), "wait": str(go)}, 2, 0, input_mode=FEED) as cluster:
        query = cluster.train(files.stream(3), checkpoint=str(checkpoint), via=via)
        wait_until(lambda: len(ids_in(out)) == 2, 60, "the first rows")
        query.stop()
        assert query.exception() is None
        assert not os.path.exists(checkpoint / "commits" / "0") and len(ids_in(out)) == 2
        again = cluster.train(files.stream(3), checkpoint=str(checkpoint), via=via, trigger={"availableNow": True})
        assert again.id == query.id
        go.touch()
        cluster.shutdown(again)
        assert ids_in(out) == files.ids


@pytest.mark.long
def test_a_batch_that_was_fed_but_not_committed_is_not_fed_again(spark, files, out, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    files.add(20)
    files.add(20)
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 2, 0, input_mode=FEED) as cluster:
        query = cluster.train(files.stream(), checkpoint=str(checkpoint), trigger={"availableNow": True})
        assert query.awaitTermination(60)
        for name in ("1", ".1.crc"):  # as if the driver had died before it was written
            os.unlink(checkpoint / "commits" / name)
        files.add(20)
        cluster.shutdown(cluster.train(files.stream(), checkpoint=str(checkpoint), trigger={"availableNow": True}))
        assert (checkpoint / "commits" / "1").exists()
        assert ids_in(out) == files.ids


@pytest.mark.long
def test_who_asks_to_stop_ends_a_query_behind_a_batch_and_another_cluster_goes_on(spark, files, out, tmp_path):
    for _ in range(8):
        files.add(10)
    checkpoint = str(tmp_path / "checkpoint")
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        query = cluster.train(files.stream(), checkpoint=checkpoint, trigger="300 milliseconds")
        wait_until(lambda: len(ids_in(out)) > 10, 60, "rows of the second batch")
        assert TFCluster.request_stop(cluster.cluster_id) == cluster.cluster_id
        cluster.shutdown(query)
        assert not query.isActive and query.exception() is None
        first = ids_in(out)
        assert first == files.ids[:len(first)] and len(first) % 10 == 0
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        cluster.shutdown(cluster.train(files.stream(), checkpoint=checkpoint, trigger={"availableNow": True}))
        assert ids_in(out) == files.ids


def rate(spark, rows=200):
    return spark.readStream.format("rate").option("rowsPerSecond", rows).load().selectExpr("value as id")


@pytest.mark.long
def test_the_query_ends_when_all_terminate(spark, out):
    with TFCluster.run(spark, local(collect_rows), {"out": str(out), "limit": 500}, 2, 0, input_mode=FEED) as cluster:
        query = cluster.train(rate(spark))
        wait_until(lambda: not query.isActive, 60, "the end of the query")
        assert query.exception() is None
        cluster.shutdown(query)
        ids = ids_in(out)
        assert len(ids) >= 200 and len(set(ids)) == len(ids)


@pytest.mark.long
def test_a_trainer_that_fails_ends_the_query_with_its_words(spark, out):
    with TFCluster.run(spark, local(collect_rows), {"out": str(out), "failure": "as told"}, 2, 0, input_mode=FEED) as cluster:
        query = cluster.train(rate(spark))
        with pytest.raises(_tfos.Error, match="(?s)worker:.*as told"):
            cluster.shutdown(query)
        assert not query.isActive


@pytest.mark.long
def test_a_query_that_fails_is_raised_when_the_functions_have_returned(spark, files, out, tmp_path):
    from pyspark.errors import StreamingQueryException

    files.add(20)
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        bad = files.stream().selectExpr("if(id >= 20, raise_error('bad row'), id) as id", "text")
        query = cluster.train(bad, trigger="100 milliseconds")
        wait_until(lambda: len(ids_in(out)) == 20, 60, "the first batch")
        files.add(5)
        with pytest.raises(StreamingQueryException, match="bad row"):
            cluster.shutdown(query)
        assert ids_in(out) == files.ids[:20]


@pytest.mark.long
def test_two_streams_at_once_take_turns(spark, files, others, out):
    for rows in (30, 20, 10):
        files.add(rows)
        others.add(rows + 1)
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 2, 0, input_mode=FEED) as cluster:
        first = cluster.train(files.stream(), trigger={"availableNow": True})
        second = cluster.train(others.stream(), trigger={"availableNow": True})
        assert first.awaitTermination(120) and second.awaitTermination(120)
        assert first.exception() is None and second.exception() is None
        cluster.shutdown()
        assert ids_in(out) == files.ids + others.ids


def collect_queues(args, ctx):
    """Writes the ids of the rows of each queue to a file of its name; of both at a time."""
    import threading

    def collect(queue):
        feed = ctx.get_data_feed(qname_in=queue)
        with open(f"{args}/{queue}", "w", buffering=1) as file:
            while not feed.should_stop():
                file.writelines(f"{row[0]}\n" for row in feed.next_batch(10))

    threads = [threading.Thread(target=collect, args=(queue,)) for queue in ("input", "others")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.long
def test_two_streams_at_once_have_each_its_queue(spark, files, others, out):
    for rows in (30, 20):
        files.add(rows)
        others.add(rows + 1)
    with TFCluster.run(spark, local(collect_queues), str(out), 1, 0, input_mode=FEED, queues=["input", "others"]) as cluster:
        queries = [cluster.train(files.stream(), trigger={"availableNow": True}),
                   cluster.train(others.stream(), trigger={"availableNow": True}, qname="others")]
        assert all(query.awaitTermination(120) and query.exception() is None for query in queries)
        cluster.shutdown()
        got = {queue: sorted(map(int, (out / queue).read_text().split())) for queue in ("input", "others")}
        assert got == {"input": files.ids, "others": others.ids}


@pytest.mark.long
def test_a_stream_that_fails_leaves_the_other_alone(spark, files, others, out):
    from pyspark.errors import StreamingQueryException

    files.add(20)
    others.add(20)
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        good = cluster.train(others.stream(), trigger="100 milliseconds")
        wait_until(lambda: len(ids_in(out)) == 20, 60, "the other stream's first batch")
        bad = cluster.train(files.stream().selectExpr("if(id >= 0, raise_error('bad row'), id) as id", "text"))
        wait_until(lambda: not bad.isActive, 60, "the end of the query that fails")
        assert good.isActive
        others.add(20)
        wait_until(lambda: len(ids_in(out)) == 40, 60, "the other stream's second batch")
        with pytest.raises(StreamingQueryException, match="bad row"):
            cluster.shutdown()
        assert not good.isActive and ids_in(out) == others.ids


def test_what_a_stream_cannot_have_is_refused(spark, sc, out):
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        wrong = [
            (dict(num_epochs=2), "num_epochs must be 0 or 1"),
            (dict(shuffle=True), "shuffle is for DataFrames that end"),
            (dict(columns=["none"]), "there is no column 'none'"),
            (dict(trigger={"every": 1}), "every"),
        ]
        for options, words in wrong:
            with pytest.raises((ValueError, TypeError), match=words):
                cluster.train(rate(spark), **options)
        with pytest.raises(ValueError, match="are for streaming DataFrames"):
            cluster.train(spark.range(3), checkpoint=str(out))
        cluster.train(spark.range(3), 1)
        query = cluster.train(rate(spark, 1))
        with pytest.raises(ValueError, match="fed by a stream"):
            cluster.train(sc.parallelize([(1,)]), 1)
        cluster.shutdown()
        assert not query.isActive


def test_who_waits_for_its_turn_is_asked_whether_to_go_on():
    class Rendezvous:
        def end_batch(self, feed, queue):
            ended.append(feed)

    def feed_long(feed):
        begun.set()
        return lambda: go.wait(30)

    def give_up():
        asked.append(True)
        if len(asked) == 2:
            raise KeyError("enough")

    ended, asked, begun, go = [], [], threading.Event(), threading.Event()
    batches = streaming.BatchFeed(Rendezvous(), iter([1, 2]).__next__, "input")
    thread = threading.Thread(target=lambda: batches.feed(feed_long, "a", 0))
    thread.start()
    assert begun.wait(10)
    with pytest.raises(KeyError, match="enough"):
        batches.feed(lambda feed: lambda: None, "b", 0, give_up)
    go.set()
    thread.join(10)
    batches.feed(lambda feed: lambda: None, "b", 0, give_up)
    assert ended == [1, 2] and len(asked) == 2


# -- DStreams


@contextlib.contextmanager
def streaming_context(sc):
    from pyspark.streaming import StreamingContext

    context = StreamingContext(sc, 0.5)
    try:
        yield context
    finally:
        context.stop(stopSparkContext=False)


@pytest.mark.long
def test_every_row_of_a_dstream_once(sc, out):
    with streaming_context(sc) as context:
        with TFCluster.run(sc, local(collect_rows), {"out": str(out)}, 2, 0, input_mode=FEED) as cluster:
            batches = [sc.parallelize([(i,) for i in range(first, first + 20)], 2) for first in range(0, 80, 20)]
            assert cluster.train(context.queueStream(batches)) is None
            context.start()
            stopper = threading.Thread(target=lambda: (wait_until(lambda: len(ids_in(out)) == 80, 60), TFCluster.request_stop(cluster.cluster_id)))
            stopper.start()
            cluster.shutdown(context)
            stopper.join()
    assert ids_in(out) == list(range(80))


@pytest.mark.long
def test_a_dstream_ends_when_all_terminate(sc, out):
    with streaming_context(sc) as context:
        with TFCluster.run(sc, local(collect_rows), {"out": str(out), "limit": 10}, 2, 0, input_mode=FEED) as cluster:
            cluster.train(context.queueStream([sc.parallelize([(i,) for i in range(1000)], 2)] * 100))
            context.start()
            cluster.shutdown(context)
            assert str(context._jssc.getState()) == "STOPPED"


def test_a_trainer_that_fails_ends_a_dstream(sc, out):
    with streaming_context(sc) as context:
        with TFCluster.run(sc, local(collect_rows), {"out": str(out), "failure": "as told"}, 2, 0, input_mode=FEED) as cluster:
            cluster.train(context.queueStream([sc.parallelize([(i,) for i in range(1000)], 2)] * 100))
            context.start()
            with pytest.raises(_tfos.Error, match="as told"):
                cluster.shutdown(context)
            assert str(context._jssc.getState()) == "STOPPED"


def test_shutdown_lets_no_batches_go_on_after_a_failure(sc, out):
    """However it is notified: Spark fails a batch only when there is one, and stops gracefully only once ten have had their time."""

    class Stream:
        stops = []

        def awaitTerminationOrTimeout(self, timeout):
            wait_until(lambda: cluster._status()["state"] == "failed", 60)
            return False

        def stop(self, stopSparkContext, stopGraceFully):
            self.stops.append((stopSparkContext, stopGraceFully))

    def fail(args, ctx):
        raise RuntimeError("as told")

    with TFCluster.run(sc, fail, None, 2, 0, input_mode=FEED) as cluster:
        with pytest.raises(_tfos.Error, match="as told"):
            cluster.shutdown(Stream())
    assert Stream.stops == [(False, False)]


def test_nodes_that_are_about_to_run_want_rows(sc, out, monkeypatch):
    """A stream that begins as soon as run() has returned is not ended because no trainer has started yet."""
    with TFCluster.run(sc, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        with monkeypatch.context() as patch:
            status = cluster._status()
            for node in status["nodes"]:
                node["state"] = "registered"
            patch.setattr(cluster, "_status", lambda: status)
            assert cluster._is_wanted("input")
            status["nodes"][0]["state"] = "ended"
            assert not cluster._is_wanted("input")

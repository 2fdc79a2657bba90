# SPDX-License-Identifier: Apache-2.0
"""Streams from a session of Spark Connect: the tests of test_streaming, and what only Connect can get wrong."""

import sys

import pytest

import test_streaming
from conftest import wait_until
from tensorflowonspark import TFCluster, offers
from test_streaming import (  # noqa: F401  fixtures, and tests that run here with the session of this file
    FEED,
    collect_rows,
    files,
    ids_in,
    local,
    others,
    out,
    rate,
    test_a_batch_that_was_fed_but_not_committed_is_not_fed_again,
    test_a_query_that_fails_is_raised_when_the_functions_have_returned,
    test_a_stream_is_one_epoch_in_the_order_of_its_batches,
    test_a_stream_that_fails_leaves_the_other_alone,
    test_a_trainer_that_fails_ends_the_query_with_its_words,
    test_the_query_ends_when_all_terminate,
    test_two_streams_at_once_have_each_its_queue,
    test_two_streams_at_once_take_turns,
    test_who_asks_to_stop_ends_a_query_behind_a_batch_and_another_cluster_goes_on,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def spark(connect_session):
    return connect_session


@pytest.fixture(scope="module")
def sc(spark):
    """What the clusters are started on."""
    return spark


@pytest.fixture(autouse=True)
def no_views_left(spark):
    yield
    assert [row.viewName for row in spark.sql("SHOW VIEWS IN global_temp").collect()] == []


def test_every_row_of_a_stream_once(sc, spark, files, out, tmp_path):  # noqa: F811
    test_streaming.test_every_row_of_a_stream_once(sc, spark, files, out, tmp_path, "arrow")


def test_a_query_killed_in_a_batch_feeds_the_rest_when_it_starts_again(spark, files, out, tmp_path):  # noqa: F811
    test_streaming.test_a_query_killed_in_a_batch_feeds_the_rest_when_it_starts_again(spark, files, out, tmp_path, None)


def test_what_is_wrong_leaves_nothing(spark, out):  # noqa: F811
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        with pytest.raises((ValueError, TypeError), match="every"):
            cluster.train(rate(spark), trigger={"every": 1})
        with pytest.raises(ValueError, match="there is no column 'none'"):
            cluster.train(rate(spark), columns=["none"])


def test_a_server_whose_client_is_silent_gives_up(spark, monkeypatch):
    """The server's side, run here on a batch that nobody feeds."""
    monkeypatch.setattr(offers, "_CLIENT_TIMEOUT_SECS", 1)
    views = offers._Views(spark, "tfos_test")
    views.write("answer", 1, -1, "")
    with pytest.raises(TimeoutError, match="batch 3 was not fed: the client process"):
        offers.Offer("tfos_test")(spark.range(3), 3)
    views.write("answer", 2, 4, "as told")
    with pytest.raises(RuntimeError, match="as told"):
        offers.Offer("tfos_test")(spark.range(3), 4)
    views.drop("offer", "answer")
    with pytest.raises(Exception, match="tfos_test_answer"):
        offers.Offer("tfos_test")(spark.range(3), 5)
    views.drop("offer")


def test_a_query_that_is_stopped_has_no_process_left(spark, files, out, tmp_path):  # noqa: F811
    args = {"out": str(out), "wait": str(tmp_path / "never")}
    files.add(800, padding=100_000)
    with TFCluster.run(spark, local(collect_rows), args, 2, 0, input_mode=FEED) as cluster:
        query = cluster.train(files.stream(3))
        wait_until(lambda: len(ids_in(out)) == 2, 60, "the first rows")
        assert batch_workers()
        query.stop()
        assert query.exception() is None
        wait_until(lambda: not batch_workers(), 30, "the end of the server's process for batches")
        (tmp_path / "never").touch()


def batch_workers():
    """Processes beside the server that run ``foreachBatch``."""
    import psutil

    lines = [(process.info["pid"], process.info["cmdline"] or [""]) for process in psutil.process_iter(["pid", "cmdline"])]
    return [pid for pid, words in lines if words[0] == sys.executable and any("foreach_batch_worker" in word for word in words)]

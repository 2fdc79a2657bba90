# SPDX-License-Identifier: Apache-2.0
"""Clusters from a session of Spark Connect: training, and what cannot work."""

import os

import pytest

from tensorflowonspark import TFCluster, _tfos, dfutil, tfrecord
from test_cluster import local
from test_frame_tasks import test_an_interrupted_training_frees_its_slots  # noqa: F401  it runs here with the session of this file
from test_streaming import collect_rows, ids_in

pytestmark = pytest.mark.long
FEED = TFCluster.InputMode.SPARK


@pytest.fixture(scope="module")
def spark(connect_session):
    return connect_session


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_every_row_of_a_dataframe_once_an_epoch(spark, out):
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 2, 0, input_mode=FEED) as cluster:
        assert cluster.sc is None and len(cluster.cluster_info) == 2
        cluster.train(spark.range(0, 1000, 1, 3), 2, shuffle=5)
    assert ids_in(out) == sorted([*range(1000)] * 2)


def describe_or_serve(args, ctx):
    """A parameter server serves until it is stopped; a worker says what it knows, and reads its feed."""
    import os
    import threading
    import time

    if ctx.job_name == "ps":
        open(f"{args['out']}/ps", "w").close()
        threading.Event().wait()
    while not os.path.exists(f"{args['out']}/ps"):  # the test's own limit ends it
        time.sleep(0.05)
    with open(f"{args['out']}/worker.new", "w") as file:
        file.write(f"{ctx.defaultFS} {sorted(ctx.cluster_spec)} {sum(row[0] for row in ctx.get_data_feed().next_batch(100))}")
    os.rename(f"{args['out']}/worker.new", f"{args['out']}/worker")


def test_a_parameter_server_keeps_its_task_until_the_workers_end(spark, out):
    with TFCluster.run(spark, local(describe_or_serve), {"out": str(out)}, 2, 1, input_mode=FEED) as cluster:
        cluster.train(spark.range(10), 1)
    assert sorted(os.listdir(out)) == ["ps", "worker"]
    assert (out / "worker").read_text() == "file:// ['ps', 'worker'] 45"
    assert spark.range(5).count() == 5


def test_a_trainer_that_fails_is_raised_with_its_words(spark, out):
    with pytest.raises(_tfos.Error, match="(?s)worker:.*as told"):
        with TFCluster.run(spark, local(collect_rows), {"out": str(out), "failure": "as told"}, 2, 0, input_mode=FEED) as cluster:
            cluster.train(spark.range(0, 100_000, 1, 4), 100)
    assert spark.range(5).count() == 5


def test_a_trainer_that_takes_nothing_fails_the_feed(spark, out):
    args = {"out": str(out), "wait": str(out / "never")}
    with pytest.raises(_tfos.TimedOutError, match="taken nothing from queue .* for 2 s"):
        with TFCluster.run(spark, local(collect_rows), args, 1, 0, input_mode=FEED) as cluster:
            cluster.train(spark.range(0, 400, 1, 1).selectExpr("id", "repeat('x', 100000) as text"), 1, feed_timeout=2)


def test_versions_that_are_too_old_are_named(spark, monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.4.4")
    with pytest.raises(_tfos.UnsupportedError, match="need Spark 3.5 or later; this client has 3.4.4"):
        TFCluster.run(spark, local(collect_rows), {}, 1, 0)


def test_a_client_that_executors_do_not_reach_is_named(spark, out, monkeypatch):
    """A network refuses the address at once, or drops what is sent there: by either error the user learns the address and what to set."""
    monkeypatch.setenv("TFOS_SERVER_HOST", "192.0.2.1")
    with pytest.raises(_tfos.Error, match=r"(?s)192\.0\.2\.1.*TFOS_SERVER_HOST"):
        TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 2, 0, input_mode=FEED, reservation_timeout=6)


class Stream:
    def foreachRDD(self, function):
        raise AssertionError("must not be called")


def test_what_cannot_work_is_refused_by_name(spark, out):
    with pytest.raises(_tfos.UnsupportedError, match="driver_ps_nodes cannot work over Spark Connect"):
        TFCluster.run(spark, local(collect_rows), {}, 2, 1, driver_ps_nodes=True)
    with TFCluster.run(spark, local(collect_rows), {"out": str(out)}, 1, 0, input_mode=FEED) as cluster:
        wrong = [
            (lambda: cluster.train([1]), r"train\(\) takes a DataFrame.*, not list: spark.createDataFrame\(\)"),
            (lambda: cluster.train(Stream()), r"train\(\) takes a DataFrame.*, not test_connect.Stream"),
            (lambda: cluster.train(spark.range(1), via="jvm"), "via='jvm' is not possible"),
            (lambda: cluster.inference([1]), r"inference\(\) takes a DataFrame.*, not list: spark.createDataFrame\(\)"),
        ]
        for call, words in wrong:
            with pytest.raises((_tfos.UnsupportedError, ValueError), match=words):
                call()


def test_tfrecord_files_after_the_jar_was_added(spark, tmp_path):
    tfrecord.add_to(spark)
    frame = spark.range(100).selectExpr("id", "IF(id % 2 = 0, concat('text ', id), NULL) AS s", "array(cast(id AS float)) AS f", "id % 3 AS k")
    frame.write.format("tfrecord").option("codec", "gzip").partitionBy("k").save(str(tmp_path / "a"))
    back = spark.read.format("tfrecord").schema(frame.schema).load(str(tmp_path / "a"))
    assert sorted(back.select(frame.columns).collect()) == sorted(frame.collect())
    assert dict(spark.read.format("tfrecord").load(str(tmp_path / "a")).dtypes) == {"id": "bigint", "s": "string", "f": "float", "k": "int"}
    spark.range(10).selectExpr("id / 3D AS third").write.format("tfrecord").save(str(tmp_path / "rounded"))
    assert spark.read.format("tfrecord").option("mode", "skipRecord").load(str(tmp_path / "rounded")).count() == 10
    with pytest.raises(Exception, match="`m`"):
        spark.sql("SELECT map(1, 2) AS m").write.format("tfrecord").save(str(tmp_path / "b"))


def test_s78_s81_dfutil(spark, tmp_path):
    """The names are the server's; this process asks it what is there."""
    for number, name in enumerate(["a[1]", "a1", "b,c", "b"]):
        dfutil.saveAsTFRecords(spark.range(number, number + 1, 1, 1), f"{tmp_path}/{name}")
    for text, numbers in (("DIR/a[1]", [0]), ("DIR/b,c", [2]), ("DIR/a[1],DIR/b,c,DIR/b", [0, 2, 3])):
        assert sorted(row.id for row in dfutil.loadTFRecords(spark, text.replace("DIR", str(tmp_path))).collect()) == numbers

# SPDX-License-Identifier: Apache-2.0
"""A cluster that another process asks to stop ends in order: what feeds it ends, its functions return, and nothing fails."""

import json
import subprocess
import sys
import threading

import pytest

from conftest import wait_until
from tensorflowonspark import TFCluster, _tfos, launch, reservation
from test_cluster import local


def count_rows(args, ctx):
    feed, rows = ctx.get_data_feed(), 0
    while not feed.should_stop():
        rows += len(feed.next_batch(10))
    return rows


def wait_for_signal(args, ctx):
    import signal
    import threading

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    open(f"{args}/{ctx.executor_id}", "w").close()
    while not ended.wait(0.1):
        pass
    open(f"{args}/{ctx.executor_id}.ended", "w").close()


def run_stop(cluster_id):
    return subprocess.run([launch.node_executable(), "stop", cluster_id], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def test_training_ends_with_what_it_has_had(sc):
    """``tfos stop`` while Spark feeds: the rest is skipped, ``train`` returns, and so do the functions."""
    cluster = TFCluster.run(sc, local(count_rows), None, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    told = []

    def stop():
        wait_until(lambda: sum(node["rows_read"] for node in json.loads(cluster.server.status())["nodes"]) > 50, what="a row")
        told.append(run_stop(cluster.cluster_id[:8]))

    thread = threading.Thread(target=stop)
    thread.start()
    cluster.train(sc.parallelize(range(20_000), 2), num_epochs=5000)
    thread.join()
    assert told[0].returncode == 0 and f"cluster {cluster.cluster_id} was asked to stop: nothing more is fed" in told[0].stdout
    cluster.shutdown()
    assert 50 < sum(cluster.results()) < 20_000 * 5000


def test_functions_that_read_by_themselves_get_a_signal(sc, tmp_path):
    cluster = TFCluster.run(sc, local(wait_for_signal), str(tmp_path), 2, 0)
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    host, _, port = cluster.cluster_meta["server_addr"].rpartition(":")
    subprocess.run([sys.executable, "-m", "tensorflowonspark.reservation_client", host, port], check=True, timeout=60)
    client = reservation.Client((host, int(port)))
    client.request_stop()
    client.close()
    cluster.shutdown()
    assert len(list(tmp_path.glob("*.ended"))) == 2


def test_a_cluster_that_is_not_there(sc):
    with pytest.raises(_tfos.NotFoundError, match='there is no cluster "nothing" here'):
        TFCluster.request_stop("nothing")
    with pytest.raises(_tfos.NotFoundError, match='"localhost:1" here'):
        reservation.Client("localhost:1").request_stop()
    refused = run_stop("nothing")
    assert refused.returncode == 1 and 'no cluster "nothing"' in refused.stdout

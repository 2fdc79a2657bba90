# SPDX-License-Identifier: Apache-2.0
"""What the nodes' functions return comes to the driver."""

import threading

import pytest

from tensorflowonspark import TFCluster, _tfos, results
from test_cluster import local


def through(*values):
    table = results.ResultTable()
    for node, value in enumerate(values):
        for part in results.parts_of(value):
            table.take(node, part)
    return table


@pytest.mark.parametrize("value", [{"loss": 0.5}, [1, "é", None], "x" * 2_000_000, (1, 2), {1: 2}, b"\xff", {"a": {3}}, ValueError("a")])
def test_values_of_any_type_come_as_they_were(value):
    assert repr(through(value, None).values(3, True)) == repr([value, None, None])


def test_what_json_holds_needs_no_pickle():
    assert through({"loss": [0.5, 1]}).values(1, False) == [{"loss": [0.5, 1]}]
    with pytest.raises(_tfos.UnsupportedError, match="what node 1 returned is pickled"):
        through(1, (1, 2)).values(2, False)


def test_what_cannot_be_carried_is_named():
    with pytest.raises(_tfos.Error, match="node 1: what it returned cannot be pickled"):
        through(1, threading.Lock()).values(2, True)
    with pytest.raises(_tfos.Error, match=r"node 0: what it returned has \d{7} bytes, and 4194304 are carried at most"):
        through("x" * 4_200_000).values(1, True)
    table = results.ResultTable()
    table.take(0, next(results.parts_of("x" * 1_000_000)))
    with pytest.raises(_tfos.Error, match="of what node 0 returned only 1 of 2 parts have come"):
        table.values(1, True)


def returned(args, ctx):
    if ctx.job_name == "ps":
        import threading

        threading.Event().wait()
    if args["fed"]:
        from tensorflowonspark import TFNode

        feed = TFNode.DataFeed(ctx.mgr)
        while not feed.should_stop():
            feed.next_batch(100)
    return {"role": ctx.job_name, "size": ("x", args["size"] * "y")}


def test_results_of_a_cluster(sc):
    cluster = TFCluster.run(sc, local(returned), {"fed": False, "size": 1_500_000}, 2, 1)
    expected = [None, {"role": "worker", "size": ("x", 1_500_000 * "y")}]
    assert cluster.results() == expected
    cluster.shutdown()
    assert cluster.results() == expected


def test_results_of_a_fed_cluster_of_the_applications_size(sc):
    cluster = TFCluster.run(sc, local(returned), {"fed": True, "size": 2}, input_mode=TFCluster.InputMode.SPARK, master_node="chief")
    cluster.train(sc.parallelize(range(10), 2), 1)
    cluster.shutdown()
    assert cluster.results() == [{"role": role, "size": ("x", "yy")} for role in ("chief", "worker")]
    assert cluster.num_executors == 2 and cluster.meta == cluster.cluster_meta

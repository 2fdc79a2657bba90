# SPDX-License-Identifier: Apache-2.0
"""Inference from a session of Spark Connect: the tests of test_inference, and what only Connect can get wrong."""

import pytest

from conftest import interrupt_when
from tensorflowonspark import TFCluster
from test_inference import (  # noqa: F401  fixtures, and tests that run here with the session of this file
    FEED,
    answer,
    how,
    local,
    models,
    nothing_left,
    running,
    test_a_limit_leaves_partitions_unread,
    test_a_plan_may_compute_it_several_times,
    test_a_result_that_does_not_fit,
    test_a_retry_gives_the_whole_partition,
    test_a_tensorflow_model,
    test_a_trainer_that_dies,
    test_an_identity_model,
    test_batches_beyond_the_ring,
    test_keep_every_type,
    test_lazy,
    test_s17_a_result_too_few,
    test_training_and_inference_in_turn,
    test_two_inferences_at_a_time,
    test_vectors,
    test_what_is_refused,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def spark(connect_session):
    return connect_session


@pytest.fixture(params=["arrow"])
def via(request):
    """There is no JVM here."""
    return request.param


@pytest.fixture(scope="module")
def sc(spark):
    """What the clusters are started on."""
    return spark


def test_partitions_of_all_sizes(spark, models, how):  # noqa: F811
    sizes = [0, 1, 7, 10, 11]
    frame = spark.range(0, 5000, 1, 5).where(f"id % 1000 < element_at(array({', '.join(map(str, sizes))}), cast(id div 1000 as int) + 1)")
    cluster = models(how, "lambda b: b['id'] ** 2" if how == "arrays" else "lambda b: [row.id ** 2 for row in b]")
    result = cluster.inference(frame, "square long", keep="id")
    want = [(i, i ** 2) for p, size in enumerate(sizes) for i in range(1000 * p, 1000 * p + size)]
    assert result.columns == ["id", "square"]
    assert result.collect() == want
    assert result.collect() == want  # each action anew
    assert [row.square for row in result.toLocalIterator()] == [square for _, square in want]


def test_a_cluster_that_has_ended_is_named(spark):
    with TFCluster.run(spark, local(answer), {"how": "rows", "count": 5}, 1, 0, input_mode=FEED) as cluster:
        result = cluster.inference(spark.range(3), "x long")
    with pytest.raises(Exception, match=f"(?s)cluster {cluster.cluster_id}"):
        result.collect()
    with pytest.raises(ValueError, match="has been shut down"):
        cluster.inference(spark.range(3), "x long")


def test_an_interrupted_action_leaves_the_cluster_and_the_session(spark, tmp_path):
    """The trainer never answers: only the interrupt ends it."""
    def read_only(args, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        rows = feed.next_arrays(3)["id"]
        open(f"{args}/read", "w").close()
        feed.batch_results(rows)
        while not feed.should_stop():
            feed.next_arrays(100)

    with TFCluster.run(spark, local(read_only), str(tmp_path), 1, 0, input_mode=FEED) as cluster:
        results = cluster.inference(spark.range(0, 20, 1, 2), "x long")
        interrupt_when((tmp_path / "read").exists)
        with pytest.raises(KeyboardInterrupt):
            results.collect()
        assert spark.range(0, 10, 1, 2).count() == 10  # both slots are free again

# SPDX-License-Identifier: Apache-2.0
"""Workers that train in step get equally many rows, each row once, however Spark cuts the data and whatever becomes of its tasks."""

import os
import signal

import pytest

from conftest import make_context
from tensorflowonspark import TFCluster
from test_cluster import FEED, local, read_all

ROWS, BATCH = 2000, 10


def count_steps(args, ctx):
    """Reads as many epochs as there are, each with a dataset of its own; writes the steps and the rows of each."""
    import json

    epochs = []
    for _ in range(args["epochs"]):
        steps, rows = 0, []
        for numbers, weights in ctx.get_dataset(args["batch"], uneven="pad"):
            steps += 1
            rows += [row for row, weight in zip(numbers.numpy().tolist(), weights.numpy()) if weight == 1]
        epochs.append([steps, rows])
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(epochs, file)


def check_epochs(nodes, epochs):
    """Each epoch has the least number of steps, and each row once."""
    ideal = -(-ROWS // (len(nodes) * BATCH))
    for epoch in range(epochs):
        assert [node[epoch][0] for node in nodes] == [ideal] * len(nodes), f"epoch {epoch}"
        assert sorted(row for node in nodes for row in node[epoch][1]) == list(range(ROWS)), f"epoch {epoch}"


def failing(end):
    """What passes rows on and, in the first attempt at two of the partitions, ends the task halfway in this way."""
    def pass_on(rows):
        from pyspark import TaskContext

        context = TaskContext.get()
        is_bad = context.attemptNumber() == 0 and context.partitionId() in (1, 2)
        for count, row in enumerate(rows):
            if is_bad and count == 250:
                end()
            yield row
    return pass_on


def fail():
    raise ValueError("this attempt is to fail")


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def cut(context, partitions, is_cached):
    rows = context.parallelize(range(ROWS), partitions)
    if is_cached:
        rows.cache().count()
    else:
        rows = rows.map(lambda row: sum([row] * 20) // 20)
    return rows


@pytest.mark.long
def test_s15_steps_are_as_few_as_can_be(sc, tmp_path):
    """Few and many partitions, cached and computed as they are fed; then tasks that fail, and whose process is killed, halfway."""
    cuts = [cut(sc, partitions, is_cached) for partitions in (3, 7, 50) for is_cached in (True, False)]
    cuts += [cut(sc, 4, True).mapPartitions(local(failing)(end)) for end in (fail, be_killed)]
    args = {"out": str(tmp_path), "batch": BATCH, "epochs": len(cuts)}
    with TFCluster.run(sc, local(count_steps), args, 2, 0, input_mode=FEED) as cluster:
        for rows in cuts:
            cluster.train(rows, num_epochs=1)
            rows.unpersist()
    check_epochs(list(read_all(tmp_path).values()), len(cuts))


@pytest.mark.long
def test_s15_four_workers(tmp_path):
    context = make_context("local-cluster[4,1,768]", spark_executor_memory="768m")
    try:
        args = {"out": str(tmp_path), "batch": BATCH, "epochs": 3}
        with TFCluster.run(context, local(count_steps), args, 4, 0, input_mode=FEED) as cluster:
            for partitions in (3, 7, 200):
                cluster.train(cut(context, partitions, False), num_epochs=1)
        check_epochs(list(read_all(tmp_path).values()), 3)
    finally:
        context.stop()

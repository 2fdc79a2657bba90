# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""How many steps do trainers in step take for an epoch, over the least that its rows need, however Spark cuts them?

A table of 20,000 rows, in few and in many partitions, from Spark's memory or computed as it is fed, goes to trainers that read
batches of 64 with uneven="pad". Each case is an epoch of its own; each row must come once.
"""

import json
import os
import sys

import feed_rows
import harness

ROWS = 20_000
BATCH = 64
FLOATS = 784
NODES = (2, 4)
PARTITIONS = (3, 7, 200)
MEMORY_MB = 768
WAIT_S = 300


def trainer(args, ctx):
    """Reads epoch after epoch; notes the steps of each, how many rows there were, and the sum of their numbers."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    for epoch in range(args["epochs"]):
        steps = rows = numbers = 0
        for batch, weights in ctx.get_dataset(args["batch"], uneven="pad"):
            steps += 1
            rows += int(tf.reduce_sum(weights))
            numbers += int(tf.reduce_sum(tf.cast(weights, tf.int64) * batch["number"]))
        path = os.path.join(args["folder"], f"{ctx.executor_id}")
        with open(f"{path}.part", "w") as report:
            json.dump({"steps": steps, "rows": rows, "numbers": numbers}, report)
        os.rename(f"{path}.part", f"{path}.epoch-{epoch}")


def make_frame(spark, partitions):
    floats = f"transform(sequence(1, {FLOATS}), place -> cast((id * 7 + place * 13) % 256 as float))"
    return spark.range(0, ROWS, 1, partitions).selectExpr(f"{floats} as floats", "id as number")


class Feed:
    """A cluster that is fed one table after another."""

    def __init__(self, session, nodes, epochs, folder):
        from pyspark import cloudpickle

        from tensorflowonspark import TFCluster

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        self._spark, self._nodes, self._folder, self._epoch = session.spark, nodes, folder, 0
        os.mkdir(folder)
        args = {"batch": BATCH, "folder": folder, "epochs": epochs}
        self._cluster = TFCluster.run(session.context, trainer, args, nodes, 0, input_mode=TFCluster.InputMode.SPARK)

    def measure(self, partitions, is_cached):
        frame = make_frame(self._spark, partitions)
        if is_cached:
            frame.cache().count()
        self._cluster.train(frame, 1)
        frame.unpersist()
        reports = []
        for path in feed_rows.await_files(self._folder, f".epoch-{self._epoch}", self._nodes):
            with open(path) as file:
                reports.append(json.load(file))
        self._epoch += 1
        got = [sum(report[name] for report in reports) for name in ("rows", "numbers")]
        if got != [ROWS, ROWS * (ROWS - 1) // 2] or len({report["steps"] for report in reports}) > 1:
            raise ValueError(f"rows came twice, or not, or the trainers were not in step: {reports}")
        return {"steps": reports[0]["steps"], "rows": [report["rows"] for report in reports]}

    def close(self):
        self._cluster.shutdown()
        return {}


def side(name):
    nodes, epochs = map(int, name.split("-")[1:])
    with harness.LocalCluster(MEMORY_MB, nodes) as session:
        feed = Feed(session, nodes, epochs, os.path.join(os.getcwd(), "reports"))
        harness.serve({"measure": feed.measure, "close": feed.close})


def compete(folder, rounds):
    cases = [(partitions, is_cached) for partitions in PARTITIONS for is_cached in (True, False)]
    for nodes in NODES:
        ideal = -(-ROWS // (nodes * BATCH))
        found = {case: [] for case in cases}
        with harness.Side(f"nodes-{nodes}-{rounds * len(cases)}", sys.executable, folder) as contender:
            for partitions, is_cached in cases * rounds:
                result = contender.ask("measure", WAIT_S, partitions=partitions, is_cached=is_cached)
                harness.note(f"{nodes} nodes, {partitions} partitions, {'cached' if is_cached else 'computed'}: {result}")
                found[partitions, is_cached].append(result["steps"])
            contender.ask("close", WAIT_S)
        for (partitions, is_cached), steps in found.items():
            case = f"{nodes} nodes, {partitions} partitions, {'cached' if is_cached else 'computed'}"
            harness.print_line("balance", case, "steps", [max(steps)], [ideal], "ideal", ideal / (1.05 * ideal + 1))


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

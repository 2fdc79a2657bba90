# bench: env=old
# SPDX-License-Identifier: Apache-2.0
"""Inference with a model that gives back what it got: 784 floats and a label from a cached DataFrame; the label, or all 784, come back.

Beside it, what Spark alone does: a bare mapInArrow() over the same DataFrame that gives back the same column."""

import os
import sys
import time

import feed_rows
import harness
import original

PARTITIONS = 8
BATCH = 128
# So many that both sides take seconds: planning an action and starting its tasks costs the same for a row as for all of them.
ROWS = {"original": 12_800, "ours": 307_200}
CASES = {"label": "long", "pixels": "array<float>"}
GOAL = 50


def trainer(args, ctx):
    """Makes arrays of each batch, as a model wants them, and gives back what the case says."""
    import numpy as np

    from tensorflowonspark import TFNode

    feed = TFNode.DataFeed(ctx.mgr, False)
    open(os.path.join(args["folder"], f"{ctx.executor_id}.ready"), "w").close()
    while not feed.should_stop():
        if args["side"] == "ours":
            arrays = feed.next_arrays(BATCH)
            if arrays is None:
                continue
            images, labels = arrays["pixels"], arrays["label"]  # (128, 784) float32, and (128,)
            if images.dtype != np.float32:
                raise TypeError(f"pixels came as {images.dtype}")
            feed.batch_results({"y": labels if args["case"] == "label" else images})
        else:
            batch = feed.next_batch(BATCH)
            if not batch:
                continue
            images = np.array([row[0] for row in batch], dtype=np.float32)
            labels = [row[1] for row in batch]
            feed.batch_results(labels if args["case"] == "label" else images.tolist())


def giving_back(case):
    """For mapInArrow: batches of one column of theirs."""

    def give_back(batches):
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch.column(1 if case == "label" else 0)], names=["y"])

    return give_back


class Inference:
    """One side's work: the cached DataFrame, and a cluster for each measurement."""

    def __init__(self, cluster, name):
        self._context, self._name = cluster.context, name
        pixels = "transform(sequence(0, 783), column -> cast((column * 13 + id * 7) % 256 as float)) as pixels"
        self._frame = cluster.spark.range(0, ROWS[name], 1, PARTITIONS).selectExpr(pixels, "id % 10 as label").cache()
        self._frame.count()

    def measure(self, case, folder):
        """Rows a second from the action's start to its end, the second time on a cluster: its first is to warm it."""
        from tensorflowonspark import TFCluster

        os.mkdir(folder)
        args = {"side": self._name, "case": case, "folder": folder}
        cluster = TFCluster.run(self._context, trainer, args, 2, 0, input_mode=TFCluster.InputMode.SPARK)
        feed_rows.await_files(folder, ".ready", 2)
        self._infer(cluster, case)
        start = time.time()
        self._infer(cluster, case)
        seconds = time.time() - start
        cluster.shutdown()
        return {"rows": ROWS[self._name], "seconds": seconds}

    def bare(self, case):
        """The same without a cluster: the column goes through Python workers that only give it back."""
        start = time.time()
        self._check(case, self._sums(case, self._frame.mapInArrow(giving_back(case), f"y {CASES[case]}")))
        return {"rows": ROWS[self._name], "seconds": time.time() - start}

    def _infer(self, cluster, case):
        if self._name == "ours":
            self._check(case, self._sums(case, cluster.inference(self._frame, f"y {CASES[case]}")))
            return
        result = cluster.inference(self._frame.rdd)
        parts = result.map(lambda y: (1, y if case == "label" else len(y)))
        self._check(case, parts.reduce(lambda a, b: (a[0] + b[0], a[1] + b[1])))

    @staticmethod
    def _sums(case, result):
        return result.selectExpr("count(*)", "sum(y)" if case == "label" else "sum(size(y))").collect()[0]

    def _check(self, case, got):
        rows = ROWS[self._name]
        wanted = (rows, sum(row % 10 for row in range(rows)) if case == "label" else 784 * rows)
        if tuple(got) != wanted:
            raise ValueError(f"rows and sum of what came back are {got}, not {wanted}")


def side(name):
    with harness.LocalCluster() as cluster:
        inference = Inference(cluster, name)
        harness.serve({"versions": harness.versions, "measure": inference.measure, "bare": inference.bare})


def compete(folder, rounds):
    with harness.Side("original", original.python(), folder) as theirs, harness.Side("ours", sys.executable, folder) as ours:
        harness.check_same_versions((theirs, ours))
        rates = {(name, case): [] for name in ROWS for case in CASES}
        bare = {case: [] for case in CASES}
        for index, contender in enumerate(harness.turns((theirs, ours), rounds)):
            for case in CASES:
                result = contender.ask("measure", feed_rows.WAIT_S * 2, case=case, folder=os.path.join(folder, f"{index}-{case}"))
                rate = result["rows"] / result["seconds"]
                rates[contender.name, case].append(rate)
                harness.note(f"{contender.name} {case}: {rate:.0f} rows/s {result}")
                if contender is ours:
                    result = ours.ask("bare", feed_rows.WAIT_S, case=case)
                    bare[case].append(result["rows"] / result["seconds"])
                    harness.note(f"bare mapInArrow {case}: {bare[case][-1]:.0f} rows/s")
    for case in CASES:
        harness.print_line("infer_df", case, "rows/s", rates["ours", case], rates["original", case], "original", GOAL)
        harness.print_line("infer_df", case, "rows/s", rates["ours", case], bare[case], "map_in_arrow")


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

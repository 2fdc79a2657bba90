# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""TFEstimator.fit of a cached DataFrame, beside TFCluster.run, train and shutdown with the same function: from the call to its end."""

import sys
import time

import feed_rows
import harness

ROWS, COLUMNS, EPOCHS, WORKERS = 200_000, 64, 5, 2


def read(args, ctx):
    """Takes all rows as arrays; the chief notes how many it had."""
    feed, rows = ctx.get_data_feed(), 0
    while True:
        arrays = feed.next_arrays(1024)
        if arrays is None:
            break
        rows += len(arrays["label"])
    return rows


class Fit:
    """Both ways, on one session."""

    def __init__(self, cluster):
        self._spark = cluster.spark
        pixels = f"transform(sequence(1, {COLUMNS}), column -> cast(column * id as float)) as pixels"
        self._frame = self._spark.range(0, ROWS, 1, 4 * WORKERS).selectExpr(pixels, "id % 10 as label", "id as unused").cache()
        self._frame.count()

    def fit(self):
        from tensorflowonspark.pipeline import TFEstimator

        estimator = TFEstimator(read, {"num_gpus": 0}).setClusterSize(WORKERS).setEpochs(EPOCHS).setGraceSecs(0)
        estimator = estimator.setInputMapping({"pixels": "x", "label": "y"})
        start = time.time()
        estimator.fit(self._frame)
        return {"rows": ROWS * EPOCHS, "seconds": time.time() - start}

    def train(self):
        from tensorflowonspark import TFCluster

        start = time.time()
        cluster = TFCluster.run(self._spark, read, {"num_gpus": 0}, WORKERS, 0, input_mode=TFCluster.InputMode.SPARK, master_node="chief")
        cluster.train(self._frame, EPOCHS, columns=["label", "pixels"])
        cluster.shutdown()
        if sum(cluster.results()) != ROWS * EPOCHS:
            raise ValueError(f"the workers had {cluster.results()} rows, not {ROWS * EPOCHS}")
        return {"rows": ROWS * EPOCHS, "seconds": time.time() - start}


def side(name):
    with harness.LocalCluster(executors=WORKERS) as cluster:
        fit = Fit(cluster)
        harness.serve({"fit": fit.fit, "train": fit.train})


def compete(folder, rounds):
    rates = {"fit": [], "train": []}
    with harness.Side("ours", sys.executable, folder) as ours:
        for index in range(rounds + 1):
            for way in ("fit", "train") if index % 2 else ("train", "fit"):
                result = ours.ask(way, feed_rows.WAIT_S)
                harness.note(f"{way}: {result}")
                if index:
                    rates[way].append(result["rows"] / result["seconds"])
    harness.print_line("estimator_fit", "columns", "rows/s", rates["fit"], rates["train"], "cluster_train", 0.95)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=5).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

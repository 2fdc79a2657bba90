# bench: env=old
# SPDX-License-Identifier: Apache-2.0
"""Rows of 784 floats and a label from a cached RDD to two trainers, which make numpy arrays of them."""

import json
import os
import sys
import time

import harness
import original

PARTITIONS = 8
BATCH = 128
# Rows of a partition: whole batches, so that no trainer waits with half a batch for the end of the feed.
PARTITION_ROWS = 75 * BATCH
WARM_ROWS = 2 * BATCH
EPOCHS = {"original": 1, "ours": 4}
WAIT_S = 300


def make_rows(count):
    """A function for mapPartitionsWithIndex. Pixels are whole numbers, so that their sum is exact."""

    def make(index, _):
        import numpy as np

        columns = np.arange(784) * 13
        for row in range(index * count, (index + 1) * count):
            yield ((columns + row * 7) % 256).astype(float).tolist(), row % 10

    return make


def sums(partitions, count):
    """What make_rows's rows of a whole RDD add up to."""
    import numpy as np

    rows = np.arange(partitions * count)
    pixels = sum(int(((column * 13 + rows * 7) % 256).sum()) for column in range(784))
    return np.array([rows.size, int((rows % 10).sum()), pixels])


def trainer(args, ctx):
    """Reads the feed to its end, and notes what came and when the last of it had become arrays."""
    import numpy as np

    from tensorflowonspark import TFNode

    feed = TFNode.DataFeed(ctx.mgr, True)
    path = os.path.join(args["folder"], str(ctx.executor_id))
    rows, labels, pixels, last = 0, 0, 0.0, 0.0

    def arrays_of_rows():
        batch = feed.next_batch(args["batch"])
        if not batch:
            return None
        images = np.array([row[0] for row in batch], dtype=np.float32)
        return images, np.array([row[1] for row in batch])

    def arrays():
        columns = feed.next_arrays(args["batch"])
        return (columns[0].astype(np.float32), columns[1]) if columns else None

    read = arrays_of_rows if args["case"] == "next_batch" else arrays
    open(path + ".ready", "w").close()
    while not feed.should_stop():
        columns = read()
        if columns is None:
            continue
        rows += len(columns[0])
        pixels += float(columns[0].sum(dtype=np.float64))
        labels += int(columns[1].sum())
        last = time.time()
    with open(path + ".part", "w") as report:
        json.dump({"rows": rows, "labels": labels, "pixels": pixels, "last": last}, report)
    os.rename(path + ".part", path + ".json")


def await_files(folder, suffix, count):
    deadline = time.monotonic() + WAIT_S
    while True:
        paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(suffix)]
        if len(paths) >= count:
            return paths
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(paths)} of {count} trainers wrote a {suffix} file in {WAIT_S} s")
        time.sleep(0.05)


class Feed:
    """One side's work: the cached RDD, and a cluster for each measurement."""

    def __init__(self, cluster):
        self._context = cluster.context
        self._warm = self._cached(WARM_ROWS)
        self._rows = self._cached(PARTITION_ROWS)
        self._warm_sums = sums(PARTITIONS, WARM_ROWS)
        self._row_sums = sums(PARTITIONS, PARTITION_ROWS)

    def _cached(self, count):
        from pyspark import StorageLevel

        rdd = self._context.parallelize(range(PARTITIONS), PARTITIONS)
        rdd = rdd.mapPartitionsWithIndex(make_rows(count)).persist(StorageLevel.MEMORY_ONLY)
        rdd.count()
        stored = [info.numCachedPartitions() for info in self._context._jsc.sc().getRDDStorageInfo()
                  if info.id() == rdd.id()]
        if stored != [PARTITIONS]:
            raise MemoryError(f"Spark cached {stored} of {PARTITIONS} partitions: executors need more memory")
        return rdd

    def measure(self, case, epochs, folder):
        """Rows a second from train()'s start until all are arrays in the trainers, on a cluster that has been fed before."""
        from tensorflowonspark import TFCluster

        os.mkdir(folder)
        args = {"case": case, "batch": BATCH, "folder": folder}
        cluster = TFCluster.run(
            self._context, trainer, args, 2, 0, input_mode=TFCluster.InputMode.SPARK
        )
        await_files(folder, ".ready", 2)
        cluster.train(self._warm, 1)
        start = time.time()
        cluster.train(self._rows, epochs)
        end = time.time()
        cluster.shutdown()
        reports = []
        for path in await_files(folder, ".json", 2):
            with open(path) as report:
                reports.append(json.load(report))
        self._check(reports, epochs)
        seconds = max(end, *(report["last"] for report in reports)) - start
        rows = int(self._row_sums[0]) * epochs
        return {"rows": rows, "seconds": seconds, "each": [report["rows"] for report in reports]}

    def _check(self, reports, epochs):
        expected = (self._warm_sums + self._row_sums * epochs).tolist()
        got = [sum(report[name] for report in reports) for name in ("rows", "labels", "pixels")]
        if got != expected:
            raise ValueError(f"rows, sum of labels and sum of pixels are {got}, not {expected}")


def side():
    with harness.LocalCluster() as cluster:
        feed = Feed(cluster)
        harness.serve({"versions": harness.versions, "measure": feed.measure})


def compete(folder, rounds):
    with harness.Side("original", original.python(), folder) as theirs, harness.Side(
        "ours", sys.executable, folder
    ) as ours:
        harness.check_same_versions((theirs, ours))
        rates = {("original", "next_batch"): [], ("ours", "next_batch"): [], ("ours", "next_arrays"): []}
        # The first round is not counted: the JVMs still compile what feeding runs.
        for index, contender in enumerate(harness.turns((theirs, ours), rounds + 1)):
            for name, case in rates:
                if name != contender.name:
                    continue
                result = contender.ask(
                    "measure", WAIT_S * 2, case=case, epochs=EPOCHS[name],
                    folder=os.path.join(folder, f"{index}-{case}"),
                )
                rate = result["rows"] / result["seconds"]
                if index >= 2:
                    rates[name, case].append(rate)
                harness.note(f"{name} {case}: {rate:.0f} rows/s {result}")
    anchor = rates["original", "next_batch"]
    harness.print_line(
        "feed_rows", "next_batch", "rows/s", rates["ours", "next_batch"], anchor, "original", 6
    )
    harness.print_line(
        "feed_rows", "next_arrays", "rows/s", rates["ours", "next_arrays"], anchor, "original", 10
    )


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side()
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

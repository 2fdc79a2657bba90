# SPDX-License-Identifier: Apache-2.0
"""What the benches of DataFrames share: the rows, the trainer that reads them by get_dataset, and what Spark alone makes of them."""

import json
import os
import sys
import time

import feed_rows
import harness
from feed_rows import BATCH, WAIT_S, await_files, sums

PARTITIONS = 8
# Rows of a partition: whole batches.
PARTITION_ROWS = 300 * BATCH
ROWS = PARTITIONS * PARTITION_ROWS
SCHEMA = "pixels array<float>, label long"


def send_along():
    """Lets functions of these modules reach executors, which do not have the modules."""
    from pyspark import cloudpickle

    for module in (feed_rows, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)


def make_rows(batches):
    """For mapInArrow over the numbers of partitions: rows like feed_rows', in batches."""
    import numpy as np
    import pyarrow as pa

    for batch in batches:
        for index in batch.column(0).to_pylist():
            for first in range(index * PARTITION_ROWS, (index + 1) * PARTITION_ROWS, 50 * BATCH):
                rows = np.arange(first, first + 50 * BATCH)
                pixels = ((np.arange(784) * 13 + rows[:, None] * 7) % 256).astype(np.float32)
                offsets = np.arange(len(rows) + 1, dtype=np.int32) * 784
                columns = [pa.ListArray.from_arrays(offsets, pa.array(pixels.ravel())), pa.array(rows % 10)]
                yield pa.RecordBatch.from_arrays(columns, names=["pixels", "label"])


def add_up(batches):
    """For mapInArrow: the bare sum of a partition's rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, labels, pixels = 0, 0, 0.0
    for batch in batches:
        rows += batch.num_rows
        labels += pc.sum(batch.column(1)).as_py()
        pixels += float(batch.column(0).flatten().to_numpy().sum(dtype="f8"))
    yield pa.RecordBatch.from_pydict({"rows": [rows], "labels": [labels], "pixels": [pixels]})


def trainer(args, ctx):
    """Reads each epoch in TensorFlow's own loop, and notes after it what has come and when."""
    import tensorflow as tf

    # Each trainer shares one core with an executor.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    path = os.path.join(args["folder"], str(ctx.executor_id))
    open(path + ".ready", "w").close()
    dataset = ctx.get_dataset(args["batch"])

    def add(state, batch):
        rows, labels, pixels = state
        sum_of_rows = tf.cast(tf.reduce_sum(batch["pixels"], axis=1), tf.float64)  # whole numbers: exact
        return (rows + tf.shape(batch["label"], tf.int64)[0], labels + tf.reduce_sum(batch["label"]),
                pixels + tf.reduce_sum(sum_of_rows))

    state = (tf.constant(0, tf.int64), tf.constant(0, tf.int64), tf.constant(0, tf.float64))
    for _ in range(args["epochs"]):
        state = dataset.reduce(state, add)
        last = time.time()
    rows, labels, pixels = (value.numpy().item() for value in state)
    with open(path + ".part", "w") as report:
        json.dump({"rows": rows, "labels": labels, "pixels": pixels, "last": last}, report)
    os.rename(path + ".part", path + ".json")


class FrameFeed:
    """Our side: a DataFrame, a cluster for each measurement, and Spark alone on the same DataFrame."""

    def __init__(self, cluster, make_frame):
        send_along()
        self._context = cluster.context
        self._frame = make_frame(cluster.spark)
        self._sums = sums(PARTITIONS, PARTITION_ROWS).tolist()

    def measure(self, epochs, folder, via):
        """From train()'s start until all rows were tensors in the trainers, on a cluster that has been fed before."""
        from tensorflowonspark import TFCluster

        os.mkdir(folder)
        args = {"batch": BATCH, "folder": folder, "epochs": epochs + 1}
        cluster = TFCluster.run(self._context, trainer, args, 2, 0, input_mode=TFCluster.InputMode.SPARK)
        await_files(folder, ".ready", 2)
        cluster.train(self._frame, 1, via=via)
        start = time.time()
        cluster.train(self._frame, epochs, via=via)
        cluster.shutdown()
        reports = []
        for path in await_files(folder, ".json", 2):
            with open(path) as report:
                reports.append(json.load(report))
        self._check([sum(report[name] for report in reports) for name in ("rows", "labels", "pixels")], epochs + 1)
        seconds = max(report["last"] for report in reports) - start
        return {"rate": ROWS * epochs / seconds, "each": [report["rows"] for report in reports]}

    def sum(self):
        """mapInArrow() that only adds up."""
        start = time.time()
        parts = self._frame.mapInArrow(add_up, "rows long, labels long, pixels double").collect()
        seconds = time.time() - start
        self._check([sum(part[name] for part in parts) for name in ("rows", "labels", "pixels")], 1)
        return {"rate": ROWS / seconds}

    def scan(self):
        """Spark's own reading of all columns, into nothing."""
        start = time.time()
        self._frame.write.format("noop").mode("overwrite").save()
        return {"rate": ROWS / (time.time() - start)}

    def _check(self, got, times):
        expected = [value * times for value in self._sums]
        if got != expected:
            raise ValueError(f"rows, sum of labels and sum of pixels are {got}, not {expected}")

    def functions(self):
        return {"versions": harness.versions, "measure": self.measure, "sum": self.sum, "scan": self.scan}


def made(spark):
    """The rows, computed as they are asked for."""
    return spark.range(0, PARTITIONS, 1, PARTITIONS).mapInArrow(make_rows, SCHEMA)


def cached(spark):
    """The rows in the executors' memory."""
    from pyspark import StorageLevel

    frame = made(spark).persist(StorageLevel.MEMORY_ONLY)
    frame.count()
    stored = [info.numCachedPartitions() for info in spark.sparkContext._jsc.sc().getRDDStorageInfo()]
    if stored != [PARTITIONS]:
        raise MemoryError(f"Spark cached {stored} of {PARTITIONS} partitions: executors need more memory")
    return frame


def rates(side, folder, rounds, epochs, via, limits):
    """Our rates and those of each limit, in turn on one side. The first round is not counted: the JVMs still compile."""
    found = {name: [] for name in ("measure", *limits)}
    for index in range(rounds + 1):
        for name in found:
            arguments = {"epochs": epochs, "via": via, "folder": os.path.join(folder, str(index))} if name == "measure" else {}
            result = side.ask(name, WAIT_S * 2, **arguments)
            harness.note(f"{name}: {result['rate']:.0f} rows/s {result}")
            if index:
                found[name].append(result["rate"])
    return found

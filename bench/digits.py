# SPDX-License-Identifier: Apache-2.0
"""Rows of MNIST's shape in each kind of feature, and the CPU time of a process: what the benches of records share."""

import os
import random
import time

ROWS = 60_000
BATCH = 4096
KINDS = ("float", "int64", "bytes")


def table(kind):
    """60,000 rows: 784 pixels of a kind, and a label. The pixels are as dark as MNIST's: four of five are 0."""
    import numpy as np
    import pyarrow as pa

    numbers = np.random.default_rng(1)
    pixels = np.where(numbers.random((ROWS, 784)) < 0.8, 0, numbers.integers(1, 256, (ROWS, 784))).astype(np.uint8)
    label = pa.array(numbers.integers(0, 10, ROWS), pa.int64())
    if kind == "bytes":
        image = pa.array([row.tobytes() for row in pixels], pa.binary())
    else:
        type = {"float": pa.float32(), "int64": pa.int64()}[kind]
        values = pa.array((pixels / np.float32(255) if kind == "float" else pixels).reshape(-1), type)
        image = pa.ListArray.from_arrays(pa.array(np.arange(0, 784 * (ROWS + 1), 784, dtype=np.int32)), values)
    return pa.table({"image": image, "label": label})


def write(folder):
    """A file of each kind; their paths."""
    from tensorflowonspark import tfrecord

    paths = {kind: os.path.join(folder, kind) for kind in KINDS}
    for kind, path in paths.items():
        tfrecord.write(path, table(kind))
    return paths


def rows_per_cpu_second(work):
    """Of ``work()``, which is to go over all rows; over all threads of this process."""
    begin = time.process_time()
    work()
    return ROWS / (time.process_time() - begin)


def in_turn(works, rounds):
    """Rates of each work, a dict of lists; the order is another each round, and a first round is not counted."""
    rates = {name: [] for name in works}
    for index in range(rounds + 1):
        names = list(works)
        random.Random(index).shuffle(names)
        for name in names:
            rate = rows_per_cpu_second(works[name])
            if index > 0:
                rates[name].append(rate)
    return rates

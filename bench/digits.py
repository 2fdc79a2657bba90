# SPDX-License-Identifier: Apache-2.0
"""MNIST's rows in each kind of feature, and the CPU time of a process: what the benches of records share."""

import gzip
import os
import random
import time

ROWS = 60_000
BATCH = 4096
KINDS = ("float", "int64", "bytes")
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "mnist", "data")


def read_idx(folder):
    """The training digits in a folder of MNIST's idx files, gzipped: uint8 pixels (rows, 784) and labels."""
    import numpy as np

    parts = []
    for name, header in (("train-images-idx3-ubyte.gz", 16), ("train-labels-idx1-ubyte.gz", 8)):
        with gzip.open(os.path.join(folder, name)) as file:
            parts.append(np.frombuffer(file.read(), np.uint8, offset=header))
    return parts[0].reshape(-1, 784), parts[1]


def rows():
    """uint8 pixels (60,000, 784) and int64 labels: the 10,000 digits of the examples, six times."""
    import numpy as np

    pixels, labels = read_idx(DATA)
    return np.resize(pixels, (ROWS, 784)), np.resize(labels, ROWS).astype(np.int64)


def table(kind):
    """``rows()`` with the pixels as features of a kind."""
    import numpy as np
    import pyarrow as pa

    pixels, labels = rows()
    label = pa.array(labels)
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

# bench: env=new programs
# SPDX-License-Identifier: Apache-2.0
"""Batches of 1 MB through the ring into a tf.data consumer that sums them: by get_dataset's op in C, and by Python
generators over the same ring, one of batches and one of rows; against one process's memcpy of such batches, as the bench
`ring` has it, and against the same consumer over one tensor in its own memory, without any ring.

Each side with a ring is a node with a trainer of its own; another process, in C, feeds it. The trainer sums in a graph, so
that Python has no part in it but the generators'. It gives TensorFlow one thread each for an operation and for operations
beside each other: of the two cores the producer has the other.
"""

import contextlib
import itertools
import json
import os
import secrets
import subprocess
import sys
import time

import harness

ROWS, VALUES = 128, 2048  # float32: 1 MB a batch
BATCH_SIZE = ROWS * VALUES * 4
BATCHES = {"ours": 4000, "ours_prefetched": 4000, "memcpy": 4000, "tf.data_in_memory": 4000, "batch_generator": 1000, "row_generator": 100}
PROGRAMS = os.path.join(harness.BUILD, "bench", "bench")
ROUND_S = 120


def make_dataset(ctx, way):
    import tensorflow as tf

    if way.startswith("ours"):
        # Batches as they lie in the ring need no preparation: handing them to another thread costs more than it saves.
        return ctx.get_dataset(ROWS, prefetch=0 if way == "ours" else 2)
    feed = ctx.mgr.link.open_feed()

    def batches():
        while True:
            arrays = feed.next_arrays(ROWS, stop_at_epoch=True)
            if not len(arrays):
                return
            yield arrays["x"]

    def rows():
        while True:
            some = feed.next_rows(ROWS, False, stop_at_epoch=True)
            if not some:
                return
            for row in some:
                yield row.x

    if way == "batch_generator":
        signature = tf.TensorSpec([None, VALUES], tf.float32)
        return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(2)
    signature = tf.TensorSpec([VALUES], tf.float32)
    return tf.data.Dataset.from_generator(rows, output_signature=signature).batch(ROWS).prefetch(2)


def sum_up(dataset):
    """The sum and the number of rows of a pass over the dataset, for a graph."""
    import tensorflow as tf

    def add(sums, element):
        x = element["x"] if isinstance(element, dict) else element
        return sums[0] + tf.cast(tf.reduce_sum(x), tf.int64), sums[1] + tf.shape(x, tf.int64)[0]

    return dataset.reduce((tf.constant(0, tf.int64), tf.constant(0, tf.int64)), add)


def take_one_core():
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def train(folder, way):
    """The trainer: sums one epoch after another and notes when it had ended."""
    from tensorflowonspark import _tfos
    from tensorflowonspark.TFSparkNode import TFNodeContext

    link = _tfos.Trainer()
    import tensorflow as tf

    take_one_core()
    note(folder, "started", {})
    dataset = make_dataset(TFNodeContext.of(link, json.loads(link.context)), way)
    sum_epoch = tf.function(lambda: sum_up(dataset))
    for number in itertools.count():
        total, rows = sum_epoch()
        note(folder, f"end-{number}", {"sum": int(total), "rows": int(rows), "time": time.monotonic()})
        if not rows:
            break
    link.close()


def note(folder, name, values):
    path = os.path.join(folder, name)
    with open(path + ".part", "w") as file:
        json.dump(values, file)
    os.rename(path + ".part", path)


def check(way, batches, total, rows):
    """The producer's floats are 0 and 1 in turn: their sum is exact, in whatever order."""
    if (rows, total) != (ROWS * batches, batches * ROWS * VALUES // 2):
        raise RuntimeError(f"{way}: {rows} rows were summed to {total}, which {batches} batches do not give")


class Node:
    """A node with a trainer that sums, and a producer. A context manager."""

    def __init__(self, way):
        from tensorflowonspark import _tfos
        from tensorflowonspark.launch import node_executable

        self._way, self._feed = way, 0
        self._id, self._key = "bench-" + secrets.token_hex(4), secrets.token_hex(32)
        self._stack = contextlib.ExitStack()
        self._rendezvous = self._stack.enter_context(
            _tfos.Rendezvous(self._id, self._key, 1, is_feeding=True, host="127.0.0.1", listen_host="127.0.0.1")
        )
        program = os.path.abspath(__file__)
        config = {
            "type": "config", "cluster_id": self._id, "key": self._key, "address": self._rendezvous.address,
            "executor_id": 0, "launch": 0, "executor": "0", "executor_pid": _tfos.find_executor(os.getpid()), "host": None,
            "feeding": True, "argv": [sys.executable, program, "--train", way, os.getcwd()], "directory": os.getcwd(),
            "tf_port": 0, "environment": {}, "default_fs": "file://", "working_dir": os.getcwd(), "release_port": False,
            "tensorboard": None, "user": {},
        }  # fmt: skip
        self._node = self._stack.enter_context(_tfos.Node(node_executable(), json.dumps(config), b""))
        self._rendezvous.wait(_tfos.RUNNING, 30_000)
        self._producer = self._stack.enter_context(
            subprocess.Popen([os.path.join(PROGRAMS, "bench_producer")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        self.measure(10)  # the trainer has imported TensorFlow and traced its function

    def __enter__(self):
        return self

    def __exit__(self, *_):
        from tensorflowonspark import _tfos

        self._producer.stdin.close()
        self._rendezvous.end_feed()
        self._rendezvous.wait(_tfos.WORKED, 30_000)
        self._stack.close()

    def measure(self, batches):
        """GB/s of an epoch, from the first byte asked for to the last one summed."""
        number = self._feed
        self._feed += 1
        begin = time.monotonic()
        self._producer.stdin.write(f"{self._rendezvous.address} {self._id} {self._key} {self._feed} {batches}\n")
        self._producer.stdin.flush()
        self._producer.stdout.readline()
        self._rendezvous.end_epoch(self._feed)
        path = f"end-{number}"
        while not os.path.exists(path):
            self._rendezvous.check()
            if time.monotonic() - begin > ROUND_S:
                raise RuntimeError(f"{self._way}: the trainer has not summed {batches} batches within {ROUND_S} s")
            time.sleep(0.005)
        with open(path) as file:
            end = json.load(file)
        check(self._way, batches, end["sum"], end["rows"])
        return {"rate": batches * BATCH_SIZE / (end["time"] - begin) / 1e9}


class Memory:
    """The consumer alone: one tensor in its memory, given out again and again as ours gives out what lies in the ring."""

    def __init__(self):
        import tensorflow as tf

        take_one_core()
        options = tf.data.Options()
        options.autotune.enabled = False
        batch = tf.reshape(tf.range(ROWS * VALUES, dtype=tf.float32) % 2, [ROWS, VALUES])
        dataset = tf.data.Dataset.from_tensors(batch)
        self._sum = tf.function(lambda count: sum_up(dataset.repeat(count).with_options(options)))
        self.measure(10)  # traces it

    def measure(self, batches):
        import tensorflow as tf

        begin = time.monotonic()
        total, rows = self._sum(tf.constant(batches, tf.int64))
        end = time.monotonic()
        check("tf.data_in_memory", batches, int(total), int(rows))
        return {"rate": batches * BATCH_SIZE / (end - begin) / 1e9}


def copy_memory(batches):
    """GB/s of memcpy, for which the program has its own number of batches."""
    del batches
    program = [os.path.join(PROGRAMS, "bench_ring"), "--memcpy"]
    return {"rate": float(subprocess.run(program, check=True, capture_output=True, text=True).stdout)}


def side(name):
    if name == "memcpy":
        harness.serve({"measure": copy_memory})
    elif name == "tf.data_in_memory":
        harness.serve({"measure": Memory().measure})
    else:
        with Node(name) as node:
            harness.serve({"measure": node.measure})


def compete(folder, rounds):
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(harness.Side(name, sys.executable, folder)) for name in BATCHES]
        rates = {name: [] for name in BATCHES}
        for index, contender in enumerate(harness.turns(sides, rounds + 1)):
            rate = contender.ask("measure", ROUND_S + harness.START_S, batches=BATCHES[contender.name])["rate"]
            harness.note(f"{contender.name}: {rate:.2f} GB/s")
            if index >= len(sides):  # the first round warms up
                rates[contender.name].append(rate)
    for anchor, goal in (("memcpy", 0.5), ("row_generator", 20), ("batch_generator", None), ("tf.data_in_memory", None)):
        harness.print_line("dataset_op", "1MB batches", "GB/s", rates["ours"], rates[anchor], anchor, goal)
    harness.print_line("dataset_op", "1MB batches, prefetch=2", "GB/s", rates["ours_prefetched"], rates["memcpy"], "memcpy")
    harness.print_line("dataset_op", "tf.data_in_memory", "GB/s", rates["tf.data_in_memory"], rates["memcpy"], "memcpy")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(sys.argv[3], sys.argv[2])
        sys.exit()
    options = harness.arguments(__doc__, rounds=5).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

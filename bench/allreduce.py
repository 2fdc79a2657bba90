# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""All-reduce of float32 in a tf.function, by 2 and 4 processes of this machine, against TensorFlow's CollectiveReduceV2 by its ring."""

import json
import os
import socket
import sys
import tempfile
import time

import harness
import rank_group

SIZES_MB = (1, 10, 100)
TIMES = {1: 40, 10: 10, 100: 4}  # operations a round
TRANSPORTS = {"shm": {"transport": "auto"}, "tcp": {"transport": "tcp", "trusted": True}, "tls": {"transport": "tcp"}}
GOALS = {"shm": 5, "tcp": 2.5, "tls": None}


def prepare(group, count, ports, folder):
    """TensorFlow's own cluster of these processes, and a group of ours by each transport."""
    import tensorflow as tf

    rank = int(os.environ["TFOS_RANK"])
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": [f"127.0.0.1:{port}" for port in ports]}, "task": {"type": "worker", "index": rank}}
    )
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    prepare.strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    prepare.groups = {
        name: rank_group.open_group(tf, folder, name, rank, count, **arguments) for name, arguments in TRANSPORTS.items()
    }


def measure(group, count, megabytes, key):
    """Seconds of each operation, by what does it."""
    import tensorflow as tf

    tensor = tf.ones([megabytes * 250_000])

    def by_tensorflow(tensor):
        return tf.raw_ops.CollectiveReduceV2(
            input=tensor, group_size=count, group_key=key, instance_key=key, ordering_token=[], merge_op="Add", final_op="Id",
            communication_hint="ring",
        )

    ways = {name: tf.function(lambda tensor, one=one: one.all_reduce([tensor], "bench")[0]) for name, one in prepare.groups.items()}
    ways["tensorflow"] = tf.function(by_tensorflow)
    seconds = {name: [] for name in ways}
    for name, way in ways.items():
        found = way(tensor)
        if float(found[0]) != count or float(found[-1]) != count:
            raise RuntimeError(f"{name} has summed up to {found}")
        prepare.groups["shm"].all_reduce([tf.zeros([1])], "barrier")
        for _ in range(TIMES[megabytes]):
            start = time.perf_counter()
            way(tensor)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def compete(folder, rounds):
    for size in (2, 4):
        ports = [free_port() for _ in range(size)]
        with rank_group.Ranks(tempfile.mkdtemp(dir=folder), size) as processes:
            rank_group.good(processes.run(prepare, 0, everyone=size, count=size, ports=ports, folder=tempfile.mkdtemp(dir=folder)))
            for megabytes in SIZES_MB:
                seconds = {}
                for index in range(rounds):
                    results = rank_group.good(
                        processes.run(measure, 0, everyone=size, count=size, megabytes=megabytes, key=100 * megabytes + index)
                    )
                    for name, values in results[0].items():
                        seconds.setdefault(name, []).extend(values)
                for name in TRANSPORTS:
                    harness.print_line(
                        "allreduce", f"{megabytes} MB, {size} processes, {name}", "s", seconds[name], seconds["tensorflow"],
                        "tensorflow_ring", GOALS[name],
                    )


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

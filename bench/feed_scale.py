# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""Does a row cost the same however many nodes share two cores, and however many rows there are? And the memory?

Rows of 16 floats and a label, computed by Spark as they are fed, go from a DataFrame through the JVM into get_dataset. A row's
cost is the CPU time of executors, nodes and trainers: more nodes than cores only take turns. Each node is fed as many rows, in as
many partitions, however many nodes there are; a cluster of one node takes turns with each of the others. Each JVM compiles for
itself, in bursts that depend on how long it has run and not on the rows: clusters are fed until that has become little, and what
the compilers still take is told apart from what a row costs.
"""

import functools
import json
import os
import sys
import time

import feed_rows
import harness

FLOATS = 16
BATCH = 1024
NODE_PARTITIONS = 4
NODES = (1, 2, 4, 8)
NODE_ROWS = 4_096_000
# A cluster is warm when its compilers took less than this part of the CPU time in so many epochs in a row, or after so long.
COMPILING = 0.05
WARM_EPOCHS = 2
WARM_S = 75
# About 10^5, 10^6 and 10^7: whole rounds of the numbers that the floats take.
ROWS = (102_400, 1_024_000, 10_240_000)
ROWS_NODES = 2
ROWS_MEMORY_MB = 1024
NODES_MEMORY_MB = 512
GOAL = 0.8
WAIT_S = 300
# What threads of an executor do, by how their names begin.
THREADS = {"Executor task": "tasks", "C1 ": "compilers", "C2 ": "compilers"}


def trainer(args, ctx):
    """Sums each epoch in TensorFlow's own loop and notes what came and when, until nothing more is fed."""
    import itertools

    import tensorflow as tf

    # Threads that sleep while they wait for rows: those that look for work meanwhile use up what time there is, rows or not.
    experimental = tf.compat.v1.ConfigProto.Experimental(disable_thread_spinning=True)
    tf.compat.v1.enable_eager_execution(
        tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, experimental=experimental))
    path = os.path.join(args["folder"], str(ctx.executor_id))

    @tf.function
    def sums():
        zeros = (tf.constant(0, tf.int64), tf.constant(0, tf.int64), tf.constant(0, tf.float64))
        return dataset.reduce(zeros, add)

    def add(state, batch):
        rows, labels, floats = state
        return (rows + tf.shape(batch["label"], tf.int64)[0], labels + tf.reduce_sum(batch["label"]),
                floats + tf.cast(tf.reduce_sum(batch["floats"]), tf.float64))  # whole numbers below 2^24: exact

    def note(name, values):
        with open(f"{path}.part", "w") as report:
            json.dump(values, report)
        os.rename(f"{path}.part", f"{path}.{name}")

    note("ready", {"pid": os.getpid()})
    dataset = ctx.get_dataset(args["batch"], prefetch=0)  # waits for the DataFrame's schema
    for epoch in itertools.count(1):
        rows, labels, floats = (value.numpy().item() for value in sums())
        note(f"epoch-{epoch}", {"rows": rows, "labels": labels, "floats": floats, "last": time.time()})
        if not rows:
            return


def make_frame(spark, rows, partitions):
    columns = ", ".join(f"cast((id * 7 + {place * 13}) % 256 as float)" for place in range(FLOATS))
    return spark.range(0, rows, 1, partitions).selectExpr(f"array({columns}) as floats", "id % 10 as label")


def expected_sums(rows):
    """Every 256 rows each float takes each whole number below 256 once."""
    return [rows, rows // 10 * 45, rows // 256 * FLOATS * (255 * 256 // 2)]


class Processes:
    """The executors, nodes and trainers of a cluster: what they have used so far, and the most they held at a time."""

    def __init__(self, application, trainers):
        self._executors = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_executor(pid, application)]
        self._trainers = trainers
        self._nodes = [int(_stat(f"/proc/{pid}/stat")[1]) for pid in trainers]

    def cpu_s(self):
        """CPU time by what it went into: tasks, compilers, trainers, and the rest of executors and nodes."""
        spent = dict.fromkeys((*THREADS.values(), "trainers", "rest"), 0.0)
        for pid in self._executors:
            spent["rest"] += _cpu_s(f"/proc/{pid}/stat")
            for kind, seconds in _threads_cpu_s(pid):
                spent[kind] += seconds
                spent["rest"] -= seconds
        spent["rest"] += sum(_cpu_s(f"/proc/{pid}/stat") for pid in self._nodes)
        spent["trainers"] = sum(_cpu_s(f"/proc/{pid}/stat") for pid in self._trainers)
        return spent

    def forget_peaks(self):
        for pid in self._executors + self._trainers:
            with open(f"/proc/{pid}/clear_refs", "w") as file:
                file.write("5")

    def peaks_mb(self):
        """Of executors and of trainers: resident memory with shared pages, summed up over the processes."""
        return [sum(map(_peak_mb, pids)) for pids in (self._executors, self._trainers)]


def _is_executor(pid, application):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return False
    return application in words and any(word.endswith("CoarseGrainedExecutorBackend") for word in words)


def _stat(path):
    """The fields of proc(5) from the state on: the parent is 1, the processor times are 11 and 12."""
    with open(path) as file:
        return file.read().rpartition(")")[2].split()


def _cpu_s(path):
    return sum(map(int, _stat(path)[11:13])) / os.sysconf("SC_CLK_TCK")


def _threads_cpu_s(pid):
    """What the threads that have a kind have used."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        path = f"/proc/{pid}/task/{thread}"
        try:
            with open(f"{path}/comm") as file:
                name = file.read()
            seconds = _cpu_s(f"{path}/stat")
        except FileNotFoundError:
            continue  # it has ended
        for start, kind in THREADS.items():
            if name.startswith(start):
                yield kind, seconds


def _peak_mb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM:")).split()[1]) / 1024


class Feed:
    """A cluster that is fed one epoch after another."""

    def __init__(self, session, nodes, folder):
        from pyspark import cloudpickle

        from tensorflowonspark import TFCluster

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        self._spark, self._nodes, self._folder, self._epoch = session.spark, nodes, folder, 0
        os.mkdir(folder)
        args = {"batch": BATCH, "folder": folder}
        self._cluster = TFCluster.run(session.context, trainer, args, nodes, 0, input_mode=TFCluster.InputMode.SPARK)
        trainers = [report["pid"] for report in self._reports("ready")]
        self._processes = Processes(session.context.applicationId, trainers)

    def _reports(self, suffix):
        reports = []
        for path in feed_rows.await_files(self._folder, f".{suffix}", self._nodes):
            with open(path) as file:
                reports.append(json.load(file))
        return reports

    def measure(self, rows):
        """Feeds so many rows, and checks what has come."""
        self._epoch += 1
        frame = make_frame(self._spark, rows, NODE_PARTITIONS * self._nodes)
        self._processes.forget_peaks()
        cpu_s, start = self._processes.cpu_s(), time.time()
        self._cluster.train(frame, 1, via="jvm")
        reports = self._reports(f"epoch-{self._epoch}")
        seconds = max(report["last"] for report in reports) - start
        cpu_us = {kind: (seconds - cpu_s[kind]) * 1e6 / rows for kind, seconds in self._processes.cpu_s().items()}
        got = [sum(report[name] for report in reports) for name in ("rows", "labels", "floats")]
        if got != expected_sums(rows):
            raise ValueError(f"rows, sum of labels and sum of floats are {got}, not {expected_sums(rows)}")
        executors, trainers = self._processes.peaks_mb()
        whole = sum(cpu_us.values())
        return {"rate": rows / seconds, "cost": whole - cpu_us["compilers"], "whole": whole, **cpu_us,
                "executors_mb": executors, "trainers_mb": trainers}

    def close(self):
        self._cluster.shutdown()
        return {}


def side(name):
    what, nodes = name.split("-")
    nodes = int(nodes)
    # For memory, a heap that is resident from the start: what grows is what the feed needs.
    settings = {"spark.executor.extraJavaOptions": f"-Xms{ROWS_MEMORY_MB}m -XX:+AlwaysPreTouch"} if what == "rows" else {}
    memory_mb = ROWS_MEMORY_MB if what == "rows" else NODES_MEMORY_MB
    with harness.LocalCluster(memory_mb, nodes, settings) as session:
        feed = Feed(session, nodes, os.path.join(os.getcwd(), "reports"))
        harness.serve({"measure": feed.measure, "close": feed.close})


def measure(contender, rows):
    result = contender.ask("measure", WAIT_S * 2, rows=rows)
    harness.note(f"{contender.name}: {rows} rows: {({name: float(f'{value:.4g}') for name, value in result.items()})}")
    return result


def warm_up(contender, rows):
    """Feeds until the compilers have little to do."""
    deadline, quiet = time.monotonic() + WARM_S, 0
    while quiet < WARM_EPOCHS and time.monotonic() < deadline:
        result = measure(contender, rows)
        quiet = quiet + 1 if result["compilers"] < COMPILING * result["whole"] else 0


def scale_nodes(folder, rounds):
    """Clusters of several nodes, each in turn with the one of one node."""
    with harness.Side(f"nodes-{NODES[0]}", sys.executable, folder) as single:
        warm_up(single, NODE_ROWS)
        for nodes in NODES[1:]:
            found = {1: [], nodes: []}
            with harness.Side(f"nodes-{nodes}", sys.executable, folder) as several:
                warm_up(several, nodes * NODE_ROWS)
                for side in harness.turns((single, several), rounds):
                    count = 1 if side is single else nodes
                    found[count].append(measure(side, count * NODE_ROWS))
                several.ask("close", WAIT_S)
            print_nodes(nodes, found[nodes], found[1])
        single.ask("close", WAIT_S)


def print_nodes(nodes, results, single):
    def line(case, unit, name, goal=None):
        values = ([result[name] for result in side] for side in (results, single))
        harness.print_line("feed_scale", case, unit, *values, "1_node", goal)

    line(f"{nodes} nodes", "CPU us/row", "cost", GOAL)
    for part in ("tasks", "trainers", "rest"):
        line(f"{nodes} nodes, {part}", "CPU us/row", part)
    line(f"{nodes} nodes, with compilers", "CPU us/row", "whole")
    line(f"{nodes} nodes", "rows/s", "rate")


def scale_rows(folder, rounds):
    line = functools.partial(harness.print_line, "feed_scale")
    with harness.Side(f"rows-{ROWS_NODES}", sys.executable, folder) as contender:
        results = {rows: [] for rows in ROWS}
        for index in range(rounds + 1):
            for rows in ROWS:
                result = measure(contender, rows)
                if index:
                    results[rows].append(result)
        contender.ask("close", WAIT_S)
    most = {name: [result[name] for result in results[ROWS[-1]]] for name in results[ROWS[-1]][0]}
    for rows, name in zip(ROWS, ("1e5_rows", "1e6_rows")):
        less = {key: [result[key] for result in results[rows]] for key in most}
        line("1e7 rows", "rows/s", most["rate"], less["rate"], name, GOAL)
        line("1e7 rows", "CPU us/row", most["cost"], less["cost"], name, GOAL)
        line("1e7 rows, trainers", "MB", most["trainers_mb"], less["trainers_mb"], name, GOAL)
        line("1e7 rows, executors", "MB", most["executors_mb"], less["executors_mb"], name, GOAL)


def compete(folder, rounds):
    scale_nodes(folder, rounds)
    scale_rows(folder, rounds)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

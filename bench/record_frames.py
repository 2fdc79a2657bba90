# SPDX-License-Identifier: Apache-2.0
"""What the benches of the data source share: rows of MNIST's size in three kinds, and the CPU time of Spark's JVM."""

import os

import harness

ROWS = 60_000
WIDTH = 784
KINDS = {"float": "array<float>", "long": "array<bigint>", "bytes": "binary"}
CALL_S = 600


class Frames:
    """Our side: one JVM with two tasks at a time, and the rows of each kind in its memory."""

    def __init__(self, spark):
        from tensorflowonspark import tfrecord

        tfrecord.add_to(spark)
        self.spark = spark
        self._pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self.cached = {kind: _rows(spark, kind).cache() for kind in KINDS}
        for frame in self.cached.values():
            frame.count()

    def cpu_seconds(self):
        with open(f"/proc/{self._pid}/stat") as file:
            user, system = file.read().rpartition(") ")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _rows(spark, kind):
    """The pixels of a row are what a picture's are like: four of five are zero."""
    values = f"transform(sequence(0, {WIDTH - 1}), i -> IF((i + id) % 5 = 0, (i * 13 + id * 7) % 256, 0))"
    pixels = f"cast(cast({values} AS array<int>) AS {KINDS[kind]})"
    if kind == "bytes":
        pixels = f"unhex(array_join(transform({values}, v -> lpad(hex(v), 2, '0')), ''))"
    return spark.range(0, ROWS, 1, 2).selectExpr(f"{pixels} AS pixels", "id % 10 AS label")


def serve(make_functions):
    """A side's main loop, in a session."""
    from pyspark.sql import SparkSession

    spark = (SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g").config("spark.ui.enabled", "false").getOrCreate())
    spark.sparkContext.setLogLevel("WARN")
    harness.serve({"versions": harness.versions, **make_functions(Frames(spark))})
    spark.stop()


def compare(bench, side, cases, rounds, rows, goal):
    """Ours and Parquet in turn, in one JVM; the first round of each is not counted. Prints a line for each case."""
    for case in cases:
        found = {"tfrecord": [], "parquet": []}
        for index in range(rounds + 1):
            for name, rates in found.items():
                seconds = side.ask("run", CALL_S, case=case, source=name)["cpu_s"]
                harness.note(f"{case} {name}: {rows / seconds:.0f} rows/CPU-s")
                if index:
                    rates.append(rows / seconds)
        harness.print_line(bench, case, "CPU rows/s", found["tfrecord"], found["parquet"], "parquet", goal)

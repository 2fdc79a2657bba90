# SPDX-License-Identifier: Apache-2.0
"""What the benches of the data source share: rows of MNIST's size in three kinds, the CPU time of Spark's JVM, and TensorFlow's Hadoop formats."""

import os

import harness
import original

ROWS = 60_000
WIDTH = 784
KINDS = {"float": "array<float>", "long": "array<bigint>", "bytes": "binary"}
CALL_S = 600
SPARK_TFRECORD = "spark_tfrecord_0.7"


class Session:
    """One JVM with two tasks at a time."""

    def __init__(self, settings):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g").config("spark.ui.enabled", "false")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("WARN")
        self.jvm = self.spark.sparkContext._jvm
        self._pid = self.jvm.java.lang.ProcessHandle.current().pid()

    def cpu_seconds(self):
        with open(f"/proc/{self._pid}/stat") as file:
            user, system = file.read().rpartition(") ")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cached_rows(spark):
    """The rows of each kind in a session's memory."""
    frames = {kind: _rows(spark, kind).cache() for kind in KINDS}
    for frame in frames.values():
        frame.count()
    return frames


def _rows(spark, kind):
    """The pixels of a row are what MNIST's are like: a fifth of them are not zero, side by side in the picture's lines, and gzip leaves 179 bytes of a
    row (of MNIST's 165)."""
    line, column = "i div 28", "i % 28"
    is_drawn = f"{line} BETWEEN 4 AND 22 AND {column} - pmod(hash(id, {line}), 14) BETWEEN 4 AND 11"
    values = f"transform(sequence(0, {WIDTH - 1}), i -> IF({is_drawn}, pmod(hash(id, i), 128) * 2 + 1, 0))"
    pixels = f"cast(cast({values} AS array<int>) AS {KINDS[kind]})"
    if kind == "bytes":
        pixels = f"unhex(array_join(transform({values}, v -> lpad(hex(v), 2, '0')), ''))"
    return spark.range(0, ROWS, 1, 2).selectExpr(f"{pixels} AS pixels", "id % 10 AS label")


def serve(make_functions):
    """A side's main loop, in a session with our data source."""
    from tensorflowonspark import tfrecord

    session = Session({})
    tfrecord.add_to(session.spark)
    harness.serve({"versions": harness.versions, **make_functions(session)})
    session.spark.stop()


class HadoopFrames:
    """The frames of TFRecord files by TensorFlow's Hadoop formats: records are bytes that nobody looks at."""

    FORMAT = "org.tensorflow.hadoop.io.TFRecordFile{}Format"

    def __init__(self, session):
        self._session = session
        self._spark = session.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(session.spark.sparkContext._jsc.sc())
        self._classes = [self._load(f"org.apache.hadoop.io.{name}Writable") for name in ("Bytes", "Null")]

    def _load(self, name):
        return self._session.jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)

    def open(self, path):
        """An RDD of the frames of files."""
        return self._spark.newAPIHadoopFile(path, self._load(self.FORMAT.format("Input")), *self._classes, self._spark.hadoopConfiguration())

    def keep(self, path):
        """The same in memory, as objects; each has bytes of its own."""
        return self.open(path).persist(self._session.jvm.org.apache.spark.storage.StorageLevel.MEMORY_ONLY())

    def save(self, frames, path):
        frames.saveAsNewAPIHadoopFile(path, *self._classes, self._load(self.FORMAT.format("Output")), self._spark.hadoopConfiguration())


def serve_hadoop(make_functions):
    """The main loop of a side with TensorFlow's Hadoop formats in place of our jar, which has classes of the same names."""
    session = Session(original.hadoop_settings())
    harness.serve({"versions": harness.versions, **make_functions(session, HadoopFrames(session))})
    session.spark.stop()


def compare(bench, case, works, rounds, rows, measured, goals):
    """Works, each of which gives the CPU seconds that it took, in turn; a first round is not counted. The first is ours; a line is printed for each of the
    others, and for spark-tfrecord, of which there is only what was ``measured`` once, as it is in no registry. ``goals`` are by their names."""
    found = {name: [] for name in works}
    for index in range(rounds + 1):
        for name, work in works.items():
            rate = rows / work()["cpu_s"]
            harness.note(f"{case} {name}: {rate:.0f} rows/CPU-s")
            if index:
                found[name].append(rate)
    ours = found.pop(next(iter(works)))
    for name, rates in {**found, SPARK_TFRECORD: [measured]}.items():
        harness.print_line(bench, case, "CPU rows/s", ours, rates, name, goals.get(name))

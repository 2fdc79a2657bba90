# SPDX-License-Identifier: Apache-2.0
"""What the benches of the data source share: MNIST's rows in three kinds, the CPU time of Spark's JVM, and TensorFlow's Hadoop formats."""

import os

import digits
import harness
import original

ROWS = digits.ROWS
KINDS = {"float": "array<float>", "int64": "array<bigint>", "bytes": "binary"}
CALL_S = 600


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


def schema(kind):
    return f"image {KINDS[kind]}, label bigint"


def cached_rows(spark):
    """The rows of each kind in a session's memory, in two parts."""
    frames = {}
    for kind, path in digits.write(os.getcwd()).items():
        frames[kind] = spark.read.format("tfrecord").schema(schema(kind)).load(path).repartition(2).cache()
        frames[kind].count()
        os.unlink(path)
    return frames


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


def compare(bench, case, works, rounds, rows, goals):
    """Runs works in turn, each of which returns the CPU seconds that it took; a first round is not counted. The first is ours; a line is printed for each of
    the others. ``goals`` are by their names."""
    found = {name: [] for name in works}
    for index in range(rounds + 1):
        for name, work in works.items():
            rate = rows / work()["cpu_s"]
            harness.note(f"{case} {name}: {rate:.0f} rows/CPU-s")
            if index:
                found[name].append(rate)
    ours = found.pop(next(iter(works)))
    for name, rates in found.items():
        harness.print_line(bench, case, "CPU rows/s", ours, rates, name, goals.get(name))

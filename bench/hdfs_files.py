# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""Files of an HDFS on this machine, through TensorFlow's gfile, against Hadoop's own client in Java: a large one read and written, and small ones opened
and looked at."""

import os
import pathlib
import subprocess
import sys
import time

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 256 << 20
SMALL, SMALL_SIZE = 10_000, 100
BLOCK = 1 << 20
WAIT_S = 900
EACH = 10  # files that a command of its own is run for
GOALS = {"java": 0.8, "webhdfs": 2, "hdfs_dfs": 5, "hdfs_dfs_each": 5}


def jars():
    import pyspark

    return os.path.join(os.path.dirname(pyspark.__file__), "jars")


def timed(function):
    def measured(**arguments):
        start = time.perf_counter()
        function(**arguments)
        return {"seconds": time.perf_counter() - start}

    return measured


# ---- ours


def serve_ours():
    import tensorflow as tf

    from tensorflowonspark import fs

    fs.register()
    gfile, block = tf.io.gfile, bytes(BLOCK)

    def read(uri):
        size = 0
        with gfile.GFile(uri, "rb") as file:
            for data in iter(lambda: file.read(BLOCK), b""):
                size += len(data)
        if size != SIZE:
            raise ValueError(f"{size} bytes were read")

    def write(uri):
        with gfile.GFile(uri, "wb") as file:
            for _ in range(SIZE // BLOCK):
                file.write(block)

    def open_all(uri):
        for name in gfile.listdir(uri):
            with gfile.GFile(f"{uri}/{name}", "rb") as file:
                if len(file.read()) != SMALL_SIZE:
                    raise ValueError(f"{name} has another size")

    def stat_all(uri):
        for name in gfile.listdir(uri):
            if gfile.stat(f"{uri}/{name}").length != SMALL_SIZE:
                raise ValueError(f"{name} has another size")

    harness.serve({"versions": harness.versions, "read": timed(read), "write": timed(write), "open": timed(open_all), "stat": timed(stat_all)})


# ---- Hadoop's


class Anchor:
    """A JVM with Hadoop's client; as many calls as there are keep it warm, as ours is."""

    def __init__(self):
        words = ["java", "-Xmx512m", "-cp", f"{jars()}/*", os.path.join(HERE, "native", "HdfsAnchor.java")]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, sep="\t", file=self._process.stdin, flush=True)
        return {"seconds": float(self._process.stdout.readline())}

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def run_shell(*words):
    """The command ``hdfs dfs`` is this program, which insists on a configuration."""
    with open("core-site.xml", "w") as file:
        file.write("<configuration/>")
    subprocess.run(["java", "-cp", f"{os.getcwd()}:{jars()}/*", "org.apache.hadoop.fs.FsShell", *words], check=True, stdout=subprocess.DEVNULL)


def run_each(command, uri):
    """A command a file; the seconds that all files would take."""
    start = time.perf_counter()
    for number in range(EACH):
        run_shell(command, f"{uri}/part-{number:05}")
    return {"seconds": (time.perf_counter() - start) * SMALL / EACH}


def serve_java():
    anchor = Anchor()
    harness.serve({
        "versions": harness.versions,
        "read": lambda uri: anchor.ask("read", uri, SIZE),
        "webhdfs": lambda uri: anchor.ask("read_array", uri, SIZE),
        "write": lambda uri: anchor.ask("write", uri, SIZE),
        "make": lambda uri: anchor.ask("make", uri, SMALL_SIZE, SMALL),
        "open": timed(lambda uri: run_shell("-cat", f"{uri}/*")),
        "stat": timed(lambda uri: run_shell("-stat", f"{uri}/*")),
        "open_each": lambda uri: run_each("-cat", uri),
        "stat_each": lambda uri: run_each("-stat", uri),
    })  # fmt: skip
    anchor.close()


# ---- both


def race(ours, java, rounds, server, web):
    large, written, small = f"{server}/large", f"{server}/written", f"{server}/small"
    java.ask("write", WAIT_S, uri=large)
    java.ask("make", WAIT_S, uri=small)
    works = {
        "read": ((ours, "read", large, "ours"), (java, "read", large, "java"), (java, "webhdfs", f"{web}/large", "webhdfs")),
        "write": ((ours, "write", written, "ours"), (java, "write", written, "java")),
        "open": ((ours, "open", small, "ours"), (java, "open", small, "hdfs_dfs"), (java, "open_each", small, "hdfs_dfs_each")),
        "stat": ((ours, "stat", small, "ours"), (java, "stat", small, "hdfs_dfs"), (java, "stat_each", small, "hdfs_dfs_each")),
    }
    for case, contenders in works.items():
        amount, unit = (SIZE / 1e6, "MB/s") if case in ("read", "write") else (SMALL, "files/s")
        rates = {name: [] for *_, name in contenders}
        for index in range(rounds + 1):  # a first round, in which the JVMs still compile, is not counted
            for side, do, uri, name in contenders:
                rate = amount / side.ask(do, WAIT_S, uri=uri)["seconds"]
                harness.note(f"{case} {name}: {rate:.0f} {unit}")
                if index:
                    rates[name].append(rate)
        found = rates.pop("ours")
        for name, others in rates.items():
            harness.print_line("hdfs_files", case, unit, found, others, name, GOALS[name])


def compete(folder, rounds):
    sys.path.insert(0, os.path.join(HERE, os.pardir, "python", "tests"))
    from hadoop_cluster import serving

    place = pathlib.Path(folder, "cluster")
    place.mkdir()
    with serving(place) as server:
        web = f"webhdfs://{server.cluster.getConfiguration(0).get('dfs.namenode.http-address')}"
        with harness.Side("java", sys.executable, folder) as java, harness.Side("ours", sys.executable, folder) as ours:
            race(ours, java, rounds, server, web)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        {"ours": serve_ours, "java": serve_java}[options.side]()
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

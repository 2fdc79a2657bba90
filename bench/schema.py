# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""The schema of 1,000 TFRecord files with MNIST's 60,000 rows: as it is found unless something else is asked for, against two seconds; and of all
records, against reading them."""

import os
import resource
import subprocess
import sys
import time

import digits
import harness
import record_frames

FILES = 1_000
LIMIT_S = 2
GOAL = 1
PASSES = 4
LIBRARY_PASSES = 20  # of 30 ms and more
TFOS = os.path.join(os.path.dirname(sys.executable), "tfos")


def write(folder):
    """A folder of files for each kind; their paths."""
    from tensorflowonspark import tfrecord

    rows = digits.ROWS // FILES
    folders = {kind: os.path.join(folder, f"files-{kind}") for kind in digits.KINDS}
    for kind, path in folders.items():
        os.mkdir(path)
        table = digits.table(kind)
        for i in range(FILES):
            tfrecord.write(os.path.join(path, f"part-{i:04}.tfrecord"), table.slice(i * rows, rows))
    return folders


# ---- in the library


def decode(paths, schema):
    from tensorflowonspark import _tfos

    rows = 0
    for path in paths:
        with _tfos.ExampleReader(path, schema) as reader:
            while reader.next() is not None:
                pass
            rows += reader.counts[0]
    if rows != digits.ROWS:
        raise harness.BenchError(f"{rows} rows were read, not {digits.ROWS}")


def run_tfos(paths):
    subprocess.run([TFOS, "record", "schema", *paths], check=True, stdout=subprocess.DEVNULL)


def child_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare_in_library(folder, kind, rounds):
    """Rows per CPU-second of each, and how long each takes."""
    from tensorflowonspark import tfrecord

    paths = sorted(entry.path for entry in os.scandir(folder))
    schema = tfrecord.infer_schema(folder)
    works = {
        "infer_schema": lambda: tfrecord.infer_schema(folder),
        "tfos": lambda: run_tfos(paths),
        "decode": lambda: decode(paths, schema),
    }
    rates, seconds = ({name: [] for name in works} for _ in range(2))
    for index in range(rounds + 1):
        for name, work in works.items():
            start, own, children = time.perf_counter(), time.process_time(), child_seconds()
            for _ in range(LIBRARY_PASSES):
                work()
            used = time.process_time() - own + child_seconds() - children
            if index:
                rates[name].append(digits.ROWS * LIBRARY_PASSES / used)
                seconds[name].append((time.perf_counter() - start) / LIBRARY_PASSES)
    harness.note(f"{kind}: rows/CPU-s {({name: [round(rate) for rate in found] for name, found in rates.items()})}, s {seconds}")
    for name in ("infer_schema", "tfos"):
        harness.print_line("schema", f"{kind}, {name}", "s", seconds[name], [LIMIT_S], "limit", 1)
        harness.print_line("schema", f"{kind}, {name}, all", "rows/CPU/s", rates[name], rates["decode"], "decode", GOAL)


# ---- in Spark


def inferring(session):
    def load(folder, **options):
        return session.spark.read.format("tfrecord").options(**options).load(folder)

    def wake(folder):
        """What the first source of a session costs whatever it is."""
        session.spark.read.format("text").load(folder)
        return {}

    def sample(folder):
        start = time.perf_counter()
        load(folder)
        return {"s": time.perf_counter() - start}

    def infer_all(folder):
        start = session.cpu_seconds()
        for _ in range(PASSES):
            load(folder, inferAll="true")
        return {"cpu_s": session.cpu_seconds() - start}

    def read(folder):
        frame = load(folder)
        start = session.cpu_seconds()
        for _ in range(PASSES):
            frame.write.format("noop").mode("overwrite").save()
        return {"cpu_s": session.cpu_seconds() - start}

    return {"wake": wake, "sample": sample, "infer_all": infer_all, "read": read}


def compare_in_spark(side, folder, kind, rounds):
    seconds = []
    rates = {"infer_all": [], "read": []}
    side.ask("wake", record_frames.CALL_S, folder=folder)
    for index in range(rounds + 1):
        seconds.append(side.ask("sample", record_frames.CALL_S, folder=folder)["s"])
        for name, found in rates.items():
            used = side.ask(name, record_frames.CALL_S, folder=folder)["cpu_s"]
            if index:
                found.append(digits.ROWS * PASSES / used)
    harness.note(f"{kind}, Spark: rows/CPU-s {({name: [round(rate) for rate in found] for name, found in rates.items()})}, s {seconds}")
    harness.print_line("schema", f"{kind}, Spark, first", "s", seconds[:1], [LIMIT_S], "limit", 1)
    harness.print_line("schema", f"{kind}, Spark", "s", seconds[1:], [LIMIT_S], "limit", 1)
    harness.print_line("schema", f"{kind}, Spark, all", "CPU rows/s", rates["infer_all"], rates["read"], "noop_scan", GOAL)


def compete(folder, rounds):
    folders = write(folder)
    for kind, path in folders.items():
        compare_in_library(path, kind, rounds)
    for kind, path in folders.items():
        with harness.Side(f"ours-{kind}", sys.executable, folder) as side:
            compare_in_spark(side, path, kind, rounds)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        record_frames.serve(inferring)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

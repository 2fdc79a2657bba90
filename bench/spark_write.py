# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""The data source writes MNIST's 60,000 rows of 784 values and a label from Spark's memory: beside Parquet, and beside TensorFlow's Hadoop format, which writes
frames around the bytes of the same records."""

import hashlib
import os
import shutil
import sys
from functools import partial

import harness
import record_frames
from record_frames import CALL_S, KINDS, ROWS

PASSES = 5
GOALS = {"parquet": 1}


def writing(session):
    cached = record_frames.cached_rows(session.spark)

    def run(kind, source):
        start = session.cpu_seconds()
        for _ in range(PASSES):
            cached[kind].write.format(source).mode("overwrite").save(os.path.abspath(f"{source}-{kind}"))
        return {"cpu_s": session.cpu_seconds() - start}

    return {"run": run, "files": lambda kind: {"path": os.path.abspath(f"tfrecord-{kind}")}}


def checksums(folder):
    """Of the files with records."""
    found = []
    for entry in os.scandir(folder):
        if entry.name[0] not in "_.":
            with open(entry.path, "rb") as file:
                found.append(hashlib.sha256(file.read()).hexdigest())
    return sorted(found)


def writing_frames(session, hadoop):
    kept = {}

    def keep(path):
        kept[path] = hadoop.keep(path)
        hadoop.save(kept[path], os.path.abspath("copy"))
        if checksums("copy") != checksums(path):
            raise ValueError(f"a copy of {path} has other records")
        shutil.rmtree("copy")

    def run(path):
        if path not in kept:
            keep(path)
        start = session.cpu_seconds()
        for number in range(PASSES):
            hadoop.save(kept[path], os.path.abspath(f"frames-{number}"))
        seconds = session.cpu_seconds() - start
        for number in range(PASSES):
            shutil.rmtree(f"frames-{number}")
        return {"cpu_s": seconds}

    return {"run": run}


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as ours, harness.Side("hadoop", sys.executable, folder) as hadoop:
        for kind in KINDS:
            path = ours.ask("files", CALL_S, kind=kind)["path"]
            works = {source: partial(ours.ask, "run", CALL_S, kind=kind, source=source) for source in ("tfrecord", "parquet")}
            works["tensorflow_hadoop"] = partial(hadoop.ask, "run", CALL_S, path=path)
            record_frames.compare("spark_write", kind, works, rounds, ROWS * PASSES, GOALS)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side == "ours":
        record_frames.serve(writing)
    elif options.side:
        record_frames.serve_hadoop(writing_frames)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

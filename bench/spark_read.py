# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""The data source reads MNIST's 60,000 rows of 784 values and a label, every column into nothing, and sums: beside Parquet, and beside TensorFlow's Hadoop
format, which reads the same file's frames only."""

import os
import sys
from functools import partial

import digits
import harness
import record_frames
from record_frames import CALL_S, KINDS, ROWS

PASSES = {"float": 12, "int64": 12, "bytes": 40}  # seconds of CPU time each, of which the JVM tells hundredths
GOALS = {"parquet": 1}


def reading(session):
    label_sum = int(digits.rows()[1].sum())
    for kind, frame in record_frames.cached_rows(session.spark).items():
        for source in ("tfrecord", "parquet"):
            frame.coalesce(1).write.format(source).option("parquet.enable.dictionary", "false").save(os.path.abspath(f"{source}-{kind}"))
        frame.unpersist(True)

    def run(kind, what, source):
        frame = session.spark.read.format(source).schema(record_frames.schema(kind)).load(os.path.abspath(f"{source}-{kind}"))
        pixel = "length(image)" if kind == "bytes" else "image[391]"
        start = session.cpu_seconds()
        for _ in range(PASSES[kind]):
            if what == "noop":
                frame.write.format("noop").mode("overwrite").save()
            else:
                found = frame.selectExpr("sum(label)", f"sum({pixel})").first()
                if found[0] != label_sum:
                    raise ValueError(f"{source}: the sum of the labels is {found[0]}")
        return {"cpu_s": session.cpu_seconds() - start}

    return {"run": run, "files": lambda kind: {"path": os.path.abspath(f"tfrecord-{kind}")}}


def reading_frames(session, hadoop):
    def run(kind, path):
        start = session.cpu_seconds()
        for _ in range(PASSES[kind]):
            count = hadoop.open(path).count()
            if count != ROWS:
                raise ValueError(f"{path}: {count} records")
        return {"cpu_s": session.cpu_seconds() - start}

    return {"run": run}


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as ours, harness.Side("hadoop", sys.executable, folder) as hadoop:
        for kind in KINDS:
            path = ours.ask("files", CALL_S, kind=kind)["path"]
            for what in ("noop", "sum"):
                works = {source: partial(ours.ask, "run", CALL_S, kind=kind, what=what, source=source) for source in ("tfrecord", "parquet")}
                works["tensorflow_hadoop"] = partial(hadoop.ask, "run", CALL_S, kind=kind, path=path)
                record_frames.compare("spark_read", f"{kind} {what}", works, rounds, ROWS * PASSES[kind], GOALS)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side == "ours":
        record_frames.serve(reading)
    elif options.side:
        record_frames.serve_hadoop(reading_frames)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""The data source reads 60,000 rows of 784 values and a label, beside Parquet: every column into nothing, and sums."""

import os
import sys

import harness
import record_frames
from record_frames import KINDS, ROWS

PASSES = 4
CASES = [f"{kind} {what}" for kind in KINDS for what in ("noop", "sum")]


def reading(frames):
    for kind, frame in frames.cached.items():
        for source in ("tfrecord", "parquet"):
            frame.coalesce(1).write.format(source).option("parquet.enable.dictionary", "false").save(os.path.abspath(f"{source}-{kind}"))
        frame.unpersist(True)

    def run(case, source):
        kind, what = case.split()
        frame = frames.spark.read.format(source).schema(f"pixels {KINDS[kind]}, label bigint").load(os.path.abspath(f"{source}-{kind}"))
        pixel = "length(pixels)" if kind == "bytes" else "pixels[391]"
        start = frames.cpu_seconds()
        for _ in range(PASSES):
            if what == "noop":
                frame.write.format("noop").mode("overwrite").save()
            else:
                found = frame.selectExpr("sum(label)", f"sum({pixel})").first()
                if found[0] != ROWS * 4.5:
                    raise ValueError(f"{source}: the sum of the labels is {found[0]}")
        return {"cpu_s": frames.cpu_seconds() - start}

    return {"run": run}


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as side:
        record_frames.compare("spark_read", side, CASES, rounds, ROWS * PASSES, 1)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        record_frames.serve(reading)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""The data source writes 60,000 rows of 784 values and a label from Spark's memory, beside Parquet."""

import os
import sys

import harness
import record_frames
from record_frames import KINDS, ROWS

PASSES = 5

def writing(frames):
    def run(case, source):
        start = frames.cpu_seconds()
        for _ in range(PASSES):
            frames.cached[case].write.format(source).mode("overwrite").save(os.path.abspath(f"{source}-{case}"))
        return {"cpu_s": frames.cpu_seconds() - start}

    return {"run": run}


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as side:
        record_frames.compare("spark_write", side, KINDS, rounds, ROWS * PASSES, 1)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        record_frames.serve(writing)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

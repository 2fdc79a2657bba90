# bench: env=old
# SPDX-License-Identifier: Apache-2.0
"""dfutil: a cached DataFrame of 784 floats and a label to TFRecord files and back, by the same two functions on both sides."""

import os
import sys
import time

import harness
import original

PARTITIONS = 8
ROWS = {"original": 9_600, "ours": 192_000}
WAIT_S = 600
GOAL = 20


class Records:
    """One side's work on its cached DataFrame."""

    def __init__(self, cluster, name):
        self._context, self._rows = cluster.context, ROWS[name]
        pixels = "transform(sequence(0, 783), column -> cast((column * 13 + id * 7) % 256 as float)) as pixels"
        self._frame = cluster.spark.range(0, self._rows, 1, PARTITIONS).selectExpr(pixels, "id % 10 as label").cache()
        self._frame.count()

    def save(self, folder):
        from tensorflowonspark import dfutil

        start = time.time()
        dfutil.saveAsTFRecords(self._frame, folder)
        return {"rows": self._rows, "seconds": time.time() - start}

    def load(self, folder):
        """From the call until the sums of all values are there."""
        from tensorflowonspark import dfutil

        start = time.time()
        loaded = dfutil.loadTFRecords(self._context, folder)
        sums = "count(*)", "sum(label)", "sum(aggregate(pixels, 0D, (sum, pixel) -> sum + pixel))"
        found = tuple(loaded.selectExpr(*sums).first())
        seconds = time.time() - start
        wanted = tuple(self._frame.selectExpr(*sums).first())
        if found != wanted:
            raise ValueError(f"rows and sums of what was loaded are {found}, not {wanted}")
        return {"rows": self._rows, "seconds": seconds}


def side(name):
    settings = original.hadoop_settings() if name == "original" else {}
    with harness.LocalCluster(settings=settings) as cluster:
        records = Records(cluster, name)
        harness.serve({"versions": harness.versions, "save": records.save, "load": records.load})


def compete(folder, rounds):
    with harness.Side("original", original.python(), folder) as theirs, harness.Side("ours", sys.executable, folder) as ours:
        harness.check_same_versions((theirs, ours))
        rates = {(name, case): [] for name in ROWS for case in ("save", "load")}
        for contender in (theirs, ours):  # a first round, in which the JVMs still compile, is not counted
            for case in ("save", "load"):
                contender.ask(case, WAIT_S, folder=os.path.join(folder, f"{contender.name}-first"))
        for index, contender in enumerate(harness.turns((theirs, ours), rounds)):
            for case in ("save", "load"):
                result = contender.ask(case, WAIT_S, folder=os.path.join(folder, f"{contender.name}-{index}"))
                rates[contender.name, case].append(result["rows"] / result["seconds"])
                harness.note(f"{contender.name} {case}: {rates[contender.name, case][-1]:.0f} rows/s {result}")
    for case in ("save", "load"):
        harness.print_line("dfutil_records", case, "rows/s", rates["ours", case], rates["original", case], "original", GOAL)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

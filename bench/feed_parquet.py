# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""A DataFrame of Parquet files, 784 floats and a label, to two trainers by get_dataset, beside what Spark alone makes of the files."""

import os
import sys

import frame_feed
import harness

EPOCHS = 3


def parquet(spark):
    """The rows in files in the side's own folder."""
    path = os.path.abspath("rows.parquet")
    frame_feed.made(spark).write.parquet(path)
    return spark.read.parquet(path)


def side():
    with harness.LocalCluster() as cluster:
        harness.serve(frame_feed.FrameFeed(cluster, parquet).functions())


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as ours:
        found = frame_feed.rates(ours, folder, rounds, EPOCHS, "jvm", ("scan", "sum"))
    harness.print_line("feed_parquet", "get_dataset", "rows/s", found["measure"], found["scan"], "noop_scan", 0.6)
    harness.print_line("feed_parquet", "get_dataset", "rows/s", found["measure"], found["sum"], "map_in_arrow_sum", 2)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side()
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

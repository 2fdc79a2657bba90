# bench: env=old
# SPDX-License-Identifier: Apache-2.0
"""A cached DataFrame of 784 floats and a label to two trainers: ours by get_dataset, the original's by df.rdd and next_batch."""

import os
import sys

import feed_rows
import frame_feed
import harness
import original

EPOCHS = 10
ORIGINAL_ROWS = 25_600


class OriginalFeed(feed_rows.Feed):
    """The original's side: as feed_rows, but the rows are those of a cached DataFrame's rdd."""

    def __init__(self, cluster):
        self._spark = cluster.spark
        super().__init__(cluster)

    def _cached(self, count):
        numbers = self._spark.range(0, feed_rows.PARTITIONS * count, 1, feed_rows.PARTITIONS)
        pixels = "transform(sequence(0, 783), column -> cast((column * 13 + id * 7) % 256 as float)) as pixels"
        frame = numbers.selectExpr(pixels, "id % 10 as label").cache()
        frame.count()
        return frame.rdd


def side(name):
    with harness.LocalCluster() as cluster:
        if name == "ours":
            functions = frame_feed.FrameFeed(cluster, frame_feed.cached).functions()
        else:
            frame_feed.send_along()
            feed_rows.PARTITION_ROWS = ORIGINAL_ROWS // feed_rows.PARTITIONS
            functions = {"versions": harness.versions, "measure": OriginalFeed(cluster).measure}
        harness.serve(functions)


def compete(folder, rounds):
    with harness.Side("original", original.python(), folder) as theirs, harness.Side("ours", sys.executable, folder) as ours:
        harness.check_same_versions((theirs, ours))
        anchor = []
        for index in range(rounds + 1):
            result = theirs.ask("measure", feed_rows.WAIT_S * 2, case="next_batch", epochs=1,
                                folder=os.path.join(folder, f"original-{index}"))
            rate = result["rows"] / result["seconds"]
            harness.note(f"original: {rate:.0f} rows/s {result}")
            if index:
                anchor.append(rate)
        found = frame_feed.rates(ours, folder, rounds, EPOCHS, "jvm", ("sum",))
    harness.print_line("feed_df", "get_dataset", "rows/s", found["measure"], anchor, "original_df_rdd", 100)
    harness.print_line("feed_df", "get_dataset", "rows/s", found["measure"], found["sum"], "map_in_arrow_sum", 2)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

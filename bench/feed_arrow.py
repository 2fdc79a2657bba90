# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""The second path: a cached DataFrame of 784 floats and a label to two trainers through Python workers, beside a bare mapInArrow()."""

import sys

import frame_feed
import harness

EPOCHS = 3


def side():
    with harness.LocalCluster() as cluster:
        harness.serve(frame_feed.FrameFeed(cluster, frame_feed.cached).functions())


def compete(folder, rounds):
    with harness.Side("ours", sys.executable, folder) as ours:
        found = frame_feed.rates(ours, folder, rounds, EPOCHS, "arrow", ("sum",))
    harness.print_line("feed_arrow", "get_dataset", "rows/s", found["measure"], found["sum"], "map_in_arrow_sum", 0.8)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side()
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

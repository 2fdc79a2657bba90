# bench: env=old
# SPDX-License-Identifier: Apache-2.0
"""TFCluster.run and shutdown of two nodes whose function returns at once, on a warm Spark session."""

import sys
import time

import harness
import original

CYCLE_S = 120


def nothing(args, ctx):
    """The function of a node that has nothing to do."""


def measure(cluster):
    from tensorflowonspark import TFCluster

    start = time.monotonic()
    nodes = TFCluster.run(
        cluster.context, nothing, [], 2, 0, input_mode=TFCluster.InputMode.SPARK
    )
    ran = time.monotonic()
    nodes.shutdown()
    end = time.monotonic()
    return {"seconds": end - start, "run": ran - start, "shutdown": end - ran}


def side():
    with harness.LocalCluster() as cluster:
        harness.serve({"versions": harness.versions, "measure": lambda: measure(cluster)})


def compete(folder, rounds):
    with harness.Side("original", original.python(), folder) as theirs, harness.Side(
        "ours", sys.executable, folder
    ) as ours:
        harness.check_same_versions((theirs, ours))
        for contender in (theirs, ours):
            contender.ask("measure", CYCLE_S)  # starts the executors' Python workers
        seconds = {"original": [], "ours": []}
        for contender in harness.turns((theirs, ours), rounds):
            result = contender.ask("measure", CYCLE_S)
            seconds[contender.name].append(result["seconds"])
            harness.note(
                f"{contender.name}: {result['seconds']:.2f} s, run {result['run']:.2f}, "
                f"shutdown {result['shutdown']:.2f}"
            )
    harness.print_line(
        "cluster_cycle", "run_shutdown", "s", seconds["ours"], seconds["original"], "original", 4
    )


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=5).parse_args()
    if options.side:
        side()
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

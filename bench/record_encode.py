# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""MNIST's 60,000 rows from Arrow batches to TFRecord, one thread, into nothing; against three times what spark-tfrecord 0.7 writes on this kind of
machine, which was measured once: it is in no registry."""

import sys

import digits
import harness

SPARK_TFRECORD = {"float": 34_000, "int64": 50_000, "bytes": 207_000}  # rows per CPU-second
GOAL = 3


def encode(batches):
    from tensorflowonspark import _tfos

    with _tfos.ExampleWriter("/dev/null", batches[0].schema) as writer:
        for batch in batches:
            writer.append(batch)
        writer.finish()


def compete(folder, rounds):
    for kind in digits.KINDS:
        batches = digits.table(kind).to_batches(digits.BATCH)
        rates = digits.in_turn({"ours": lambda batches=batches: encode(batches)}, rounds)
        harness.note(f"{kind}: {[round(rate) for rate in rates['ours']]}")
        harness.print_line("record_encode", kind, "rows/CPU/s", rates["ours"], [SPARK_TFRECORD[kind]], "spark_tfrecord_0.7", GOAL)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=5).parse_args()
    sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

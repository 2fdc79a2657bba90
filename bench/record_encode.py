# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""MNIST's 60,000 rows from Arrow batches to TFRecord, one thread, into nothing; beside Parquet of the same batches by Arrow's own writer."""

import sys

import digits
import harness

GOALS = {"float": 4, "int64": 3, "bytes": 1}


def to_records(batches):
    from tensorflowonspark import _tfos

    with _tfos.ExampleWriter("/dev/null", batches[0].schema) as writer:
        for batch in batches:
            writer.append(batch)
        writer.finish()


def to_parquet(batches):
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter("/dev/null", batches[0].schema, compression="none", use_dictionary=False) as writer:
        for batch in batches:
            writer.write_batch(batch)


def compete(folder, rounds):
    for kind in digits.KINDS:
        batches = digits.table(kind).to_batches(digits.BATCH)
        works = {"ours": lambda batches=batches: to_records(batches), "parquet": lambda batches=batches: to_parquet(batches)}
        rates = digits.in_turn(works, rounds)
        harness.note(f"{kind}: {({name: [round(rate) for rate in found] for name, found in rates.items()})}")
        harness.print_line("record_encode", kind, "rows/CPU/s", rates["ours"], rates["parquet"], "parquet", GOALS[kind])


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=5).parse_args()
    sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

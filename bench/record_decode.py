# bench: env=new
# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of MNIST's 60,000 rows to columns, one thread: the library to Arrow batches and as tfrecord.dataset, beside tf.data's
TFRecordDataset with batch and parse_example."""

import sys

import digits
import harness

GOALS = {"float": 3, "int64": 2, "bytes": 3}
TF_BATCH = 1024


def to_arrow(path, schema):
    from tensorflowonspark import _tfos

    rows = 0
    with _tfos.ExampleReader(path, schema, batch_rows=digits.BATCH) as reader:
        batch = reader.next()
        while batch is not None:
            rows = reader.counts[0]
            batch = reader.next()
    check(rows)


def check(rows):
    if rows != digits.ROWS:
        raise harness.BenchError(f"{rows} rows were read, not {digits.ROWS}")


def go_over(dataset):
    """A pass in a graph, without Python for each batch."""
    import tensorflow as tf

    check(int(dataset.reduce(tf.constant(0, tf.int64), lambda count, batch: count + tf.shape(batch["label"], tf.int64)[0])))


def single_threaded(dataset):
    import tensorflow as tf

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    options.autotune.enabled = False
    return dataset.with_options(options)


def datasets(path, kind, schema):
    import tensorflow as tf

    from tensorflowonspark import tfrecord

    image = {
        "float": tf.io.FixedLenFeature([784], tf.float32),
        "int64": tf.io.FixedLenFeature([784], tf.int64),
        "bytes": tf.io.FixedLenFeature([], tf.string),
    }[kind]
    features = {"image": image, "label": tf.io.FixedLenFeature([], tf.int64)}
    shapes = None if kind == "bytes" else {"image": 784}
    ours = tfrecord.dataset(path, schema, TF_BATCH, shapes=shapes, prefetch=0)
    theirs = tf.data.TFRecordDataset(path).batch(TF_BATCH).map(lambda raw: tf.io.parse_example(raw, features))
    return single_threaded(ours), single_threaded(theirs)


def compete(folder, rounds):
    import tensorflow as tf

    from tensorflowonspark import tfrecord

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for kind, path in digits.write(folder).items():
        schema = tfrecord.infer_schema(path, limit=10)
        ours, theirs = datasets(path, kind, schema)
        works = {
            "arrow": lambda path=path, schema=schema: to_arrow(path, schema),
            "dataset": lambda dataset=ours: go_over(dataset),
            "parse_example": lambda dataset=theirs: go_over(dataset),
        }
        rates = digits.in_turn(works, rounds)
        harness.note(f"{kind}: {({name: [round(rate) for rate in found] for name, found in rates.items()})}")
        anchor = rates["parse_example"]
        harness.print_line("record_decode", f"{kind}", "rows/CPU/s", rates["arrow"], anchor, "parse_example", GOALS[kind])
        harness.print_line("record_decode", f"{kind}, dataset", "rows/CPU/s", rates["dataset"], anchor, "parse_example")


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=5).parse_args()
    sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

# SPDX-License-Identifier: Apache-2.0
"""Writes the TFRecord files of this folder with TensorFlow: `python make.py`, by hand, when they are to change."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

FOLDER = os.path.dirname(os.path.abspath(__file__))


def ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def write(name, messages, compression=None):
    with tf.io.TFRecordWriter(os.path.join(FOLDER, name), options=compression) as writer:
        for message in messages:
            writer.write(message.SerializeToString(deterministic=True))


def example(row):
    features = {
        "number": ints(row),
        "numbers": ints(*range(-row, row + 1), 2**63 - 1, -(2**63)),
        "float": floats(row / 3),
        "floats": floats(*[0.5 * i for i in range(row)]),
        "text": texts(f"row {row} é".encode()),
        "texts": texts(*[b"x" * i for i in range(row)]),
        "bytes": texts(bytes([255, row])),
    }
    if row == 2:
        del features["text"]  # a null
    return tf.train.Example(features=tf.train.Features(feature=features))


def sequence(row):
    steps = [tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w"] * i)) for i in range(row)]
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={"id": ints(row)}),
        feature_lists=tf.train.FeatureLists(feature_list={"words": tf.train.FeatureList(feature=steps)}),
    )


if __name__ == "__main__":
    write("examples.tfrecord", [example(row) for row in range(5)])
    write("examples.tfrecord.gz", [example(row) for row in range(5)], "GZIP")
    write("examples.tfrecord.zlib", [example(row) for row in range(5)], "ZLIB")
    write("sequences.tfrecord", [sequence(row) for row in range(3)])

# SPDX-License-Identifier: Apache-2.0
"""Writes the idx files of MNIST as train.tfrecords, which mnist.py reads.

    convert_to_records.py --data ../../examples/mnist/data --output data
"""

import argparse
import gzip
import os

import numpy as np
import tensorflow as tf


def read_idx(path, header):
    """The bytes behind the header of an idx file, gzipped."""
    with gzip.open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz", required=True)
    parser.add_argument("--output", help="folder to write to, local or of a file system that TensorFlow knows", required=True)
    parser.add_argument("--limit", help="only the first images", type=int)
    args = parser.parse_args()
    images = read_idx(os.path.join(args.data, "train-images-idx3-ubyte.gz"), 16).reshape(-1, 784)
    labels = read_idx(os.path.join(args.data, "train-labels-idx1-ubyte.gz"), 8)
    if len(images) != len(labels):
        parser.error(f"{args.data}: {len(images)} images, but {len(labels)} labels")
    tf.io.gfile.makedirs(args.output)
    path = tf.io.gfile.join(args.output, "train.tfrecords")
    with tf.io.TFRecordWriter(path) as writer:
        for image, label in zip(images[:args.limit], labels):
            feature = {
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    print(f"{path}: {len(images[:args.limit])} images")


if __name__ == "__main__":
    main()

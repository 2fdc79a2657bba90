# SPDX-License-Identifier: Apache-2.0
"""Writes MNIST as CSV (label and 784 pixels a line), as such lines with a bar behind the label, as TFRecord files and as pickles, for the other examples.

    spark-submit mnist_data_setup.py --output data/mnist               the digits in data/ beside this file: 10,000 and 2,000
    spark-submit mnist_data_setup.py --output data/mnist --data DIR    a folder with the four idx files, gzipped or not
    spark-submit mnist_data_setup.py --output data/mnist --full        all 70,000, fetched by keras.datasets

Below ``--output`` there are then ``csv/train`` and ``csv/test``, ``csv2/train`` ..., ``tfr/train`` ..., ``pickle/train`` ..., as TensorFlowOnSpark's
scripts of this name write them: a line of ``csv2`` is ``label|pixel,pixel,...``, a record is a ``tf.train.Example`` of ``image``, 784 ints, and
``label``; a pickle's rows are ``([784 ints], label)``, read with ``sc.pickleFile``.
"""

import argparse
import gzip
import os
import struct
import zlib

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
FORMATS = ("csv", "csv2", "tfr", "pickle")
UNSIGNED_BYTE = 8


class IdxError(ValueError):
    """A file that is no idx file of bytes, or is cut."""


def read_idx(path):
    """The array in an idx file of unsigned bytes, gzipped or not.

    The format (http://yann.lecun.com/exdb/mnist/): two zero bytes, the type, the number of dimensions, each dimension as a
    big-endian 32-bit number, then the values.

    Raises:
        IdxError: the file is of another kind, cut, or has bytes left over.
    """
    with open(path, "rb") as file:
        content = file.read()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise IdxError(f"{path}: damaged or cut gzip file: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE or content[3] == 0:
        raise IdxError(f"{path}: not an idx file of unsigned bytes: it begins with {content[:4]!r}")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise IdxError(f"{path}: cut in its header: {len(content)} bytes, the header has {start}")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    expected = start + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        raise IdxError(f"{path}: {len(content)} bytes, but {shape} values need {expected}: the file is cut or damaged")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_digits(folder, split):
    """The images, uint8 (n, 784), and the labels, uint8 (n,), of "train" or "test" in a folder of idx files.

    Raises:
        FileNotFoundError: a file is not there, neither gzipped nor plain.
        IdxError: a file cannot be read, or the two do not belong together.
    """
    images_path, labels_path = (_find(folder, name) for name in FILES[split])
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or images.shape[1:] != (28, 28):
        raise IdxError(f"{images_path}: holds {images.shape} bytes, not images of 28 by 28")
    if labels.shape != images.shape[:1]:
        raise IdxError(f"{labels_path}: {labels.shape} labels for the {len(images)} images of {images_path}")
    return images.reshape(-1, 784), labels


def _find(folder, name):
    for path in (os.path.join(folder, name + ".gz"), os.path.join(folder, name)):
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"{folder}: neither {name}.gz nor {name} is there")


def fetch_digits(split):
    """The same from keras.datasets, which downloads it."""
    from tensorflow import keras

    images, labels = keras.datasets.mnist.load_data()[("train", "test").index(split)]
    return images.reshape(-1, 784), labels


def to_csv(row, separator=","):
    """``label,pixel,pixel,...`` of a row (784 bytes, label)."""
    pixels, label = row
    return f"{label}{separator}" + ",".join(map(str, pixels))


def save(sc, images, labels, output, split, num_partitions, formats=FORMATS):
    """Writes one split in each of the formats.

    Raises:
        FileExistsError: the output is there already.
    """
    from pyspark.sql import SparkSession

    from tensorflowonspark import tfrecord

    rows = sc.parallelize([(image.tobytes(), int(label)) for image, label in zip(images, labels)], num_partitions)
    folders = {name: f"{output}/{name}/{split}" for name in formats}
    for folder in folders.values():
        path = sc._jvm.org.apache.hadoop.fs.Path(folder)
        if path.getFileSystem(sc._jsc.hadoopConfiguration()).exists(path):
            raise FileExistsError(f"{folder} exists; remove it or choose another --output")
    lists = rows.map(lambda row: (list(row[0]), row[1]))

    def save_records(folder):
        spark = SparkSession.builder.getOrCreate()
        tfrecord.add_to(spark)
        spark.createDataFrame(lists, "image array<smallint>, label smallint").write.format("tfrecord").save(folder)

    writers = {"csv": rows.map(to_csv).saveAsTextFile, "csv2": rows.map(lambda row: to_csv(row, "|")).saveAsTextFile, "tfr": save_records,
               "pickle": lists.saveAsPickleFile}
    for name, folder in folders.items():
        writers[name](folder)


def main():
    from pyspark import SparkConf, SparkContext

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the idx files", default=DATA)
    parser.add_argument("--full", help="fetch the whole data set with keras.datasets instead", action="store_true")
    parser.add_argument("--num_partitions", help="number of output files", type=int, default=10)
    parser.add_argument("--output", help="folder to write to, local or on HDFS", default="data/mnist")
    args = parser.parse_args()

    sc = SparkContext(conf=SparkConf().setAppName("mnist_data_setup"))
    for split in ("train", "test"):
        images, labels = fetch_digits(split) if args.full else read_digits(args.data, split)
        save(sc, images, labels, args.output, split, args.num_partitions)
        print(f"{split}: {len(labels)} digits in", ", ".join(f"{args.output}/{kind}/{split}" for kind in FORMATS))
    sc.stop()


if __name__ == "__main__":
    main()

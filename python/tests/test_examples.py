# SPDX-License-Identifier: Apache-2.0
"""MNIST's data for the examples: the conversion is exact, damaged files are refused; and the demonstration does what it says."""

import gzip
import importlib
import os
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mnist"


@pytest.fixture(scope="module")
def setup_module_of_data():
    """The module mnist_data_setup."""
    sys.path[:0] = added = [str(EXAMPLE), str(EXAMPLE / "keras")]
    yield importlib.import_module("mnist_data_setup")
    for folder in added:
        sys.path.remove(folder)


def idx(array):
    """The array as the bytes of an idx file."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_digits(folder, images, labels, packed=True, split="train"):
    for name, array in ((f"{split}-images-idx3-ubyte", images), (f"{split}-labels-idx1-ubyte", labels)):
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name).write_bytes(idx(array))


@pytest.fixture
def digits():
    random = np.random.RandomState(0)
    return random.randint(0, 256, (7, 28, 28)).astype("uint8"), random.randint(0, 10, 7).astype("uint8")


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_are_read_as_written(setup_module_of_data, tmp_path, digits, packed):
    write_digits(tmp_path, *digits, packed)
    images, labels = setup_module_of_data.read_digits(str(tmp_path), "train")
    assert images.dtype == labels.dtype == np.uint8
    assert (images == digits[0].reshape(7, 784)).all()
    assert (labels == digits[1]).all()


def test_committed_subset(setup_module_of_data):
    for split, count in (("train", 10000), ("test", 2000)):
        images, labels = setup_module_of_data.read_digits(setup_module_of_data.DATA, split)
        assert images.shape == (count, 784)
        assert set(labels) == set(range(10))


@pytest.mark.parametrize("cut", [0, 3, 4, 15, 16, 17, 16 + 7 * 784 - 1])
def test_cut_idx_file_is_refused(setup_module_of_data, tmp_path, digits, cut):
    path = tmp_path / "images"
    path.write_bytes(idx(digits[0])[:cut])
    with pytest.raises(setup_module_of_data.IdxError, match=re.escape(str(path))):
        setup_module_of_data.read_idx(str(path))


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.999])
def test_cut_gzip_file_is_refused(setup_module_of_data, tmp_path, digits, keep):
    path = tmp_path / "images.gz"
    content = gzip.compress(idx(digits[0]))
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(setup_module_of_data.IdxError, match="damaged or cut gzip file"):
        setup_module_of_data.read_idx(str(path))


def test_flipped_bit_in_gzip_file_is_refused(setup_module_of_data, tmp_path, digits):
    content = bytearray(gzip.compress(idx(digits[0])))
    content[len(content) // 2] ^= 1
    (tmp_path / "images.gz").write_bytes(content)
    with pytest.raises(setup_module_of_data.IdxError):
        setup_module_of_data.read_idx(str(tmp_path / "images.gz"))


def test_files_that_do_not_belong_together_are_refused(setup_module_of_data, tmp_path, digits):
    write_digits(tmp_path, digits[0], digits[1][:6])
    with pytest.raises(setup_module_of_data.IdxError, match="labels for the 7 images"):
        setup_module_of_data.read_digits(str(tmp_path), "train")


def test_missing_file_is_named(setup_module_of_data, tmp_path):
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        setup_module_of_data.read_digits(str(tmp_path), "train")


@pytest.mark.long
def test_conversion_is_exact(setup_module_of_data, sc, tmp_path, digits):
    from pyspark.sql import SparkSession

    images, labels = digits[0].reshape(7, 784), digits[1]
    sc.addPyFile(str(EXAMPLE / "mnist_data_setup.py"))
    setup_module_of_data.save(sc, images, labels, str(tmp_path), "train", 3)
    lines, bars = ("".join(path.read_text() for path in sorted((tmp_path / kind / "train").glob("part-*"))).splitlines() for kind in ("csv", "csv2"))
    expected = [(image.tolist(), int(label)) for image, label in zip(images, labels)]
    assert [[int(label), *pixels] for pixels, label in expected] == [[*map(int, line.split(","))] for line in lines]
    assert bars == [line.replace(",", "|", 1) for line in lines]
    assert sorted(sc.pickleFile(str(tmp_path / "pickle" / "train")).collect()) == sorted(expected)
    assert sorted(mnist_rows(tmp_path / "tfr" / "train")) == sorted(expected)
    spark_example, spark = importlib.import_module("mnist_spark"), SparkSession(sc)
    for kind in spark_example.FORMATS:
        frame = spark_example.read_digits(spark, f"{tmp_path}/{kind}/train", kind)
        assert frame.schema.simpleString() == "struct<image:array<smallint>,label:smallint>"
        assert sorted((row.image, row.label) for row in frame.collect()) == sorted(expected)
    with pytest.raises(FileExistsError, match="csv/train exists"):
        setup_module_of_data.save(sc, images, labels, str(tmp_path), "train", 3)


def mnist_rows(folder):
    """The rows of TFRecord files as TensorFlow reads them."""
    import tensorflow as tf

    records = tf.data.TFRecordDataset(sorted(map(str, folder.glob("part-*"))))
    features = [tf.train.Example.FromString(record.numpy()).features.feature for record in records]
    return [(list(one["image"].int64_list.value), one["label"].int64_list.value[0]) for one in features]


def test_records_of_every_origin(setup_module_of_data, digits):
    """What this package's script, TensorFlowOnSpark's of versions 1 (ten numbers for the label) and 2, and tensorflow_datasets (a PNG) write."""
    import tensorflow as tf

    def example(**features):
        kinds = {name: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)) if isinstance(values[0], bytes)
                 else tf.train.Feature(int64_list=tf.train.Int64List(value=values)) for name, values in features.items()}
        return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString()

    reading = importlib.import_module("mnist_tf_ds")
    image, pixels = digits[0][0][..., None], digits[0][0].reshape(784)
    png = tf.io.encode_png(image).numpy()
    for label in (0, 7):
        for parse, record in (
            (reading.parse_tfos, example(image=pixels.tolist(), label=[label])),
            (reading.parse_tfos, example(image=pixels.tolist(), label=[int(digit == label) for digit in range(10)])),
            (reading.parse_tfds, example(image=[png], label=[label])),
        ):
            found = parse(tf.constant(record))
            assert (found[0].numpy() == pixels).all() and int(found[1]) == label


def run_example(folder, name, *arguments, **environment):
    """What an example prints, run in ``folder`` as a program of its own."""
    result = subprocess.run(
        [sys.executable, str(EXAMPLE / name), *arguments], cwd=folder, capture_output=True, text=True, timeout=580,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@pytest.mark.long
def test_demonstration(tmp_path):
    """Accuracy, and every file where it is said to be; the workers that are not the chief leave nothing. An earlier run is in the same folder."""
    for name in ("csv", "csv2", "tfr", "pickle", "model", "export", "predictions"):
        (tmp_path / "out" / name / "train").mkdir(parents=True)
    output = run_example(tmp_path, "demo.py", "--output", "out")
    accuracy = re.search(r"accuracy +(0\.\d+) \((\d,\d+) of 2,000", output)
    assert accuracy and float(accuracy.group(1)) >= 0.95, output
    assert "rows/s" in output and "loss" in output
    model = tmp_path / "out" / "model"
    names = sorted(path.name for path in model.iterdir())
    for epoch in (1, 2, 3):
        assert f"weights-{epoch:04d}.weights.h5" in names
    assert any("events.out.tfevents" in path.name for path in model.rglob("*"))
    assert not [name for name in names if "temp" in name]
    assert (tmp_path / "out" / "export" / "saved_model.pb").is_file()
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
    parts = sorted((tmp_path / "out" / "predictions").glob("part-*"))
    lines = "".join(path.read_text() for path in parts).splitlines()
    assert len(lines) == 2000
    assert sum(line.split()[0] == line.split()[1] for line in lines) == int(accuracy.group(2).replace(",", ""))


@pytest.mark.long
def test_parameter_servers(tmp_path):
    """The README's command: the loss of a custom loop falls; the embedding lies on both servers."""
    readme = (EXAMPLE.parent / "parameter_server" / "README.md").read_text()
    _, option, master, program, *arguments = shlex.split(re.search(r"^spark-submit .*", readme, re.MULTILINE).group())
    assert option == "--master"
    settings = {"PYSPARK_SUBMIT_ARGS": f"--master {master} --conf spark.ui.enabled=false pyspark-shell", "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1"}
    output = run_example(tmp_path, f"../parameter_server/{program}", *arguments, "--steps", "100", **settings)
    losses = [float(loss) for loss in re.findall(r"epoch \d: loss (\d+\.\d+)", output)]
    assert len(losses) == 3 and losses[-1] < losses[0], output
    assert re.search(r"^\[chief:0\] (table on .*)", readme, re.MULTILINE).group(1) in output

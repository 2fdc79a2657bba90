# SPDX-License-Identifier: Apache-2.0
"""A disk that gets full: errors name the file and say so, and no file appears, not even a part of one.

It is a preloaded library that makes it full: a disk of its own would need the right to mount one. That does not come between the package's own
library and the system's, whose limit for the size of a file is reached instead.
"""

import json
import os
import resource
import subprocess
import sys

import pytest

from conftest import make_context
from tensorflowonspark.launch import node_executable

pytestmark = pytest.mark.long
HERE = os.path.dirname(os.path.abspath(__file__))
FULL = "No space left on device"
LARGE = "File too large"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "full_disk.so"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", str(path), os.path.join(HERE, "full_disk.c")], check=True)
    return path


@pytest.fixture
def run(library, tmp_path):
    """Runs a command in which the folder "disk" has room for so many bytes."""
    (tmp_path / "disk").mkdir()

    def run(command, room, **options):
        environment = dict(os.environ, LD_PRELOAD=str(library), FULL_DISK_FOLDER=str(tmp_path / "disk"), FULL_DISK_ROOM=str(room))
        return subprocess.run(command, env=environment, cwd=HERE, text=True, timeout=400, stderr=subprocess.PIPE,
                              **{"stdout": subprocess.PIPE, **options})

    return run


def left_in(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def attempt(folder, action):
    """What was said, and what is left in the folder."""
    try:
        action(folder)
    except Exception as error:
        return str(error), left_in(folder)
    return "it was written", left_in(folder)


# ---- by Spark; these run in a process of their own

def write_by_spark(disk):
    """A file that is larger than the disk, and then, on a disk that is full, some that are smaller than any buffer."""
    from pyspark.sql import SparkSession

    import test_hadoop_formats as formats
    from tensorflowonspark import tfrecord

    spark = SparkSession(make_context("local[2]"))
    tfrecord.add_to(spark)
    large = spark.range(0, 100000, 1, 2).selectExpr("id", "repeat('x', 100) AS s")
    small = spark.range(0, 10, 1, 1)
    pairs = spark.sparkContext.parallelize([b"record"], 1)

    def save(frame, **options):
        return lambda folder: frame.write.format("tfrecord").options(**options).save(folder)

    actions = {
        "large": save(large), "gzip": save(large.coalesce(1), codec="gzip"), "small": save(small), "local": save(small, writeLocality="local"),
        "schema": save(small, schemaMode="sidecar"), "new": lambda folder: formats.write(pairs, folder, "new"),
        "V1": lambda folder: formats.write(pairs, folder, "V1"),
    }
    print(json.dumps({name: attempt(f"{disk}/{name}", action) for name, action in actions.items()}))
    spark.sparkContext.stop()


@pytest.mark.timeout(420)  # a JVM of its own, and seven jobs
def test_by_spark(run, tmp_path):
    pytest.importorskip("pyarrow")
    disk = tmp_path / "disk"
    done = run([sys.executable, "-c", f"import test_full_disk; test_full_disk.write_by_spark({str(disk)!r})"], 3_000_000)
    assert done.returncode == 0, done.stderr
    for name, (words, left) in json.loads(done.stdout.splitlines()[-1]).items():
        file = "_tfos_schema.json" if name == "schema" else "part-"
        assert f"cannot write file:{disk}/{name}/" in words and file in words and FULL in words, (name, words)
        assert left == [], name


# ---- by the package and the command

def run_limited(command, room):
    """Runs a command none of whose files can have more bytes."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return subprocess.run(command, text=True, timeout=400, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit)


PROGRAM = """
import sys
import pyarrow as pa
from tensorflowonspark import tfrecord
path, rows, compression = sys.argv[1], int(sys.argv[2]), sys.argv[3]
try:
    tfrecord.write(path, pa.table({"x": list(range(rows))}), compression=compression)
except tfrecord._tfos.IoError as error:
    print(error)
"""


CASES = pytest.mark.parametrize("rows, compression, room", [
    (100_000, "none", 1_000_000), (100_000, "gzip", 100_000), (10, "none", 100), (10, "zlib", 0),
])


@CASES
def test_by_the_package(tmp_path, rows, compression, room):
    pytest.importorskip("pyarrow")
    done = run_limited([sys.executable, "-B", "-c", PROGRAM, f"file://{tmp_path}/out", str(rows), compression], room)
    assert f"{tmp_path}/out: {LARGE}" in done.stdout, (done.stdout, done.stderr)
    assert left_in(tmp_path) == []


@CASES
def test_by_the_package_to_a_device(tmp_path, rows, compression, room):  # the device has no room at all
    pa = pytest.importorskip("pyarrow")
    from tensorflowonspark import _tfos, tfrecord

    (tmp_path / "out").symlink_to("/dev/full")
    with pytest.raises(_tfos.IoError, match=f"{tmp_path}/out: {FULL}"):
        tfrecord.write(tmp_path / "out", pa.table({"x": list(range(rows))}), compression=compression)
    assert (tmp_path / "out").is_char_device() and os.listdir(tmp_path) == ["out"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A file of 3 MB."""
    pa = pytest.importorskip("pyarrow")
    from tensorflowonspark import tfrecord

    path = tmp_path_factory.mktemp("source") / "source.tfrecord"
    tfrecord.write(path, pa.table({"x": list(range(20_000)), "s": ["x" * 100] * 20_000}))
    return str(path)


COMMANDS = {
    "merge": ["merge", "SOURCE", "DISK/out"], "gzip": ["merge", "--compress=gzip", "SOURCE", "DISK/out"], "repair": ["repair", "SOURCE", "DISK/out"],
    "split": ["split", "-n", "3", "SOURCE", "DISK/out"], "shuffle": ["shuffle", "SOURCE", "DISK/out"],
    "json": ["convert", "SOURCE", "DISK/out.jsonl"], "csv": ["convert", "SOURCE", "DISK/out.csv"], "json.gz": ["convert", "SOURCE", "DISK/out.json.gz"],
}


@pytest.mark.parametrize("name", list(COMMANDS))
@pytest.mark.parametrize("room", [50, 10_000])
def test_by_the_command(run, source, tmp_path, name, room):
    words = [word.replace("SOURCE", source).replace("DISK", f"{tmp_path}/disk") for word in COMMANDS[name]]
    done = run([node_executable(), "record", *words], room)
    assert done.returncode == 1 and f"{tmp_path}/disk/out" in done.stderr and FULL in done.stderr, done.stderr
    assert left_in(tmp_path / "disk") == []


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
@pytest.mark.parametrize("room", [50, 10_000])
def test_by_the_command_in_python(source, tmp_path, name, room):
    command = os.path.join(os.path.dirname(sys.executable), "tfos")  # which becomes the Python beside it
    done = run_limited([command, "record", "convert", source, f"{tmp_path}/{name}"], room)
    assert done.returncode == 1 and f"{tmp_path}/{name}: {LARGE}" in done.stderr, done.stderr
    assert left_in(tmp_path) == []


def test_temporary_files_of_the_command(run, source, tmp_path, monkeypatch):
    """A file that is compressed and larger than the memory allowed is shuffled by way of TMPDIR."""
    subprocess.run([node_executable(), "record", "merge", source, f"{source}.gz"], check=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "disk"))
    done = run([node_executable(), "record", "shuffle", "--memory=100000", f"{source}.gz", str(tmp_path / "out")], 100_000)
    assert done.returncode == 1 and f"{tmp_path}/disk" in done.stderr and FULL in done.stderr, done.stderr
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("words", [["cat"], ["head", "-n", "2"], ["count"], ["check"], ["schema"], ["merge", "--json"], ["convert", "--to=csv"]])
def test_what_is_piped_to_a_full_disk(run, source, words):
    target = ["-"] if words[0] in ("merge", "convert") else []
    with open("/dev/full", "w") as full:
        done = run([node_executable(), "record", *words, source, *target], 0, stdout=full)
    assert done.returncode == 1 and FULL in done.stderr, (done.returncode, done.stderr)

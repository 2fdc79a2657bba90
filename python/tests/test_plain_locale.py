# SPDX-License-Identifier: Apache-2.0
"""Programs that run with LANG=C, as services and containers do: bytes and names are as they are elsewhere."""

import json
import os
import subprocess
import sys

import pytest

from tensorflowonspark.launch import node_executable

pytestmark = pytest.mark.long
HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = {**{name: value for name, value in os.environ.items() if not name.startswith("LC_") and name != "PYTHONUTF8"}, "LANG": "C", "LC_ALL": "C",
         "PYTHONCOERCECLOCALE": "0"}
ROW = {"größe": "Ünï ☃ 😀", "zahl": 7}


def run(command, **options):
    done = subprocess.run(command, env=PLAIN, cwd=HERE, timeout=400, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def go_through_spark(source, target):
    """Copies files by the source, in a process of its own."""
    from pyspark.sql import SparkSession

    from conftest import make_context
    from tensorflowonspark import tfrecord

    spark = SparkSession(make_context("local[1]"))
    tfrecord.add_to(spark)
    frame = spark.read.format("tfrecord").load(source)
    assert frame.where("zahl = 7").selectExpr("length(`größe`)").first() == (7,)
    frame.write.format("tfrecord").partitionBy("zahl").option("schemaMode", "sidecar").save(target)
    print(json.dumps(spark.read.format("tfrecord").load(target).first().asDict()))
    spark.sparkContext.stop()


def test_the_package_and_the_command(tmp_path):
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "größe.tfrecord")
    program = """
import json, pyarrow, sys
from tensorflowonspark import tfrecord
path, row = json.loads(sys.argv[1])
tfrecord.write(path, pyarrow.Table.from_pylist([row]))
[batch] = tfrecord.read(path)
print(json.dumps(batch.to_pylist()))
"""
    assert json.loads(run([sys.executable, "-c", program, json.dumps([path, ROW])])) == [ROW]
    assert json.loads(run([node_executable(), "record", "cat", path])) == ROW
    run([node_executable(), "record", "convert", path, f"{path}.csv"])
    run([node_executable(), "record", "convert", f"{path}.csv", f"{path}.again"])
    assert json.loads(run([node_executable(), "record", "cat", f"{path}.again"])) == ROW


@pytest.mark.timeout(420)  # a JVM of its own
def test_spark(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from tensorflowonspark import tfrecord

    (tmp_path / "in").mkdir()
    tfrecord.write(tmp_path / "in" / "part-0", pa.Table.from_pylist([ROW]))
    program = f"import test_plain_locale; test_plain_locale.go_through_spark({str(tmp_path / 'in')!r}, {str(tmp_path / 'out')!r})"
    assert json.loads(run([sys.executable, "-c", program]).splitlines()[-1]) == ROW

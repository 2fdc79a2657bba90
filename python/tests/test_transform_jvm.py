# SPDX-License-Identifier: Apache-2.0
"""Transforms in a JVM: what its tasks hold of a model, and models behind a URI. The driver's JVM is the executor's here."""

import glob
import os
import subprocess
import sys
import tempfile

import pytest

from conftest import make_context
from test_pipeline import model_at

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    context = make_context("local[2]")
    yield SparkSession(context)
    context.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("models"))
    subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "pipeline_models.py"), folder], check=True)
    return f"{folder}/good"


class Loaded:
    """The model that the JVM has loaded last."""

    def __init__(self, spark):
        jvm = spark.sparkContext._jvm
        self._class = jvm.java.lang.Class.forName("org.tfos.LoadedModel", True, jvm.java.lang.Thread.currentThread().getContextClassLoader())

    def _get(self, name, owner):
        field = self._class.getDeclaredField(name)
        field.setAccessible(True)
        return field.get(owner)

    def handle(self):
        return self._get("handle", self._get("current", None))

    def holds(self):
        return self._get("holdCount", self._get("current", None))


def test_tasks_share_a_model_and_let_go_of_it(spark, model):
    from py4j.protocol import Py4JJavaError

    frame = spark.range(0, 100_000, 1, 4).selectExpr("id", "array(double(id), 1.0d) as x")
    stage = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"}).setKeep(["id"])
    assert stage.transform(frame).count() == 100_000
    loaded = Loaded(spark)
    handle = loaded.handle()
    assert loaded.holds() == 0
    assert [tuple(row) for row in stage.transform(frame).limit(3).collect()] == [(i, 3 * i + 0.5) for i in range(3)] and loaded.holds() == 0
    broken = frame.selectExpr("id", "if(id = 60000, null, x) as x")
    with pytest.raises(Py4JJavaError, match="column 'x' has a null"):
        stage.transform(broken).selectExpr("sum(y)").collect()
    spark.sparkContext._jsc.sc().cancelAllJobs()
    assert stage.transform(frame).selectExpr("sum(y)").first()[0] == sum(3 * i + 0.5 for i in range(100_000))
    assert loaded.holds() == 0 and loaded.handle() == handle


def test_a_model_behind_a_uri_is_copied_for_the_time_of_loading(spark, model, monkeypatch):
    """Hadoop reads this machine's files by a URI of another scheme, which Python reads as paths."""
    from tensorflowonspark import transform

    look_at = transform._look_at
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.models.link./good", f"file://{model}")

    def behind_a_uri(frame, request):
        answer = look_at(frame, request)
        answer["native"].update(path="viewfs://models/good", is_local=False)
        return answer

    monkeypatch.setattr(transform, "_look_at", behind_a_uri)
    frame = spark.range(3).selectExpr("array(double(id), 1.0d) as x")
    result = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"}).transform(frame)
    assert sorted(row[0] for row in result.collect()) == [0.5, 3.5, 6.5]
    assert not glob.glob(os.path.join(tempfile.gettempdir(), "tfos-model-*"))


def test_a_file_system_that_hadoop_does_not_know_is_left_to_python(spark, model, monkeypatch):
    from tensorflowonspark import transform

    look_at = transform._look_at

    def of_another_kind(frame, request):
        answer = look_at(frame, request)
        answer["native"].update(path="none://models/good", is_local=False)
        return answer

    monkeypatch.setattr(transform, "_look_at", of_another_kind)
    frame = spark.range(3).selectExpr("array(double(id), 1.0d) as x")
    result = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"}).transform(frame)
    assert "MapInArrow" in result._jdf.queryExecution().toString() and result.count() == 3

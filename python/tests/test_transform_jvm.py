# SPDX-License-Identifier: Apache-2.0
"""Transforms in a JVM: what its tasks hold of a model, and models behind a URI. The driver's JVM is the executor's here."""

import glob
import os
import subprocess
import sys
import tempfile

import pytest

from conftest import make_context, wait_until
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
        self._gateway = spark.sparkContext._gateway
        jvm = spark.sparkContext._jvm
        self._class = jvm.java.lang.Class.forName("org.tfos.LoadedModel", True, jvm.java.lang.Thread.currentThread().getContextClassLoader())

    def _field(self, name):
        field = self._class.getDeclaredField(name)
        field.setAccessible(True)
        return field

    def current(self):
        """None: the model was freed."""
        return self._field("current").get(None)

    def handle(self):
        return self._field("handle").get(self.current())

    def holds(self):
        return self._field("holdCount").get(self.current())

    def look_after(self, seconds):
        """Does what the timer does, as if the model had been idle for so long."""
        idle_since = self._field("idleSince")
        idle_since.setLong(self.current(), idle_since.get(self.current()) - int(seconds * 1e9))
        no_types, no_arguments = (self._gateway.new_array(kind, 0) for kind in (self._gateway.jvm.java.lang.Class, self._gateway.jvm.java.lang.Object))
        method = self._class.getDeclaredMethod("endIfIdle", no_types)
        method.setAccessible(True)
        method.invoke(self.current(), no_arguments)


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


def test_a_job_that_is_cancelled_lets_go_of_the_model(spark, model):
    from pyspark import InheritableThread

    frame = spark.range(0, 1_000_000_000, 1, 2).selectExpr("array(double(id), 1.0d) as x")
    stage = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"})
    loaded, ended = Loaded(spark), []

    def run():
        spark.sparkContext.setJobGroup("endless", "a transform that is cancelled")
        with pytest.raises(Exception, match="cancelled") as caught:
            stage.transform(frame).selectExpr("sum(y)").collect()
        ended.append(caught.type.__name__)

    thread = InheritableThread(run)
    thread.start()
    wait_until(lambda: loaded.current() is not None and loaded.holds() == 2, what="both tasks")
    spark.sparkContext.cancelJobGroup("endless")
    thread.join(60)
    wait_until(lambda: loaded.holds() == 0, what="the end of both tasks")
    assert ended
    small = spark.range(5).selectExpr("array(double(id), 1.0d) as x")
    assert stage.transform(small).selectExpr("sum(y)").first()[0] == 32.5


def test_a_model_is_freed_when_it_has_been_idle(spark, model):
    frame = spark.range(5).selectExpr("array(double(id), 1.0d) as x")
    stage = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"})
    loaded = Loaded(spark)
    for _ in range(2):
        assert stage.transform(frame).selectExpr("sum(y)").first()[0] == 32.5
        loaded.look_after(30)
        assert loaded.current() is not None
        loaded.look_after(31)
        assert loaded.current() is None


@pytest.fixture
def move_model(monkeypatch):
    """move_model(uri) makes what looks at a model say that it is there."""
    from tensorflowonspark import transform

    look_at = transform._look_at

    def move(uri):
        def look_and_move(frame, request):
            answer = look_at(frame, request)
            answer["native"].update(path=uri, is_local=False)
            return answer

        monkeypatch.setattr(transform, "_look_at", look_and_move)

    return move


def test_a_model_behind_a_uri_is_copied_for_the_time_of_loading(spark, model, move_model):
    """Hadoop reads this machine's files by a URI of another scheme, which Python reads as paths."""
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.models.link./good", f"file://{model}")
    move_model("viewfs://models/good")
    frame = spark.range(3).selectExpr("array(double(id), 1.0d) as x")
    result = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"}).transform(frame)
    assert sorted(row[0] for row in result.collect()) == [0.5, 3.5, 6.5]
    assert not glob.glob(os.path.join(tempfile.gettempdir(), "tfos-model-*"))


def test_a_file_system_that_hadoop_does_not_know_is_left_to_python(spark, model, move_model):
    move_model("none://models/good")
    frame = spark.range(3).selectExpr("array(double(id), 1.0d) as x")
    result = model_at(model).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"}).transform(frame)
    assert "MapInArrow" in result._jdf.queryExecution().toString() and result.count() == 3

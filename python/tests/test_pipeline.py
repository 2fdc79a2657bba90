# SPDX-License-Identifier: Apache-2.0
"""TFEstimator and TFModel as stages of Spark ML: fits, transforms, what is saved, and what is refused."""

import argparse
import importlib
import os
import pickle
import re
import shutil
import subprocess
import sys

import pytest

from conftest import make_context, wait_until
from tensorflowonspark import TFCluster, TFNode, dfutil, pipeline, transform, util
from tensorflowonspark.pipeline import HasBatchSize, HasSteps, Namespace, TFEstimator, TFModel, TFParams, TFTypeConverters, get_meta_graph_def, yield_batch
from tensorflowonspark.saved_models import ModelRequest
from test_cluster import local

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def sc():
    """Its Python workers are forked from a process that has imported TensorFlow: a worker ends with a failed task."""
    context = make_context("local-cluster[2,1,1024]", spark_python_daemon_module="tensorflowonspark.worker_daemon")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFOS_PRELOAD", "tensorflow")
        yield context
    context.stop()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of the models; they are written by a process of their own."""
    folder = str(tmp_path_factory.mktemp("models"))
    program = os.path.join(os.path.dirname(__file__), "pipeline_models.py")
    subprocess.run([sys.executable, program, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


@pytest.fixture(scope="module")
def pairs(spark):
    rows = [(i, [float(i), 1.0], "unused") for i in range(25)]
    return spark.createDataFrame(rows, "id long, pair array<double>, other string").repartition(3)


@pytest.fixture(params=["jvm", "python"])
def way(request, monkeypatch):
    """How a transform of a SavedModel goes."""
    if request.param == "python":
        monkeypatch.setattr(transform, "_goes_by_jvm", lambda *args: False)
    return request.param


def model_at(path, signature=None):
    return TFModel({}).setExportDir(path).setSignatureDefKey(signature).setBatchSize(4)


def tuples(frame):
    return sorted(map(tuple, frame.collect()))


# -- names and arguments


def test_namespaces():
    values = {"text": "a", "number": 1, "map": {"b": 2}}
    named = Namespace(values)
    assert named == Namespace(named) == Namespace(argparse.Namespace(**values)) and sorted(named) == sorted(values)
    assert "text" in named and "none" not in named and repr(Namespace({"b": 1, "a": "x"})) == "Namespace(a='x', b=1)"
    listed = Namespace(["--a", "1"])
    assert listed == ["--a", "1"] and list(listed) == ["--a", "1"] and repr(listed) == "['--a', '1']" and listed == Namespace(listed)
    assert Namespace({}).argv is None
    with pytest.raises(TypeError, match="not 5"):
        Namespace(5)


def test_a_trainer_reads_arguments_without_spark():
    """A trainer's start would be a second of CPU time longer."""
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer), sorted({'pyspark', 'pandas', 'tensorflow'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(Namespace({"a": 1})), stdout=subprocess.PIPE, check=True)
    assert result.stdout == b"Namespace(a=1) []\n"


def test_params_win_over_arguments():
    class Both(TFParams, HasBatchSize, HasSteps):
        def __init__(self, args):
            super().__init__()
            self.args = args

    both = Both(Namespace({"a": 1, "batch_size": 2})).setBatchSize(10).setSteps(100)
    assert both.merge_args_params() == Namespace({"a": 1, "batch_size": 10, "steps": 100})
    assert both.args == Namespace({"a": 1, "batch_size": 2})


def test_defaults_and_setters(sc):
    estimator = TFEstimator(None, {})
    assert estimator.getClusterSize() == 1 and estimator.getMasterNode() == "chief" and estimator.getGraceSecs() == 30 and estimator.getSteps() == 1000
    for name in ("BatchSize", "ClusterSize", "Epochs", "GraceSecs", "NumPS", "Readers", "Steps"):
        assert getattr(getattr(estimator, f"set{name}")(3), f"get{name}")() == 3
    for name in ("MasterNode", "ModelDir", "Protocol", "TFRecordDir", "ExportDir"):
        assert getattr(getattr(estimator, f"set{name}")("a"), f"get{name}")() == "a"
    for name in ("DriverPSNodes", "Tensorboard"):
        assert getattr(getattr(estimator, f"set{name}")(True), f"get{name}")() is True
    assert TFModel({}).setTagSet("serve").getTagSet() == "serve" and TFModel({}).getSignatureDefKey() is None
    with pytest.raises(TypeError, match="cluster_size"):
        estimator.setClusterSize("two")
    with pytest.raises(TypeError, match="input_mapping.*expected a dictionary.*not 'x'"):
        estimator.setInputMapping("x")
    with pytest.raises(TypeError):
        TFTypeConverters.toDict([1])
    with pytest.raises(ValueError, match="input_mode"):
        estimator.setInputMode(2)


def test_the_version_of_tensorflow():
    assert TFNode.TF_VERSION == pipeline.TF_VERSION == util.tensorflow_version()
    assert not hasattr(TFNode, "TF_VERSIONS") and not hasattr(pipeline, "TF_VERSIONS")


def test_rows_in_batches():
    assert list(yield_batch([(1, "a"), (2, "b"), (3, "c")], 2, 2)) == [[[1, 2], ["a", "b"]], [[3], ["c"]]]


# -- transforms


def test_outputs_become_columns(models, pairs, way):
    mapping = {"y": "y", "row": "both", "sign": "sign", "is_high": "high"}
    result = model_at(f"{models}/good").setInputMapping({"pair": "x"}).setOutputMapping(mapping).setKeep(["id"]).transform(pairs)
    assert ("Scan transform by" in result._jdf.queryExecution().toString()) == (way == "jvm")
    assert result.dtypes == [("id", "bigint"), ("high", "boolean"), ("both", "array<double>"), ("sign", "bigint"), ("y", "double")]
    assert tuples(result) == [(i, 3 * i + 0.5 > 1, [3 * i + 0.5, 6 * i + 1.0], 1, 3 * i + 0.5) for i in range(25)]


def test_images_of_sparks_source(spark, models, way, tmp_path):
    import tensorflow as tf

    image = tf.reshape(tf.range(18), (2, 3, 3))
    tf.io.write_file(str(tmp_path / "a.png"), tf.io.encode_png(tf.cast(image, tf.uint8)))
    images = spark.read.format("image").load(str(tmp_path)).selectExpr("image.data AS data")
    assert tuples(model_at(f"{models}/good", "pixels").transform(images)) == [(tf.reshape(image[:, :, ::-1], [-1]).numpy().tolist(),)]


def test_only_mapped_columns_are_read(models, pairs):
    from pyspark.sql import functions

    broken = pairs.withColumn("trap", functions.udf(lambda: 1 // 0, "int")())
    model = model_at(f"{models}/good").setInputMapping({"pair": "x"}).setOutputMapping({"y": "y"})
    assert model.transform(broken).columns == ["y"] and model.transform(broken).count() == 25
    assert model.transform(broken).agg({"y": "sum"}).first()[0] == 3 * 300 + 12.5


def test_tensors_and_columns_of_one_name(models, pairs):
    result = model_at(f"{models}/good").transform(pairs.withColumnRenamed("pair", "x"))
    assert result.columns == ["is_high", "row", "sign", "y"] and result.count() == 25


def test_flat_rows_get_the_signatures_shape(models, spark, way):
    frame = spark.range(5).selectExpr("id", "transform(sequence(0, 5), x -> x * id) as flat")
    model = model_at(f"{models}/good", "image").setInputMapping({"flat": "image"}).setOutputMapping({"corner": "corner", "image": "image"}).setKeep(["id"])
    assert tuples(model.transform(frame)) == [(i, 5.0 * i, [[[0.0], [i], [2.0 * i]], [[3.0 * i], [4.0 * i], [5.0 * i]]]) for i in range(5)]


def test_text_and_narrow_integers(models, spark, way):
    frame = spark.createDataFrame([("one", 2), ("é", 1)], "word string, times long")
    model = model_at(f"{models}/good", "text").setInputMapping({"word": "text", "times": "count"}).setOutputMapping({"upper": "loud", "size": "size"})
    assert tuples(model.transform(frame)) == [(2, bytearray("é".encode())), (6, bytearray(b"ONE"))]
    bytes_ = frame.selectExpr("cast(word as binary) as word", "times")
    assert model.transform(bytes_).dtypes == [("size", "bigint"), ("loud", "binary")] and tuples(model.transform(bytes_)) == tuples(model.transform(frame))


def test_ragged_inputs_and_outputs(models, spark):
    frame = spark.createDataFrame([(0, [1, 2, 3]), (1, []), (2, [4])], "id int, numbers array<int>").coalesce(1)
    model = model_at(f"{models}/good", "ragged").setInputMapping({"numbers": "words", "id": "other"}).setKeep(["id"])
    assert tuples(model.setOutputMapping({"sum": "sum", "twice": "twice"}).transform(frame)) == [(0, 6, [2, 4, 6]), (1, 0, []), (2, 4, [8])]


def test_vectors(models, spark, way):
    from pyspark.ml.linalg import Vectors

    rows = [(0, Vectors.dense([1, 0, 2, 0])), (1, Vectors.sparse(4, {3: 5.0})), (2, Vectors.sparse(4, {}))]
    frame = spark.createDataFrame(rows, ["id", "vector"]).coalesce(1)
    model = model_at(f"{models}/good", "sparse").setInputMapping({"vector": "vector"}).setOutputMapping({"sum": "sum"}).setKeep(["id", "vector"])
    assert tuples(model.transform(frame)) == [(0, rows[0][1], 3.0), (1, rows[1][1], 5.0), (2, rows[2][1], 0.0)]
    dense = spark.createDataFrame([(0, Vectors.dense([1, 2])), (1, Vectors.sparse(2, {0: 3.0}))], ["id", "vector"])
    result = model_at(f"{models}/good").setInputMapping({"vector": "x"}).setOutputMapping({"y": "y"}).transform(dense)
    assert tuples(result) == [(4.0,), (9.0,)]


def test_keras_files(models, spark):
    frame = spark.createDataFrame([([1.0, 2.0], 3.0), ([4.0, 5.0], 0.5)], "a array<float>, b float")
    model = model_at(f"{models}/scaled.keras").setInputMapping({"a": "pair", "b": "gain"}).setOutputMapping({"scaled": "scaled", "summed": "summed"})
    assert tuples(model.transform(frame)) == [([2.0, 2.5], [4.5]), ([3.0, 6.0], [9.0])]


@pytest.mark.parametrize("way", ["checkpoint", "tensors", "signature", "original", "original tensors"])
def test_graphs_of_tensorflow_1(models, pairs, way):
    if way == "checkpoint":
        model = TFModel({}).setModelDir(f"{models}/checkpoint")
    else:
        model = model_at(f"{models}/{'original' if way.startswith('original') else 'graph'}").setTagSet("serve")
    names = {"signature": ("x", "got"), "original": ("given", "got")}.get(way, ("x", "y"))
    result = model.setInputMapping({"pair": names[0]}).setOutputMapping({names[1]: "y"}).transform(pairs)
    assert tuples(result) == [(3.0 * i + 3,) for i in range(25)]


def test_a_relative_name_is_one_of_the_drivers_folder(models, pairs, monkeypatch):
    monkeypatch.chdir(models)
    assert tuples(model_at("good").setInputMapping({"pair": "x"}).setOutputMapping({"y": "y"}).transform(pairs))[0] == (0.5,)


def test_a_model_that_was_replaced_is_loaded_anew(models, pairs, tmp_path):
    model = model_at(str(tmp_path / "model")).setInputMapping({"pair": "x"}).setOutputMapping({"y": "y"})
    sums = []
    for name in ("good", "bad", "good"):
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        shutil.copytree(f"{models}/{name}", tmp_path / "model")
        sums.append(model.transform(pairs).agg({"y": "sum"}).first()[0])
    assert sums == [912.5, -75.0, 912.5]


def test_a_worker_loads_a_model_once(models, pairs, monkeypatch, tmp_path):
    """The loaded model stays in Spark's Python worker: tasks of another action find it there. Which worker a task gets is Spark's choice."""
    monkeypatch.setattr(transform, "_goes_by_jvm", lambda *args: False)
    path = shutil.copytree(f"{models}/good", str(tmp_path / "model"))

    def held(batches):
        import pyarrow

        from tensorflowonspark import saved_models

        loaded = [model for (_, place, _), model in saved_models._loaded.items() if place == path]
        vars(saved_models).setdefault("kept_by_test", []).extend(loaded)  # a freed model's identity may be that of the next
        found = {"process": [os.getpid()] * len(loaded), "model": list(map(id, loaded))}
        yield from (pyarrow.RecordBatch.from_pydict(found, pyarrow.schema([("process", "int64"), ("model", "int64")])) for _ in batches)

    model = model_at(path).setInputMapping({"pair": "x"}).setOutputMapping({"y": "y"})
    rounds = []

    def has_asked_one_twice():
        model.transform(pairs).collect()
        rounds.append({tuple(row) for row in pairs.select("id").mapInArrow(held, "process long, model long").collect()})
        processes = [process for found in rounds for process in dict(found)]
        return len(set(processes)) < len(processes)

    wait_until(has_asked_one_twice, what="a worker in two rounds")
    seen = set().union(*rounds)
    assert len(seen) == len(dict(seen))


# -- what is refused


@pytest.mark.parametrize("change, words", [
    (lambda m: m.setExportDir(None), "set export_dir"),
    (lambda m: m.setExportDir("/none/there"), "there is no model at '/none/there'"),
    (lambda m: m.setExportDir(os.path.dirname(m.getExportDir())), "is no SavedModel.*it has 'bad/?', 'checkpoint"),
    (lambda m: m.setExportDir(f"{os.path.dirname(m.getExportDir())}/damaged"), "damaged' is no SavedModel: its saved_model.pb cannot be read"),
    (lambda m: m.setSignatureDefKey("predict"), "no signature 'predict'; it has 'serving_default', 'image'"),
    (lambda m: m.setTagSet("gpu"), "tag_set.*no graph 'gpu'; it has 'serve'"),
    (lambda m: m.setInputMapping({"pair": "z"}), "no input 'z'; it has 'x'"),
    (lambda m: m.setOutputMapping({"z": "y"}), "no output 'z'; it has .*'y'"),
    (lambda m: m.setInputMapping({"none": "x"}), "input_mapping: there is no column 'none'; the DataFrame has 'id'"),
    (lambda m: m.setInputMapping({"pair": "x", "id": "x"}), "leads twice to 'x'"),
    (lambda m: m.setKeep(["y"]), "keep: there is no column 'y'"),
    (lambda m: m.setKeep(["id"]).setOutputMapping({"y": "id"}), "both have a column 'id'"),
    (lambda m: m.setSignatureDefKey("text").setInputMapping({"other": "text"}).setOutputMapping({"size": "y"}), "also needs input 'count'"),
    (lambda m: m.setBatchSize(0), "batch_size"),
])  # fmt: skip
def test_what_cannot_be_transformed_is_said_before_any_row_is_read(models, pairs, change, words):
    model = model_at(f"{models}/good").setInputMapping({"pair": "x"}).setOutputMapping({"y": "y"})
    with pytest.raises(ValueError, match=words) as caught:
        change(model).transform(pairs)
    assert "\n" not in str(caught.value)


def test_a_module_that_executors_lack_is_named(monkeypatch):
    monkeypatch.setattr(transform, "open_model", lambda request: importlib.import_module("tensorflow_no_such_module"))
    answer = transform._Look(ModelRequest("/model", None, None, None, (), (), 0))._answer(None)["error"]
    assert re.match("the model in '/model' cannot be used on this executor: .* has no module 'tensorflow_no_.*install 'tensorflow_no_.*' there", answer), answer
    assert "\n" not in answer


@pytest.mark.parametrize("column, signature, tensor, output, words", [
    ("array(1.0, 2.0, 3.0)", None, "x", "y", r"column 'c' has rows of shape \(3\), and input 'x' takes \(2\)"),
    ("'text'", None, "x", "y", "column 'c' has text or bytes, and input 'x' takes float32"),
    ("cast(null as array<double>)", None, "x", "y", "column 'c' has a null"),
    ("struct(1 as a)", None, "x", "y", "no tensor holds"),
    ("array(1, 2)", "total", "x", "sum", r"gives 1 rows in output 'sum' for \d+ rows"),
    ("array(1, 2)", "total", "x", "all", r"gives one value in output 'all' for \d+ rows"),
])  # fmt: skip
def test_what_a_model_cannot_take_or_give_names_the_column(models, spark, way, column, signature, tensor, output, words):
    frame = spark.range(0, 3, 1, 1).selectExpr(f"{column} as c")
    model = model_at(f"{models}/good", signature).setInputMapping({"c": tensor}).setOutputMapping({output: "y"})
    with pytest.raises(Exception, match=words):
        model.transform(frame).collect()


def test_integers_that_do_not_fit_are_refused(models, spark, way):
    frame = spark.sql("select 'a' as word, 5000000000 as times")
    model = model_at(f"{models}/good", "text").setInputMapping({"word": "text", "times": "count"}).setOutputMapping({"size": "size"})
    with pytest.raises(Exception, match="column 'times' has 5000000000, which is no int32"):
        model.transform(frame).collect()


# -- fits


def copy_model(args, ctx):
    """A training function: counts what it is fed, and exports the model that args.steps chooses."""
    import os
    import shutil

    from tensorflowonspark import TFNode

    feed, rows = TFNode.DataFeed(ctx.mgr, input_mapping=args.input_mapping), 0
    while not feed.should_stop():
        batch = feed.next_batch(args.batch_size)
        rows += len(batch["x"])
    if ctx.job_name == "chief":
        shutil.rmtree(args.export_dir, ignore_errors=True)
        shutil.copytree(f"{args.models}/{'good' if args.steps == 2 else 'bad'}", args.export_dir)
        with open(os.path.join(args.export_dir, "rows"), "w") as file:
            file.write(f"{rows} {sorted(batch)}")


@pytest.fixture(scope="module")
def labelled(spark):
    return spark.createDataFrame([([float(i), 1.0], 3 * i + 0.5) for i in range(20)], "pair array<double>, label double")


def estimator_for(models, folder):
    return (TFEstimator(local(copy_model), {"models": models}).setExportDir(str(folder / "export")).setInputMapping({"pair": "x", "label": "y_"})
            .setModelInputMapping({"pair": "x"}).setOutputMapping({"y": "prediction"}).setKeep(["label"]).setGraceSecs(0).setSteps(2))


@pytest.mark.long
def test_fit_in_a_pipeline_that_is_saved_and_loaded(models, labelled, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    pipeline = Pipeline(stages=[estimator_for(models, tmp_path).setEpochs(2)])
    pipeline.write().overwrite().save(str(tmp_path / "pipeline"))
    fitted = Pipeline.load(str(tmp_path / "pipeline")).fit(labelled)
    assert (tmp_path / "export" / "rows").read_text() == "40 ['x', 'y_']"
    fitted.save(str(tmp_path / "fitted"))
    for model in (fitted, PipelineModel.load(str(tmp_path / "fitted"))):
        assert tuples(model.transform(labelled)) == [(3 * i + 0.5, 3 * i + 0.5) for i in range(20)]
    (before,), (after,) = fitted.stages, PipelineModel.load(str(tmp_path / "fitted")).stages
    assert type(after) is TFModel and before.uid == after.uid and before.args == after.args
    assert {p.name: v for p, v in before.extractParamMap().items()} == {p.name: v for p, v in after.extractParamMap().items()}


def test_arguments_are_saved_as_json_or_pickled(spark, tmp_path):
    for i, args in enumerate([{"a": [1, "x"]}, ["--a", "1"], {"a": (1, 2)}, argparse.Namespace(b=b"bytes")]):
        model = TFModel(args).setInputMapping({"a": "b"}).setExportDir(None)
        model.save(str(tmp_path / str(i)))
        assert TFModel.load(str(tmp_path / str(i))).args == model.args
        saved = next((tmp_path / str(i) / "metadata").glob("part-*")).read_text()
        assert ('"pickle"' in saved) == (i > 1)
    with pytest.raises(ValueError, match="holds a .*TFModel, not a .*TFEstimator"):
        TFEstimator.load(str(tmp_path / "0"))


def test_copies_with_extra_params(models, labelled, tmp_path):
    estimator = estimator_for(models, tmp_path)
    fitted = estimator.fit(labelled, {estimator.steps: 1, estimator.batch_size: 7})
    assert fitted.getBatchSize() == 7 and estimator.getBatchSize() == 100
    assert tuples(fitted.transform(labelled, {fitted.output_mapping: {"sign": "s"}, fitted.keep: []}))[0] == (-1,)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["CrossValidator", "TrainValidationSplit"])
def test_the_best_of_several_fits(models, labelled, tmp_path, kind):
    from pyspark.ml import tuning
    from pyspark.ml.evaluation import RegressionEvaluator

    estimator = estimator_for(models, tmp_path)
    grid = tuning.ParamGridBuilder().addGrid(estimator.steps, [1, 2]).build()
    options = {"numFolds": 2} if kind == "CrossValidator" else {}
    search = getattr(tuning, kind)(estimator=estimator, estimatorParamMaps=grid, evaluator=RegressionEvaluator(metricName="mae"), seed=3, **options)
    search.save(str(tmp_path / "search"))
    fitted = getattr(tuning, kind).load(str(tmp_path / "search")).fit(labelled)
    assert tuples(fitted.transform(labelled)) == [(3 * i + 0.5, 3 * i + 0.5) for i in range(20)]
    fitted.save(str(tmp_path / "fitted"))
    assert getattr(tuning, kind + "Model").load(str(tmp_path / "fitted")).bestModel.getExportDir() == estimator.getExportDir()


def test_a_column_that_is_missing_is_said_before_a_cluster_starts(models, labelled, tmp_path):
    estimator = estimator_for(models, tmp_path).setInputMapping({"pair": "x", "lable": "y_"})
    with pytest.raises(ValueError, match="input_mapping: there is no column 'lable'; the DataFrame has 'pair', 'label'"):
        estimator.fit(labelled)
    with pytest.raises(ValueError, match="tfrecord_dir"):
        estimator_for(models, tmp_path).setInputMode(TFCluster.InputMode.TENSORFLOW).fit(labelled)
    with pytest.raises(ValueError, match="export_dir"):
        TFEstimator(local(copy_model), {}, local(copy_model)).fit(labelled)


def read_by_itself(args, ctx):
    import os

    with open(f"{args.out}/{ctx.task_index}", "w") as file:
        file.write("\n".join([args.tfrecord_dir, *os.listdir(args.tfrecord_dir)]))


def export_alone(args):
    with open(os.path.join(args.export_dir, "exported"), "w") as file:
        file.write(str(args.batch_size))


def test_functions_that_read_records_and_export_by_a_function(sc, labelled, tmp_path):
    out, records = tmp_path / "out", str(tmp_path / "records")
    out.mkdir()
    estimator = (TFEstimator(local(read_by_itself), {"out": str(out)}, local(export_alone)).setInputMode(TFCluster.InputMode.TENSORFLOW)
                 .setExportDir(str(out)).setTFRecordDir(records).setGraceSecs(0).setInputMapping({"label": "y"}))
    estimator.fit(labelled)
    told = (out / "0").read_text().split("\n")
    assert told[0] == records and "_SUCCESS" in told and (out / "exported").read_text() == "100"
    loaded = dfutil.loadTFRecords(sc, records)
    assert loaded.columns == ["label"]
    estimator.setTFRecordDir(None).fit(loaded)
    assert (out / "0").read_text().split("\n")[0] == records


def test_graphs_by_their_tags(models):
    pytest.importorskip("tensorflow")
    assert "serving_default" in get_meta_graph_def(f"{models}/good", "serve").signature_def
    with pytest.raises(RuntimeError, match="no graph with tags 'gpu'"):
        get_meta_graph_def(f"{models}/good", "gpu")

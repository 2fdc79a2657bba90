# SPDX-License-Identifier: Apache-2.0
"""TensorFlow in Spark ML's pipelines: an Estimator that trains on a cluster, and a Model that runs on the executors without one.

``TFEstimator(train_fn, args).fit(df)`` starts a cluster, feeds it the DataFrame and gives a ``TFModel``, whose ``transform(df)`` calls what the training
function has exported. Both go into a ``Pipeline``, a ``CrossValidator`` or a ``TrainValidationSplit``, and are saved and loaded by Spark ML's
writers and readers. docs/pipeline.md has examples.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, Iterator, List, Optional

from pyspark.ml.base import Estimator, Model
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from . import TFCluster, _tfos, dfutil, files, frames, fs, gpus, saved_models, transform
from .arguments import count
from .params import (
    HasBatchSize,
    HasClusterSize,
    HasEpochs,
    HasExportDir,
    HasGraceSecs,
    HasInputMapping,
    HasInputMode,
    HasKeep,
    HasMasterNode,
    HasModelDir,
    HasModelInputMapping,
    HasNumPS,
    HasOutputMapping,
    HasProtocol,
    HasReaders,
    HasSignatureDefKey,
    HasSteps,
    HasTagSet,
    HasTensorboard,
    HasTFRecordDir,
    Namespace,
    TFParams,
    TFTypeConverters,
)
from .results import pack, pickled, unpack
from .sessions import spark_of
from .TFSparkNode import TFNodeContext
from .util import tensorflow_version

__all__ = ["HasBatchSize", "HasClusterSize", "HasEpochs", "HasExportDir", "HasGraceSecs", "HasInputMapping", "HasInputMode", "HasKeep",
           "HasMasterNode", "HasModelDir", "HasModelInputMapping", "HasNumPS", "HasOutputMapping", "HasProtocol", "HasReaders",
           "HasSignatureDefKey", "HasSteps", "HasTFRecordDir", "HasTagSet", "HasTensorboard", "Namespace", "TFEstimator", "TFModel", "TFParams",
           "TFTypeConverters", "get_meta_graph_def", "single_node_env", "yield_batch"]


def __getattr__(name: str) -> Any:
    if name == "TF_VERSION":
        return tensorflow_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# -- saved by Spark ML's writers


class _Stage(TFParams, MLWritable, MLReadable):
    """A stage whose constructor takes arguments: they are saved beside the params."""

    _functions: List[str] = []

    def write(self) -> MLWriter:
        """What saves the stage: its params as Spark ML does, its arguments as JSON where that holds them, and its functions, and other arguments, pickled."""
        return _StageWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        """What loads a stage that was saved. Loading runs what its pickles say: an estimator always has one, its training function. Load none from
        a place where others can write."""
        return _StageReader(cls)


class _StageWriter(MLWriter):
    def __init__(self, stage: _Stage) -> None:
        super().__init__()
        self._stage = stage

    def saveImpl(self, path: str) -> None:
        stage = self._stage
        held = {"args": pack(vars(stage.args)), **{name: pickled(getattr(stage, name)) for name in stage._functions}}
        DefaultParamsWriter.saveMetadata(stage, path, _handle_of(self), extraMetadata={"tfos": held})


class _StageReader(MLReader):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, _handle_of(self))
        name = f"{self._kind.__module__}.{self._kind.__qualname__}"
        if metadata["class"] != name or "tfos" not in metadata:
            raise ValueError(f"{path!r} holds a {metadata['class']}, not a {name}: load it by that class")
        held = {name: unpack(value) for name, value in metadata["tfos"].items()}
        stage = self._kind(**{"tf_args": held.pop("args"), **held})
        stage._resetUid(metadata["uid"])
        stage._setDefault(**metadata["defaultParamMap"])
        return stage._set(**metadata["paramMap"])


def _handle_of(access: Any) -> Any:
    """What the functions of Spark ML take of a reader or writer: the context in Spark 3.5, the session later."""
    import pyspark

    return access.sc if pyspark.__version__.startswith("3.") else access.sparkSession


# -- training


class TFEstimator(Estimator, _Stage, HasInputMapping, HasClusterSize, HasNumPS, HasInputMode, HasMasterNode, HasProtocol, HasGraceSecs,
                  HasTensorboard, HasModelDir, HasExportDir, HasTFRecordDir, HasBatchSize, HasEpochs, HasReaders, HasSteps,
                  HasOutputMapping, HasModelInputMapping, HasKeep, HasSignatureDefKey, HasTagSet):
    """Trains on a cluster.

    ``fit(df)`` starts ``cluster_size`` nodes that run ``train_fn(args, ctx)``, feeds them the columns that ``input_mapping`` names (all, if it names
    none) and gives a :class:`TFModel` with the params that both have. ``args`` has the params too, by their names; a list of arguments (``argv``) is
    passed as it is. With ``DataFeed(ctx.mgr, input_mapping=args.input_mapping)`` the function reads by the tensors' names.

    In a Pipeline the model transforms right after the fit: ``output_mapping``, ``model_input_mapping``, ``keep``, ``signature_def_key`` and ``tag_set`` are
    for it. Fits that run at a time, such as a ``CrossValidator``'s with ``parallelism``, need an ``export_dir`` each, and executors for all their nodes.

    Args:
        train_fn: the training function; it must be picklable by cloudpickle.
        tf_args: its arguments: a dictionary, an ``argparse.Namespace`` or a list, which becomes ``sys.argv`` on the nodes.
        export_fn: called with the same arguments on one executor when the training is over; ``export_dir`` must be set.

    With ``InputMode.TENSORFLOW`` the DataFrame is written as TFRecord files to ``tfrecord_dir``, which the function reads by itself; a DataFrame of
    ``dfutil.loadTFRecords`` is not written again.
    """

    _functions = ["train_fn", "export_fn"]

    def __init__(self, train_fn: Any, tf_args: Any, export_fn: Any = None) -> None:
        super().__init__()
        self.train_fn = train_fn
        self.export_fn = export_fn
        self.args = Namespace(tf_args)
        self._setDefault(input_mapping={}, cluster_size=1, num_ps=0, driver_ps_nodes=False, input_mode=TFCluster.InputMode.SPARK, master_node="chief",
                         protocol="grpc", tensorboard=False, model_dir=None, export_dir=None, tfrecord_dir=None, batch_size=100, epochs=1, readers=1,
                         steps=1000, grace_secs=30, output_mapping={}, model_input_mapping=None, keep=[], tag_set=None)

    def _fit(self, dataset: Any) -> "TFModel":
        args = self.merge_args_params()
        if self.export_fn is not None and not args.export_dir:
            raise ValueError("export_fn exports to export_dir: set that (setExportDir)")
        columns = sorted(self.getInputMapping()) or None
        data = frames.select(dataset, columns, "input_mapping")
        is_fed = self.getInputMode() == TFCluster.InputMode.SPARK
        if not is_fed:
            args.tfrecord_dir = _record_folder(dataset, data, args.tfrecord_dir)
        tf_args = self.args.argv or args
        with TFCluster.run(dataset.sparkSession, self.train_fn, tf_args, args.cluster_size, args.num_ps, args.tensorboard, args.input_mode,
                           driver_ps_nodes=args.driver_ps_nodes, master_node=args.master_node) as cluster:
            if is_fed:
                cluster.train(dataset, args.epochs, columns=columns)
            cluster.shutdown(grace_secs=args.grace_secs)
        if self.export_fn is not None:
            spark = spark_of(dataset.sparkSession)
            spark.launch(spark.nodes(range(1)), _ExportTask(self.export_fn, tf_args))
        model = self._copyValues(TFModel(self.args))
        if self.getModelInputMapping() is not None:
            model.setInputMapping(self.getModelInputMapping())
        return model._resetUid(self.uid)


def _record_folder(dataset: Any, data: Any, folder: Optional[str]) -> str:
    """The folder of TFRecord files with the data, which are written unless the DataFrame was made of some."""
    if dfutil.isLoadedDF(dataset):
        return dfutil.loadedDF[dataset]
    if not folder:
        raise ValueError("InputMode.TENSORFLOW needs tfrecord_dir, a new folder in which the data is written for the nodes to read (setTFRecordDir)")
    dfutil.saveAsTFRecords(data, folder)
    return folder


class _ExportTask:
    """Runs ``export_fn`` in a task of Spark's."""

    def __init__(self, function: Any, args: Any) -> None:
        self._function = function
        self._args = args

    def __call__(self, numbers: Iterable[int]) -> None:
        for _ in numbers:
            single_node_env(self._args)
            self._function(self._args)


# -- inference


class TFModel(Model, _Stage, HasInputMapping, HasOutputMapping, HasBatchSize, HasModelDir, HasExportDir, HasSignatureDefKey, HasTagSet, HasKeep):
    """A trained model on the columns of a DataFrame.

    ``transform(df)`` gives a DataFrame with a column for each output that ``output_mapping`` (``{tensor: column}``) names, in the order of the tensors'
    names, behind the columns that ``keep`` names. ``input_mapping`` (``{column: tensor}``) names the inputs; no other column is read. A mapping that is
    empty takes every tensor under its own name. Rows are flat arrays in Spark: they get the shape that the signature says.

    The model is the SavedModel or ``.keras`` file at ``export_dir``, else at ``model_dir``, which all executors must see; a relative name is one of the
    driver's folder, or of the user's home on HDFS, as ``ctx.absolute_path`` takes it. A SavedModel runs in the executors' JVMs where that is possible, and
    else, as other models, in Python workers. Each executor, or worker, loads it once, with the rows of its first task, and anew when another has been
    written there. Without a ``signature_def_key``, and of a checkpoint of
    TensorFlow 1 in ``model_dir``, the tensors may also be ones of the graph.

    Args:
        tf_args: ``num_gpus`` of it says how many GPUs a worker takes: one, if there is one, unless it says 0.
    """

    def __init__(self, tf_args: Any) -> None:
        super().__init__()
        self.args = Namespace(tf_args)
        self._setDefault(input_mapping={}, output_mapping={}, batch_size=100, model_dir=None, export_dir=None, signature_def_key=None, tag_set=None, keep=[])

    def _transform(self, dataset: Any) -> Any:
        export_dir, model_dir = (_for_all(dataset, name) for name in (self.getExportDir(), self.getModelDir()))
        request = saved_models.ModelRequest(export_dir, model_dir, self.getTagSet(), self.getSignatureDefKey(), (), (),
                                            gpus.requested(self.args))
        batch_size = count("batch_size", self.getBatchSize(), 1)
        return transform.transform(dataset, request, batch_size, self.getInputMapping(), self.getOutputMapping(), self.getKeep())


def _for_all(frame: Any, name: Optional[str]) -> Optional[str]:
    """The folder as all executors know it: a relative name means what ``ctx.absolute_path`` makes of it."""
    if name is None or name.startswith("/") or _tfos.split_uri(name)[0]:
        return name
    default_fs = files.before_slash(spark_of(frame.sparkSession).default_fs())
    path = TFNodeContext(defaultFS=default_fs, working_dir=os.getcwd()).absolute_path(name)
    return path[len("file://"):] if path.startswith("file://") else path


# -- what TensorFlowOnSpark has beside them


def single_node_env(args: Any) -> None:
    """Prepares this process for TensorFlow alone: ``sys.argv`` of a list, GPUs as ``args.num_gpus`` says (one, if it says nothing), and Hadoop's files."""
    argv = args if isinstance(args, list) else getattr(args, "argv", None)
    if argv:
        sys.argv = argv
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus.take(gpus.requested(args)))
    fs.register_on_import()


def get_meta_graph_def(saved_model_dir: str, tag_set: str) -> Any:
    """The MetaGraphDef of a SavedModel with exactly these tags, divided by commas.

    Raises:
        RuntimeError: there is none.
    """
    import tensorflow as tf

    for graph in saved_models.graphs_of(tf, saved_model_dir):
        if set(graph.meta_info_def.tags) == set(tag_set.split(",")):
            return graph
    raise RuntimeError(f"the SavedModel in {saved_model_dir!r} has no graph with tags {tag_set!r}")


def yield_batch(iterable: Iterable[Any], batch_size: int, num_tensors: int = 1) -> Iterator[List[List[Any]]]:
    """The rows in batches of columns: lists of the first ``num_tensors`` values of ``batch_size`` rows, fewer at the end."""
    rows: List[Any] = []
    for row in iterable:
        if row is None:
            break
        rows.append(row)
        if len(rows) == batch_size:
            yield [[row[i] for row in rows] for i in range(num_tensors)]
            rows = []
    if rows:
        yield [[row[i] for row in rows] for i in range(num_tensors)]

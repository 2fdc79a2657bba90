# SPDX-License-Identifier: Apache-2.0
"""A trained model on the columns of a DataFrame, without a cluster.

The signature of a SavedModel runs in Spark's JVMs, by TensorFlow's C library, where tfos.jar can be loaded. Else, and where only Python can run a model
or its inputs, Spark's Python workers load it and call it on Arrow batches.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _tfos, frames, jobs
from .failures import advice, sendable, text_of
from .saved_models import ModelRequest, import_tensorflow, open_model
from .sessions import spark_of

logger = logging.getLogger(__name__)

__all__ = ["transform"]

_OUTPUT_SIZE = 8 << 20  # bytes of results that go to Spark as one batch


class _Output(NamedTuple):
    """A result's column."""

    tensor: str
    column: str
    type: str  #: of its values, as Spark names it
    depth: int  #: levels of lists


def transform(frame: Any, request: ModelRequest, batch_size: int, input_mapping: Mapping[str, str], output_mapping: Mapping[str, str],
              keep: Sequence[str]) -> Any:
    """A DataFrame of the kept columns and the model's outputs. A Spark task looks at the model now; nothing else runs before an action does.

    Raises:
        ValueError: a mapping names a column or a tensor that is not there, or the model cannot be loaded.
    """
    _check_mapping("input_mapping", input_mapping)
    _check_mapping("output_mapping", output_mapping)
    kept = frames.names_of(frame) if list(keep) == ["*"] else list(keep)
    if kept:
        frames.select(frame, kept, "keep")
    if input_mapping:
        frames.select(frame, sorted(input_mapping), "input_mapping")
    request = request._replace(inputs=tuple(tensor for _, tensor in sorted(input_mapping.items())), outputs=tuple(sorted(output_mapping)))
    signature = _look_at(frame, request)
    native = signature.get("native")
    inputs = sorted(input_mapping.items()) or [(name, name) for name in sorted(signature["inputs"])]
    frames.select(frame, [column for column, _ in inputs], "input_mapping")
    named = sorted(output_mapping.items()) or [(name, name) for name in sorted(signature["outputs"])]
    request = request._replace(inputs=tuple(tensor for _, tensor in inputs), outputs=tuple(tensor for tensor, _ in named))
    _check_clashes(kept, [column for _, column in named])
    source = _source(frame, native) if native and _goes_by_jvm(frame, [column for column, _ in inputs]) else None
    if source is not None:
        outputs = [_Output(tensor, column, *signature["outputs"][tensor]) for tensor, column in named]
        return _by_jvm(frame, native, source, batch_size, inputs, outputs, kept)
    needed = list(dict.fromkeys([*(column for column, _ in inputs), *kept]))
    # mapInArrow() takes names with dots and backticks apart.
    plain = frames.select(frame, needed).toDF(*(f"c{i}" for i in range(len(needed))))
    if any(signature["outputs"][tensor][1] is None for tensor, _ in named):
        signature["outputs"].update(_ranks(plain, request, inputs, needed, named, signature["outputs"]))
    outputs = [_Output(tensor, column, *signature["outputs"][tensor]) for tensor, column in named]
    task = TransformTask(request, batch_size, [(needed.index(column), column, tensor) for column, tensor in inputs],
                         [needed.index(column) for column in kept], outputs)
    return plain.mapInArrow(task, _schema(frame, kept, outputs)).toDF(*kept, *(output.column for output in outputs))


def _check_mapping(argument: str, mapping: Mapping[str, str]) -> None:
    for entry in mapping.items():
        if not all(isinstance(name, str) for name in entry):
            raise ValueError(f"{argument} must map names to names, not {entry[0]!r} to {entry[1]!r}")
    values = sorted(mapping.values())
    twice = next((name for name, other in zip(values, values[1:]) if name == other), None)
    if twice is not None:
        raise ValueError(f"{argument} leads twice to {twice!r}: {mapping!r}")


def _check_clashes(kept: List[str], results: List[str]) -> None:
    both = next((name for name in results if name in kept), None)
    if both is not None:
        raise ValueError(f"keep and output_mapping both have a column {both!r}; rename one")


def _result_fields(outputs: List[_Output]) -> List[Any]:
    from pyspark.sql import types

    spark_types = {"double": types.DoubleType(), "long": types.LongType(), "boolean": types.BooleanType(), "binary": types.BinaryType()}
    fields = []
    for output in outputs:
        type_: Any = spark_types[output.type]
        for _ in range(output.depth):
            type_ = types.ArrayType(type_)
        fields.append(types.StructField(output.column, type_))
    return fields


def _schema(frame: Any, kept: List[str], outputs: List[_Output]) -> Any:
    from pyspark.sql import types

    fields = [*(frame.schema[name] for name in kept), *_result_fields(outputs)]
    return types.StructType([types.StructField(f"c{i}", field.dataType, field.nullable, field.metadata) for i, field in enumerate(fields)])


# -- in Spark's JVMs


def _goes_by_jvm(frame: Any, columns: List[str]) -> bool:
    if frame.isStreaming or not frames.can_use_jvm(frame, must=False):
        return False
    try:
        _tfos.check_spark_schema(frames.schema_of(frames.select(frame, columns)))
    except _tfos.UnsupportedError:
        return False
    return True


def _source(frame: Any, native: Dict[str, Any]) -> Any:
    """Where executors load the model from; None where TensorFlow reads a file system that Hadoop does not know."""
    from py4j.protocol import Py4JJavaError

    session = frame.sparkSession
    sc = session.sparkContext
    threads = int(sc.getConf().get("spark.task.cpus", "1"))
    try:
        return sc._jvm.org.tfos.ModelSource(session._jsparkSession.sqlContext(), native["path"], native["is_local"], json.dumps(native["tags"]),
                                            threads, sc.pythonExec)
    except Py4JJavaError as error:
        logger.warning("%s is read by Python workers, which is slower: %s", native["path"], str(error.java_exception))
        return None


def _input_columns(frame: Any, names: List[str]) -> List[Any]:
    """The columns, decimals as the nearest doubles."""
    from pyspark.sql import functions

    columns = []
    for field in json.loads(frames.schema_of(frames.select(frame, names)))["fields"]:
        type_, depth = field["type"], 0
        while isinstance(type_, dict) and type_["type"] == "array":
            type_, depth = type_["elementType"], depth + 1
        column = functions.col(frames.quoted(field["name"]))
        if str(type_).startswith("decimal"):
            column = column.cast("array<" * depth + "double" + ">" * depth)
        columns.append(column.alias(field["name"]))
    return columns


def _by_jvm(frame: Any, native: Dict[str, Any], source: Any, batch_size: int, inputs: List[Tuple[str, str]], outputs: List[_Output],
            kept: List[str]) -> Any:
    from pyspark.sql import DataFrame, functions, types

    session = frame.sparkSession
    columns = _input_columns(frame, [column for column, _ in inputs])
    plan = fed = frame.select(*columns)
    if kept:
        # Two rows in one: a batch has no more than what is fed.
        plan = frame.select(functions.struct(*columns).alias("fed"), functions.struct(*map(frames.quoted, kept)).alias("kept"))
    results = types.StructType(_result_fields(outputs)).json()
    signature = {
        "schema": frames.schema_of(fed), "results": results,
        "inputs": [{"name": tensor, "column": column, **native["inputs"][tensor]} for column, tensor in inputs],
        "outputs": [{"name": output.tensor, "column": output.column, **native["outputs"][output.tensor]} for output in outputs],
    }
    relation = session.sparkContext._jvm.org.tfos.TransformRelation(
        session._jsparkSession.sqlContext(), plan._jdf.queryExecution(), bool(kept), source, json.dumps(signature), results, batch_size,
        f"transform by {native['path']}")
    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)


def _look_at(frame: Any, request: ModelRequest) -> dict:
    """The model's inputs, and of its outputs type and depth; None: not known."""
    return _ask(frame.sparkSession.range(0, 1, 1, 1), _Look(request))


def _ranks(plain: Any, request: ModelRequest, inputs: List[Tuple[str, str]], needed: List[str], named: List[Tuple[str, str]],
           known: Dict[str, Any]) -> Dict[str, Any]:
    """The outputs' type and depth, as a row shows them; single values where the DataFrame has none."""
    places = [(needed.index(column), column, tensor) for column, tensor in inputs]
    found = _ask(plain.limit(1), _Try(request, places))
    return found or {tensor: (known[tensor][0], known[tensor][1] or 0) for tensor, _ in named}


def _ask(frame: Any, task: Any) -> Any:
    """What the task answers, in a Spark job of one row.

    Raises:
        ValueError: what it could not do.
        tensorflowonspark.errors.Error: the executors lack this package.
    """
    answers: List[Any] = []
    job = jobs.SparkJob(spark_of(frame.sparkSession), "what the model is", lambda: answers.extend(frame.mapInArrow(task, "text string").collect()))
    try:
        job.run()
    except Exception as error:  # Spark's own, of a class that depends on its version
        text = jobs.brief(error)
        advice = jobs.advice(text)
        if not advice:
            raise
        raise _tfos.Error(f"transform() cannot look at the model on an executor: {text}{advice}") from error
    answer = json.loads(answers[0][0]) if answers else {}
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


class _Look:
    """Loads the model and returns its signature; for ``mapInArrow``."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_pydict({"text": [json.dumps(self._answer(batch))]})

    def _answer(self, batch: Any) -> dict:
        try:
            return self._tell(batch)
        except ValueError as error:
            return {"error": text_of(error)}
        except Exception as error:
            where = self._request.export_dir or self._request.model_dir
            text = f"the model in {where!r} cannot be used on this executor: {type(error).__name__}: {text_of(error)}. {advice(error)}"
            return {"error": text.rstrip(". \n")}

    def _tell(self, batch: Any) -> dict:
        from .tensors import result_type

        tf = import_tensorflow(self._request.num_gpus)
        model = open_model(self._request)
        outputs = {}
        for name in self._request.outputs or model.outputs:
            spec = model.outputs[name]
            try:
                type_ = _TYPES[str(result_type(spec.dtype))]
            except ValueError as error:
                raise ValueError(f"output {name!r} of the model cannot be a column: {error}") from None
            outputs[name] = (type_, None if spec.rank is None else max(0, spec.rank - 1))
        return {"inputs": list(model.inputs), "outputs": outputs, "native": _native(tf, model, self._request, outputs)}


def _native(tf: Any, model: Any, request: ModelRequest, outputs: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """What TensorFlow's C library needs to call the model without a GPU; None where that cannot be."""
    graph, ends = model.graph, {name: model.outputs[name] for name in outputs}
    if graph is None or (request.num_gpus != 0 and tf.config.list_physical_devices("GPU")):
        return None
    if any(spec.form != "dense" or spec.shape == () or spec.dtype.name not in _NATIVE_TYPES for spec in model.inputs.values()):
        return None
    if any(spec.rank is None or spec.dtype.name not in _NATIVE_TYPES for spec in ends.values()):
        return None
    head, place = _tfos.split_uri(graph.path)
    is_local = head.lower() in ("", "file:", "file://", "file://localhost")
    shapes = {name: spec.shape and [-1 if size is None else size for size in spec.shape] for name, spec in model.inputs.items()}
    return {
        "path": place if is_local else graph.path, "is_local": is_local, "tags": graph.tags,
        "inputs": {name: {"tensor": graph.inputs[name], "shape": shape} for name, shape in shapes.items()},
        "outputs": {name: {"tensor": graph.outputs[name], "rank": spec.rank} for name, spec in ends.items()},
    }


class _Try(_Look):
    """Calls the model with a row, to see what it gives."""

    def __init__(self, request: ModelRequest, inputs: List[Tuple[int, str, str]]) -> None:
        super().__init__(request)
        self._inputs = inputs

    def _tell(self, batch: Any) -> dict:
        from .tensors import result_type

        model = open_model(self._request)
        results = _call(import_tensorflow(self._request.num_gpus), model, batch, self._inputs, self._request.outputs)
        depths = {name: len(part.splits) + max(0, part.values.ndim - 1) for name, part in results.items()}
        return {name: (_TYPES[str(result_type(model.outputs[name].dtype))], depth) for name, depth in depths.items()}


_TYPES = {"double": "double", "int64": "long", "bool": "boolean", "binary": "binary"}
_NATIVE_TYPES = {"bool", "float32", "float64", "string", *(f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64))}
_ARROW_TYPES = {spark: arrow for arrow, spark in _TYPES.items()}


def _call(tf: Any, model: Any, batch: Any, inputs: List[Tuple[int, str, str]], names: Sequence[str]) -> Dict[str, Any]:
    """The named outputs for the rows of a batch.

    Raises:
        ValueError: a column does not fit its input, or an output has another number of rows.
    """
    from .tensors import input_of, parts_of, row_count

    tensors = {tensor: input_of(tf, batch.column(place), model.inputs[tensor], (column, tensor)) for place, column, tensor in inputs}
    results = model.call(tensors)
    parts = {name: parts_of(tf, results[name]) for name in names}
    for name, part in parts.items():
        count: Optional[int] = row_count(part)
        if count != batch.num_rows:
            found = "one value" if count is None else f"{count} rows"
            raise ValueError(f"the model gives {found} in output {name!r} for {batch.num_rows} rows: each row needs a result")
    return parts


class TransformTask:
    """A partition's batches through the model; for ``mapInArrow``. ``inputs`` are place, column and tensor; ``kept`` places of columns that stay."""

    def __init__(self, request: ModelRequest, batch_size: int, inputs: List[Tuple[int, str, str]], kept: List[int], outputs: List[_Output]) -> None:
        self._request = request
        self._batch_size = batch_size
        self._inputs = inputs
        self._kept = kept
        self._outputs = outputs
        self._names = [f"c{i}" for i in range(len(kept) + len(outputs))]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        with sendable():
            for batch in batches:
                yield from self._results(batch)

    def _results(self, batch: Any) -> Iterator[Any]:
        """The batch's results, in pieces of a limited size."""
        import pyarrow as pa

        from .tensors import joined

        if not batch.num_rows:
            return
        model = open_model(self._request)  # it is loaded where there is a row
        tf = import_tensorflow(self._request.num_gpus)
        types = [pa.type_for_alias(_ARROW_TYPES[output.type]) for output in self._outputs]
        pieces: List[Dict[str, Any]] = []
        begin = size = 0
        for first in range(0, batch.num_rows, self._batch_size):
            rows = batch.slice(first, self._batch_size)
            parts = _call(tf, model, rows, self._inputs, self._request.outputs)
            pieces.append(parts)
            size += sum(part.values.nbytes for part in parts.values())
            end = first + rows.num_rows
            if size < _OUTPUT_SIZE and end < batch.num_rows:
                continue
            columns = [joined([parts[output.tensor] for parts in pieces], type_, output.depth, output.tensor) for output, type_ in zip(self._outputs, types)]
            kept = [batch.column(place).slice(begin, end - begin) for place in self._kept]
            yield pa.RecordBatch.from_arrays([*kept, *columns], names=self._names)
            pieces, begin, size = [], end, 0

# SPDX-License-Identifier: Apache-2.0
"""Inference on DataFrames: rows go to the trainers and results come back, without row objects.

As in training, Spark's JVMs feed by themselves where tfos.jar can be loaded, and make rows of the results; else, and where results are objects
that only Python can read, Arrow batches go through Python workers.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Deque, Iterator, List, Optional, Sequence, Union

from . import _tfos, frames, launch

__all__ = ["infer"]

_AHEAD_ROWS = 1 << 14  # rows before the trainer at most while columns are kept for them


def infer(meta: launch.ClusterMeta, frame: Any, feed: int, timeout_ms: int, queue: str, output_schema: Any,
          keep: Union[None, str, Sequence[str]] = None, columns: Union[None, str, Sequence[str]] = None, via: Optional[str] = None) -> Any:
    """A DataFrame of the trainers' results beside the kept columns; nothing runs before an action does.

    Args:
        meta: the cluster.
        frame: the DataFrame.
        feed: number of the inference.
        timeout_ms: how long a node may take no row and give no result.
        queue: name of the queue.
        output_schema: a StructType or DDL text: names and types of the results' columns.
        keep: names of the DataFrame's columns to keep, before the results.
        columns: names of those to feed; None: all.
        via: "jvm", "arrow", or None for the first of them that is possible.

    Raises:
        ValueError: an argument is wrong, a column does not exist, two have one name, or a type has no form in Arrow.
        tensorflowonspark.errors.UnsupportedError: a column's type cannot be fed, or "jvm" is not possible.
    """
    if via not in frames.WAYS:
        raise ValueError(f"via must be None, 'jvm' or 'arrow', not {via!r}")
    if frame.isStreaming:
        raise ValueError("inference() takes no streaming DataFrame; infer on each batch of writeStream.foreachBatch")
    results = _parsed(frame, output_schema)
    fed = frames.select(frame, columns)
    _tfos.check_spark_schema(frames.schema_of(fed))
    kept = frames.select(frame, keep, "keep") if keep else None
    _check_clashes(frame, frames.names_of(kept) if kept else [], results.names)
    if _goes_by_jvm(frame, results, via):
        return _by_jvm(meta, frame, feed, timeout_ms, queue, results, fed, kept)
    return _by_arrow(meta, frame, feed, timeout_ms, queue, results, fed, kept)


def _goes_by_jvm(frame: Any, results: Any, via: Optional[str]) -> bool:
    if via == "arrow":
        return False
    try:
        _tfos.check_result_schema(results.json())
    except _tfos.UnsupportedError:
        if via == "jvm":
            raise
        return False
    return frames.can_use_jvm(frame, must=via == "jvm")


def _by_jvm(meta: launch.ClusterMeta, frame: Any, feed: int, timeout_ms: int, queue: str, results: Any, fed: Any, kept: Any) -> Any:
    from pyspark.sql import DataFrame, functions

    session = frame.sparkSession
    declared = results.json()
    options = frames.feeder_options(meta, feed, timeout_ms, queue, frames.schema_of(fed), results=declared, ahead_rows=_AHEAD_ROWS if kept else 0)
    plan = fed
    if kept is not None:
        # Two rows in one: what is fed leaves the task, and what is kept is no more than that.
        plan = frame.select(*(functions.struct(*map(frames.quoted, frames.names_of(part))).alias(name) for name, part in (("fed", fed), ("kept", kept))))
    relation = session.sparkContext._jvm.org.tfos.InferenceRelation(
        session._jsparkSession.sqlContext(), plan._jdf.queryExecution(), kept is not None, options, declared,
        f"inference {feed} of cluster {meta.cluster_id}")
    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)


def _by_arrow(meta: launch.ClusterMeta, frame: Any, feed: int, timeout_ms: int, queue: str, results: Any, fed: Any, kept: Any) -> Any:
    from pyspark.sql.types import StructField, StructType

    arrow = [_arrow_field(field, "output_schema") for field in results.fields]
    kept_fields = kept.schema.fields if kept is not None else []
    for argument, fields in (("columns", fed.schema.fields), ("keep", kept_fields)):
        for field in fields:
            _arrow_field(field, argument)
    needed = list(dict.fromkeys([*fed.columns, *(field.name for field in kept_fields)]))
    task = InferenceTask(meta, feed, timeout_ms, queue, fed.columns, [needed.index(field.name) for field in kept_fields], arrow)
    # mapInArrow() takes names with dots and backticks apart.
    plain = frames.select(frame, needed).toDF(*(f"c{i}" for i in range(len(needed))))
    outputs = [*kept_fields, *results.fields]
    schema = StructType([StructField(f"c{i}", field.dataType, field.nullable, field.metadata) for i, field in enumerate(outputs)])
    return plain.mapInArrow(task, schema).toDF(*(field.name for field in outputs))


def _parsed(frame: Any, schema: Any) -> Any:
    """The declared columns of the results."""
    from pyspark.sql import types

    if schema is None:
        raise ValueError("inference() of a DataFrame needs output_schema, such as 'label int, score double'")
    if isinstance(schema, str):
        schema = frames.parse_type(frame, schema)
    if not isinstance(schema, types.StructType):
        raise ValueError(f"output_schema must be a StructType or text such as 'label int, score double', not {schema!r}")
    if not schema.fields:
        raise ValueError("output_schema has no column: each row has a result")
    return schema


def _check_clashes(frame: Any, kept: List[str], results: List[str]) -> None:
    is_exact = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    seen = {name if is_exact else name.lower() for name in kept}
    for name in results:
        key = name if is_exact else name.lower()
        if key in seen:
            where = "keep and output_schema both have" if name in kept or name.lower() in map(str.lower, kept) else "output_schema has twice"
            raise ValueError(f"inference(): {where} a column {name!r}; rename one")
        seen.add(key)


def _arrow_field(field: Any, argument: str) -> Any:
    """The field as Arrow has it.

    Raises:
        ValueError: Arrow, or Spark's use of it, has no such type.
    """
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        try:
            type_ = to_arrow_type(field.dataType, timezone="UTC")
        except TypeError as error:
            if "unexpected keyword" not in str(error):
                raise
            type_ = to_arrow_type(field.dataType)
    except Exception as error:  # Spark's own, of a class that depends on its version
        raise ValueError(f"{argument}: column {field.name!r}: the type {field.dataType.simpleString()} cannot go through Arrow") from error
    return pyarrow.field(field.name, type_, nullable=field.nullable)


class InferenceTask:
    """A partition's batches to a node and its results back; for ``mapInArrow``.

    ``fed`` are the names of the columns to feed, the first of each batch; ``kept`` are places of those that stay beside the results, which
    become columns of the Arrow fields ``results``.
    """

    def __init__(self, meta: launch.ClusterMeta, feed: int, timeout_ms: int, queue: str, fed: List[str], kept: List[int],
                 results: List[Any]) -> None:
        self._meta = meta
        self._feed = feed
        self._timeout_ms = timeout_ms
        self._queue = queue
        self._fed = fed
        self._kept = kept
        self._results = results
        self._names = [f"c{i}" for i in range(len(kept) + len(results))]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        full = (batch for batch in batches if batch.num_rows > 0)
        first = next(full, None)
        if first is None:
            return
        waiting: Deque[Any] = collections.deque()
        writer = launch.open_writer(self._meta, self._feed, self._timeout_ms, self._queue, results=True,
                                    ahead_rows=_AHEAD_ROWS if self._kept else 0)
        with contextlib.closing(writer):
            for result in writer.result_batches(self._feeding(first, full, waiting)):
                yield from self._outputs(result, waiting)

    def _feeding(self, first: Any, others: Iterator[Any], waiting: Deque[Any]) -> Iterator[Any]:
        """Batches to feed; what is kept of them waits for the results."""
        from pyarrow import RecordBatch

        batch: Optional[Any] = first
        while batch is not None:
            if self._kept:
                waiting.append([batch.column(place) for place in self._kept])
            yield RecordBatch.from_arrays(batch.columns[:len(self._fed)], names=self._fed)
            batch = next(others, None)

    def _outputs(self, result: Any, waiting: Deque[Any]) -> Iterator[Any]:
        """A batch of results in the declared types, cut where the batches that were fed end."""
        import pyarrow

        from .answers import columns_of

        columns = columns_of(pyarrow.record_batch(result), self._results)
        while columns[0]:
            kept = waiting[0] if self._kept else []
            count = min(map(len, [columns[0], *kept[:1]]))
            pieces = [column.slice(0, count) for column in [*kept, *columns]]
            yield pyarrow.RecordBatch.from_arrays(pieces, names=self._names)
            columns = [column.slice(count) for column in columns]
            if kept:
                waiting[0] = [column.slice(count) for column in kept]
                if not waiting[0][0]:
                    waiting.popleft()

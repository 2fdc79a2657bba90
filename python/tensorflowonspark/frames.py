# SPDX-License-Identifier: Apache-2.0
"""DataFrames to a cluster: by the JVM's own rows where tfos.jar can be loaded, else by Arrow batches in Python workers."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set, Union

from . import _tfos, arguments, jar, launch

logger = logging.getLogger(__name__)

__all__ = ["FrameFeed", "WAYS", "can_use_jvm", "check_rows", "feeder_options", "is_frame", "names_of", "parse_type", "quoted", "schema_of", "select"]

_warned: Set[str] = set()  # applications that cannot use the jar, which was logged
WAYS = (None, "jvm", "arrow")
# pyarrow has no class for columns of such intervals, though it carries them within others.
_MONTH_TYPES = ("interval year", "interval month", "interval year to month")
_MONTHS = ("cast(extract(year from cast({0} as interval year to month)) * 12 + extract(month from cast({0} as interval year to month)) as int)"
           " as {0}")


def is_frame(data: Any) -> bool:
    """Whether ``data`` is a DataFrame, also of Spark Connect."""
    return hasattr(type(data), "mapInArrow")


def check_rows(data: Any, taken: str, method: str = "mapPartitions") -> None:
    """ValueError for what is neither a DataFrame nor has an RDD's ``method``, with what makes one of it. ``taken``: the function and what it takes."""
    kind = type(data)
    if is_frame(data) or hasattr(kind, method):
        return
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    advice = ""
    if hasattr(kind, "to_spark"):
        advice = ": its to_spark() gives one"
    elif hasattr(kind, "to_records") or hasattr(kind, "__arrow_c_stream__"):
        advice = ": spark.createDataFrame() makes one of it"
    elif hasattr(kind, "__iter__") and not isinstance(data, (str, bytes)):
        advice = ": spark.createDataFrame() or sc.parallelize() makes one of it"
    raise ValueError(f"{taken}, not {name}{advice}")


class FrameFeed:
    """A DataFrame that is fed, epoch after epoch.

    Args:
        meta: the cluster.
        frame: the DataFrame.
        timeout_ms: how long a node may take no row.
        queue: name of the queue.
        job: whom to feed, "trainers" or "evaluator".
        columns: names of the columns to feed, in this order; None: all.
        shuffle: whether each epoch has the rows in another order; an integer is the seed.
        via: "jvm", "arrow", or None for the first of them that is possible.

    Raises:
        ValueError: an argument is wrong; a column does not exist or a name is there twice.
        tensorflowonspark.errors.UnsupportedError: a column's type cannot be fed, or "jvm" is not possible.
    """

    def __init__(self, meta: launch.ClusterMeta, frame: Any, timeout_ms: int, queue: str, columns: Optional[Sequence[str]] = None,
                 shuffle: Union[bool, int] = False, via: Optional[str] = None, job: str = "trainers") -> None:
        if via not in WAYS:
            raise ValueError(f"via must be None, 'jvm' or 'arrow', not {via!r}")
        if arguments.is_flag(shuffle):
            self._seed = secrets.randbits(31) if shuffle else None
        else:
            self._seed = arguments.count("shuffle", shuffle, words="True, False or an integer, the seed")
        self._meta = meta
        self._timeout_ms = timeout_ms
        self._queue = queue
        self._job = job
        self._frame = select(frame, columns)
        self.schema = schema_of(self._frame)
        _tfos.check_spark_schema(self.schema)
        types = [field["type"] for field in json.loads(self.schema)["fields"]]
        self._names = names_of(self._frame)
        self._for_arrow = [_MONTHS.format(f"c{i}") if types[i] in _MONTH_TYPES else f"c{i}" for i in range(len(types))]
        self._by_jvm = via != "arrow" and can_use_jvm(frame, must=via == "jvm")

    def action(self, feed: int) -> Callable[[], Any]:
        """What feeds all rows once, as feed number ``feed``: a Spark job on the thread that calls it."""
        # Each epoch comes from the first plan, not from that of the epoch before.
        frame = self._frame if self._seed is None else _shuffled(self._frame, self._seed + feed)
        if self._by_jvm:
            return lambda: self._feed_by_jvm(frame, feed)
        task = ArrowTask(self._meta, feed, self._timeout_ms, self._queue, self._job, self._names)
        # mapInArrow() takes names with dots and backticks apart.
        plain = frame.toDF(*(f"c{i}" for i in range(len(self._names)))).selectExpr(*self._for_arrow)
        return lambda: plain.mapInArrow(task, "partition long, rows long").collect()

    def _feed_by_jvm(self, frame: Any, feed: int) -> None:
        options = feeder_options(self._meta, feed, self._timeout_ms, self._queue, self.schema, job=self._job)
        feeder = frame.sparkSession.sparkContext._jvm.org.tfos.DataFrameFeeder
        feeder.feed(frame._jdf.queryExecution(), options, f"feed {feed} of cluster {self._meta.cluster_id}")


class ArrowTask:
    """Feeds a partition's Arrow batches to a node; for ``mapInArrow``. Gives one row with the count of rows that this attempt fed.

    ``names`` are what the batches' columns are called there.
    """

    def __init__(self, meta: launch.ClusterMeta, feed: int, timeout_ms: int, queue: str, job: str, names: List[str]) -> None:
        self._meta = meta
        self._feed = feed
        self._timeout_ms = timeout_ms
        self._queue = queue
        self._job = job
        self._names = names

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyarrow import RecordBatch
        from pyspark import TaskContext

        rows = 0
        with contextlib.closing(launch.open_writer(self._meta, self._feed, self._timeout_ms, self._queue, job=self._job)) as writer:
            named = (RecordBatch.from_arrays(batch.columns, names=self._names) for batch in batches)
            # A partition that nobody wants is not computed: its iterator is left alone.
            if writer.node is not None and all(map(writer.append, named)):
                rows = writer.finish()
        yield RecordBatch.from_pydict({"partition": [TaskContext.get().partitionId()], "rows": [rows]})


def select(frame: Any, columns: Union[None, str, Sequence[str]], argument: str = "columns") -> Any:
    """The columns that ``argument`` names, planned anew: what was cached since ``frame`` was made is used.

    Raises:
        ValueError: one does not exist, a name is there twice, or there is none.
    """
    present = names_of(frame)
    names = present if columns is None else [columns] if isinstance(columns, str) else list(columns)
    missing = [name for name in names if name not in present]
    if missing:
        raise ValueError(f"{argument}: there is no column {missing[0]!r}; the DataFrame has {', '.join(map(repr, present))}")
    if not names:
        raise ValueError(f"{argument}: there is no column to feed")
    twice = _first_repeated(names) or _first_repeated([name for name in present if name in names])
    if twice is not None:
        raise ValueError(f"{argument}: {twice!r} is there twice; rename one, or name it once")
    return frame.select("*" if columns is None else [quoted(name) for name in names])


# pyspark parses a schema into types of its own, and knows fewer than Spark: the JVM is asked where there is one.


def names_of(frame: Any) -> List[str]:
    """The frame's columns."""
    return list(frame._jdf.columns()) if hasattr(frame, "_jdf") else frame.columns


def schema_of(frame: Any) -> str:
    """The frame's schema, as ``StructType.json()`` gives it."""
    return frame._jdf.schema().json() if hasattr(frame, "_jdf") else frame.schema.json()


def parse_type(frame: Any, text: str) -> Any:
    """The type that DDL text describes, as the frame's session reads it."""
    from pyspark.sql import types

    if hasattr(frame, "_jdf"):
        return types._parse_datatype_string(text)
    # pyspark's own function asks Spark's driver in 3.5, and whatever session is the active one in 4.x.
    return frame.sparkSession.client._analyze(method="ddl_parse", ddl_string=text).parsed


def _first_repeated(names: List[str]) -> Optional[str]:
    seen = set()
    return next((name for name in names if name in seen or seen.add(name)), None)


def quoted(name: str) -> str:
    """A column's name as Spark takes it for one, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _shuffled(frame: Any, seed: int) -> Any:
    """All rows in an order that the seed decides, so that a task that runs again sees it again."""
    key = _unused("shuffle", frame.columns)
    count = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    drawn = frame.selectExpr("*", f"rand({seed}) AS {key}")
    return drawn.repartition(count, key).sortWithinPartitions(key).drop(key)


def _unused(name: str, names: Sequence[str]) -> str:
    taken = {other.lower() for other in names}
    while name in taken:
        name += "_"
    return name


def feeder_options(meta: launch.ClusterMeta, feed: int, timeout_ms: int, queue: str, schema: str, **others: Any) -> str:
    """The arguments of the natives of tfos.jar for a feed."""
    return json.dumps({"address": meta.address, "cluster_id": meta.cluster_id, "key": meta.key, "queue": queue, "feed": feed,
                       "timeout_ms": timeout_ms, "schema": schema, **others})


def can_use_jvm(frame: Any, must: bool) -> bool:
    """Whether tfos.jar is in the frame's JVMs, where it is put if need be.

    Raises:
        tensorflowonspark.errors.UnsupportedError: it is not, and ``must`` be.
    """
    if not hasattr(frame, "_jdf"):
        reason: Optional[str] = "a DataFrame of Spark Connect has no JVM here"
    else:
        sc = frame.sparkSession.sparkContext
        reason = jar.why_not(sc)
        if reason and sc.applicationId not in _warned:
            _warned.add(sc.applicationId)
            logger.warning("DataFrames go through Python workers, which is slower: %s", reason)
    if reason and must:
        raise _tfos.UnsupportedError(f"via='jvm' is not possible: {reason}")
    return reason is None

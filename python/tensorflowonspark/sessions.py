# SPDX-License-Identifier: Apache-2.0
"""The Spark application that a cluster runs on, reached by its SparkContext or by Spark Connect."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Union

from . import _tfos

__all__ = ["ConnectSpark", "ContextSpark", "spark_of"]

_OLDEST_CONNECT = (3, 5)


class ContextSpark:
    """An application whose driver is this process.

    Attributes:
        sc: the SparkContext.
        session: None.
        hint: what to add to an error of starting.
    """

    session: Any = None
    hint = ""

    def __init__(self, sc: Any) -> None:
        self.sc = sc
        self._kept: List[Any] = []

    def host(self) -> Optional[str]:
        """The address of this machine that executors reach."""
        return self.sc.getConf().get("spark.driver.host")

    def default_fs(self) -> str:
        """Hadoop's default file system."""
        return self.sc._jsc.hadoopConfiguration().get("fs.defaultFS")

    def nodes(self, executor_ids: Sequence[int]) -> Any:
        """What launches nodes: their numbers, one a partition."""
        return self.sc.parallelize(executor_ids, len(executor_ids))

    def setting(self, name: str) -> Optional[str]:
        """A setting of the application."""
        return self.sc.getConf().get(name)

    def launch(self, nodes: Any, task: Callable[[Iterable[int]], None]) -> None:
        """Runs the task on each partition of ``nodes``, all at once. Until ``release`` dynamic allocation does not take their executors for idle."""
        if (self.setting("spark.dynamicAllocation.enabled") or "").lower() != "true":
            nodes.foreachPartition(task)
            return
        from pyspark import StorageLevel

        # Of an executor without a task Spark knows that it is of use by the cached blocks that it has.
        kept = nodes.mapPartitions(_Launch(task)).persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        kept.count()

    def release(self) -> None:
        """Leaves the executors to dynamic allocation."""
        for kept in self._kept:
            with contextlib.suppress(Exception):  # the context is gone, and its blocks with it
                kept.unpersist()

    def run_each(self, count: int, task: Callable[[int], bytes], barrier: bool) -> List[bytes]:
        """What the task gives for each number; ``barrier``: all run at a time, or none."""
        nodes = self.nodes(range(count))
        return (nodes.barrier() if barrier else nodes).mapPartitions(_Each(task)).collect()

    def new_thread(self, target: Callable[[], None]) -> threading.Thread:
        """A thread with the Spark properties of this one."""
        from pyspark import InheritableThread

        return InheritableThread(target=target)

    def name_jobs(self, group: str, description: str) -> None:
        """Names what this thread will run from now on."""
        self.sc.setJobGroup(group, description, True)

    def cancel_jobs(self, group: str) -> None:
        self.sc.cancelJobGroup(group)

    def refuse(self, what: str, instead: str) -> None:
        """Raises where ``what`` needs this process to be Spark's driver; here it is."""


class ConnectSpark:
    """An application whose driver is a Spark Connect server: this process is a client of it, and the driver of the cluster only.

    Attributes:
        sc: None.
        session: the session.
        hint: what to add to an error of starting.
    """

    sc: Any = None
    hint = (". Over Spark Connect the executors must reach this client process: let TFOS_SERVER_HOST be an address of this machine "
            "that they reach, and TFOS_SERVER_PORT a port that firewalls let through")

    def __init__(self, session: Any) -> None:
        self.session = session

    def host(self) -> Optional[str]:
        """The address of this machine on the way to the server, near which the executors are; None when it is not known."""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(self.session.client.host, 1, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as probe:  # a datagram socket sends nothing to connect
                probe.connect(address)
                return probe.getsockname()[0]
        except OSError:
            return None

    def default_fs(self) -> str:
        """Hadoop's default file system, as the server knows it."""
        value = self.session.sql("SET fs.defaultFS").first()[1]
        return value if "://" in value else "file:///"  # Spark has words for a setting that it does not know

    def nodes(self, executor_ids: range) -> Any:
        """What launches nodes: their numbers, one a partition."""
        return self.session.range(executor_ids.start, executor_ids.stop, 1, len(executor_ids))

    def setting(self, name: str) -> Optional[str]:
        """A setting of the application."""
        return self.session.conf.get(name, None)

    def run_each(self, count: int, task: Callable[[int], bytes], barrier: bool) -> List[bytes]:
        """What the task gives for each number; ``barrier``: all run at a time, or none."""
        rows = self.nodes(range(count)).mapInArrow(_ArrowEach(task), "result binary", barrier=barrier).collect()
        return [bytes(row[0]) for row in rows]

    def launch(self, nodes: Any, task: Callable[[Iterable[int]], None]) -> None:
        """Runs the task on each partition of ``nodes``, all at once. When one fails, Spark runs all again."""
        nodes.mapInArrow(_ArrowLaunch(task), "executor_id long", barrier=True).collect()

    def release(self) -> None:
        """Nothing is kept."""

    def new_thread(self, target: Callable[[], None]) -> threading.Thread:
        """A thread with the tags of this one."""
        tags = self.session.getTags()

        def run() -> None:
            for tag in tags:
                self.session.addTag(tag)
            target()

        return threading.Thread(target=run)

    def name_jobs(self, group: str, description: str) -> None:
        """Names what this thread will run from now on."""
        self.session.addTag(group)

    def cancel_jobs(self, group: str) -> None:
        self.session.interruptTag(group)

    def refuse(self, what: str, instead: str) -> None:
        """Raises where ``what`` needs this process to be Spark's driver; here it is not.

        Raises:
            tensorflowonspark.errors.UnsupportedError: always.
        """
        raise _tfos.UnsupportedError(f"{what} cannot work over Spark Connect: {instead}")


class _Launch:
    """Runs a task on a partition, of which the numbers stay; for ``mapPartitions``."""

    def __init__(self, task: Callable[[Iterable[int]], None]) -> None:
        self._task = task

    def __call__(self, numbers: Iterable[int]) -> List[int]:
        kept = list(numbers)
        self._task(kept)
        return kept


class _ArrowLaunch:
    """Runs a task on the numbers in a partition's batches; for ``mapInArrow``."""

    def __init__(self, task: Callable[[Iterable[int]], None]) -> None:
        self._task = task

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self._task(batch.column(0).to_pylist())
            yield batch


class _Each:
    """Results of a task for the numbers of a partition; for ``mapPartitions``."""

    def __init__(self, task: Callable[[int], bytes]) -> None:
        self._task = task

    def __call__(self, numbers: Iterable[int]) -> List[bytes]:
        return [self._task(number) for number in numbers]


class _ArrowEach(_Each):
    """The same for ``mapInArrow``."""

    def __call__(self, batches: Any) -> Any:
        from pyarrow import RecordBatch

        for batch in batches:
            yield RecordBatch.from_pydict({"result": super().__call__(batch.column(0).to_pylist())})


def _check_versions(session: Any) -> None:
    """Barrier stages of mapInArrow, tags and their interruption are there from 3.5 on; an older server ignores that it is asked for them."""
    import pyspark

    for side, version in (("client", pyspark.__version__), ("server", session.version)):
        if tuple(map(int, version.split(".")[:2])) < _OLDEST_CONNECT:
            raise _tfos.UnsupportedError(
                f"clusters over Spark Connect need Spark {'.'.join(map(str, _OLDEST_CONNECT))} or later; this {side} has {version}: "
                "update it, or pass the SparkContext of a classic session")


def spark_of(handle: Any) -> Union[ContextSpark, ConnectSpark]:
    """The application of a SparkContext or of a SparkSession, also of Spark Connect.

    Raises:
        TypeError: it is none of these.
        tensorflowonspark.errors.UnsupportedError: client or server of Spark Connect are too old.
    """
    if hasattr(handle, "parallelize"):
        return ContextSpark(handle)
    if type(handle).__module__.startswith("pyspark.sql.connect."):
        _check_versions(handle)
        return ConnectSpark(handle)
    if hasattr(handle, "sparkContext"):
        return ContextSpark(handle.sparkContext)
    raise TypeError(f"sc must be a SparkContext or a SparkSession, not {type(handle).__name__}")

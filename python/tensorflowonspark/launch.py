# SPDX-License-Identifier: Apache-2.0
"""What Spark's tasks run: one kind launches a node, the other feeds a partition."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import ipaddress
import json
import os
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

from . import _tfos, gpu_info
from .arguments import milliseconds
from .failures import sendable, text_of
from .gpus import GpuPlan

__all__ = ["ClusterMeta", "FeedTask", "Feeding", "NodeTask", "describe_node", "is_loopback", "open_writer", "pickle_function"]

_GC_THRESHOLD = 100_000  # objects made between two collections
TRAINER_MODULE = "tensorflowonspark.trainer"


@dataclass(frozen=True)
class ClusterMeta:
    """What every task of a cluster knows. It travels in Spark's task closures, the key included."""

    cluster_id: str
    key: str = field(repr=False)  #: whoever has it is a member of the cluster
    address: str  #: "host:port" of the rendezvous
    num_executors: int
    num_ps: int
    roles: Dict[str, List[int]]
    feeding: bool
    default_fs: str
    working_dir: str
    release_port: bool
    tensorboard: bool
    log_dir: Optional[str]
    gpus: GpuPlan
    queues: str  #: names of each fed node's queues, divided by commas
    allow_pickle: bool = True  #: rows and results that have no column form may be pickled
    native_ps: bool = False  #: parameter servers are TensorFlow's servers without Python, and do not run the function
    preload: str = ""  #: modules, divided by commas, that each executor's fork server imports; "": trainers are started anew

    def public(self) -> dict:
        """As a dictionary, without the key."""
        values = asdict(self)
        del values["key"]
        values.update(id=self.cluster_id, cluster_template=self.roles, server_addr=self.address)
        return values

    def job_name(self, executor_id: int) -> str:
        return next(job for job, ids in self.roles.items() if executor_id in ids)


class NodeTask:
    """Launches the node of each executor id in the partition (one)."""

    def __init__(self, meta: ClusterMeta, payload: bytes, reservation_timeout: float) -> None:
        self._meta = meta
        self._payload = payload
        self._join_timeout_ms = milliseconds(reservation_timeout)

    def __call__(self, executor_ids: Iterable[int]) -> None:
        for executor_id in executor_ids:
            self.launch(executor_id)

    def launch(self, executor_id: int) -> None:
        """Starts the node. Returns when it runs, if it trains on what Spark feeds, else when it has ended.

        A parameter server's and an evaluator's task keep their slots, so that Spark does not take their executors for idle. An
        evaluator is fed all the same: by tasks in the workers' slots, which are free.

        A trainer's failure is reported by the rendezvous to the driver and is not this task's, so that Spark does not run it again.

        Raises:
            tensorflowonspark.errors.Error: the node could not start or was refused.
        """
        meta = self._meta
        detaching = meta.feeding and meta.job_name(executor_id) not in ("ps", "evaluator")
        with _tfos.Node(node_executable(), json.dumps(self._config(executor_id)), self._payload) as node:
            while True:
                text = node.next(-1)
                message = json.loads(text) if text else {}
                kind = message.get("type")
                if kind == "failed":
                    raise RuntimeError(f"node {executor_id} of cluster {meta.cluster_id}: {message['message']}")
                if kind == "running" and detaching:
                    node.detach()
                    return
                if kind == "ended":
                    return

    def _config(self, executor_id: int) -> dict:
        meta = self._meta
        is_server = meta.native_ps and meta.job_name(executor_id) == "ps"
        executor_pid = _tfos.find_executor(os.getpid())
        gpu_info.give_back()  # another function of this application may have taken some in this worker
        return {
            "type": "config", "cluster_id": meta.cluster_id, "key": meta.key, "address": meta.address,
            "executor_id": executor_id, "launch": _attempt_id(), "executor": _spark_executor_id(executor_pid),
            "executor_pid": executor_pid, "host": os.environ.get("TFOS_NODE_HOST"), "feeding": meta.feeding, "queues": meta.queues,
            "argv": _server_command() if is_server else [sys.executable, "-u", "-m", TRAINER_MODULE],
            "environment": _trainer_environment(), "directory": os.getcwd(), "gpus": None if is_server else meta.gpus.config(meta.job_name(executor_id)),
            "tf_port": int(os.environ.get("TENSORFLOW_PORT", 0)), "join_timeout_ms": self._join_timeout_ms,
            "preload": None if is_server else meta.preload or None,
            "default_fs": meta.default_fs, "working_dir": meta.working_dir, "release_port": meta.release_port, "allow_pickle": meta.allow_pickle,
            "tensorboard": _tensorboard_config(meta, executor_id), "user": {"spark_files": _spark_files_root()},
        }


class Feeding(NamedTuple):
    """What is fed, to which queue and to whom ("trainers" or "evaluator")."""

    action: Callable[[int], Callable[[], Any]]  #: given the number of the feed, what feeds all rows once
    queue: str
    job: str
    schema: str = "null"  #: what is known of the rows, as Spark's JSON


class FeedTask:
    """Feeds a partition to a node of the job ("trainers" or "evaluator"); with ``results`` it gives the node's results back."""

    def __init__(self, meta: ClusterMeta, feed: int, timeout: float, queue: str, results: bool, job: str = "trainers") -> None:
        self._meta = meta
        self._feed = feed
        self._timeout_ms = milliseconds(timeout)
        self._queue = queue
        self._results = results
        self._job = job

    def __call__(self, rows: Iterator[Any]) -> Iterable[Any]:
        writer = open_writer(self._meta, self._feed, self._timeout_ms, self._queue, self._results, self._job)
        if self._results:
            return _results(writer, rows)
        try:
            with _rare_collections(), sendable():
                writer.feed(rows)
        finally:
            writer.close()
        return ()


def open_writer(meta: ClusterMeta, feed: int, timeout_ms: int, queue: str, results: bool = False,
                job: str = "trainers", ahead_rows: int = 0) -> _tfos.FeedWriter:
    """The feed's end in the Spark task that calls this."""
    from pyspark import TaskContext

    context = TaskContext.get()
    lazy = {"stage": context.stageId()} if results else {}
    return _tfos.FeedWriter(meta.address, meta.cluster_id, meta.key, feed, context.partitionId(), context.taskAttemptId(), results=results,
                            queue=queue, job=job, timeout_ms=timeout_ms, ahead_rows=ahead_rows, allow_pickle=meta.allow_pickle, **lazy)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Lets the cyclic garbage collector run seldom: rows live shortly, and to search them for cycles costs per cent of the feed."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(_GC_THRESHOLD, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _results(writer: _tfos.FeedWriter, rows: Iterator[Any]) -> Iterator[Any]:
    try:
        with sendable():
            yield from writer.results(rows)
    finally:
        writer.close()


def pickle_function(map_fun: Any, tf_args: Any) -> bytes:
    """The function and its arguments as the trainers get them.

    Raises:
        TypeError: naming which of the two cannot be pickled, and why.
    """
    from pyspark.serializers import CloudPickleSerializer

    dumps = CloudPickleSerializer().dumps
    for name, value in (("map_fun", map_fun), ("tf_args", tf_args)):
        try:
            dumps(value)
        except Exception as error:
            raise TypeError(
                f"{name} cannot be pickled, so it cannot be sent to the executors: {text_of(error)}. Objects such as the SparkContext, "
                "locks, files and sessions must be made inside the function") from error
    return dumps((map_fun, tf_args))


def describe_node(node: dict) -> dict:
    """A node of the status as an entry of ``cluster_info``."""
    url = node.get("tensorboard") or ""
    port = url.rpartition(":")[2].strip("/")
    return {
        "executor_id": node["executor_id"], "host": node["host"], "port": node["port"], "job_name": node["job_name"],
        "task_index": node["task_index"], "pid": node["pid"], "tb_pid": node["tensorboard_pid"] if url else 0, "tb_port": int(port) if port.isdigit() else 0,
    }


def is_loopback(host: str) -> bool:
    """Whether ``host`` names this machine's loopback interface."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def node_executable() -> str:
    """The tfos command that came with this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "tfos")


def _attempt_id() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.taskAttemptId() if context else 0


def _spark_executor_id(executor_pid: int) -> str:
    """Spark's own id of the executor, from the command line of its JVM; "driver" in local mode."""
    try:
        with open(f"/proc/{executor_pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return words[words.index("--executor-id") + 1] if "--executor-id" in words[:-1] else "driver"


def _spark_files_root() -> Optional[str]:
    from pyspark import SparkFiles

    return getattr(SparkFiles, "_root_directory", None)


def _server_command() -> List[str]:
    """The command of a parameter server without Python; this Python says where TensorFlow is, without importing it."""
    package = importlib.util.find_spec("tensorflow")
    folders = list(package.submodule_search_locations or ()) if package else []
    if not folders:
        raise RuntimeError(f"native_ps: a parameter server needs TensorFlow's library, and {sys.executable} has no tensorflow: install it there")
    return [node_executable(), "ps", os.path.join(folders[0], "libtensorflow_cc.so.2")]


def _trainer_environment() -> Dict[str, Optional[str]]:
    """What the trainer's environment has besides this worker's: the same module path."""
    path = os.pathsep.join(dict.fromkeys(entry for entry in sys.path if entry))
    return {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def _tensorboard_config(meta: ClusterMeta, executor_id: int) -> Optional[dict]:
    """TensorBoard's command, if it is wanted; the node decides by its role whether to run it."""
    if not meta.tensorboard:
        return None
    log_dir = meta.log_dir or f"tensorboard_{executor_id}"
    local = _local_directory(log_dir)
    argv = [sys.executable, "-m", "tensorboard.main", "--reload_multifile=True", "--logdir", local or log_dir, "--port", "{port}",
            "--host", "{host}"]
    return {"argv": argv, "port": int(os.environ.get("TENSORBOARD_PORT", 0)), "log_directory": local}


def _local_directory(log_dir: str) -> Optional[str]:
    """The directory's absolute path; None when it is in another file system than this machine's."""
    head, path = _tfos.split_uri(log_dir)
    return os.path.abspath(path) if head.lower() in ("", "file:", "file://", "file://localhost") else None

# SPDX-License-Identifier: Apache-2.0
"""Reading the feed and other help for the user's function."""

from __future__ import annotations

import contextlib
import functools
import getpass
import logging
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _tfos, compat, files, gpus, saved_models
from .arguments import count, milliseconds
from .util import tensorflow_version

logger = logging.getLogger(__name__)

__all__ = ["DataFeed", "batch_results", "export_saved_model", "hdfs_path", "next_batch", "release_port",
           "serve", "start_cluster_server", "terminate"]


def __getattr__(name: str) -> Any:
    if name == "TF_VERSION":
        return tensorflow_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def hdfs_path(ctx: Any, path: Union[str, "os.PathLike[str]"]) -> str:
    """An absolute path with a scheme, for TensorFlow, in whose names ``#``, ``?`` and ``%`` have no meaning of their own.

    A path with a scheme stays as it is, but that ``file:/a`` becomes ``file:///a``; ``/a`` gets ``ctx.defaultFS`` before it; ``a`` is taken from
    the user's home on HDFS (``/user/<name>``) or the driver's working directory on local files.
    """
    path = files.for_tensorflow(path)
    if _tfos.split_uri(path)[0]:
        return path
    if path.startswith("/"):
        return ctx.defaultFS + path
    if ctx.defaultFS.startswith(("hdfs://", "viewfs://")):
        return f"{ctx.defaultFS}/user/{getpass.getuser()}/{path}"
    if ctx.defaultFS.startswith("file://"):
        return f"{ctx.defaultFS}/{ctx.working_dir[1:]}/{path}"
    logger.warning("relative path %s on a file system of unknown layout, %s", path, ctx.defaultFS)
    return f"{ctx.defaultFS}/{path}"


def release_port(ctx: Any) -> None:
    """Gives up the node's reservation of TensorFlow's port, for servers that bind it without SO_REUSEPORT; they can, once this returns."""
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None
    ctx.mgr.link.release_port()


def start_cluster_server(ctx: Any, num_gpus: int = 1, rdma: bool = False, gpu_fraction: Optional[float] = None) -> Tuple[Any, Any]:
    """TensorFlow 1's way to a cluster, for ``tf.compat.v1``: the ClusterSpec, and the server of this node, which has started.

    Args:
        ctx: the node's context.
        num_gpus: how many of this node's GPUs the server uses; 0: none. Where the node has none it uses the CPU.
        rdma: use InfiniBand or RoCE ("grpc+verbs") where this machine and this TensorFlow have them, else log the reason and use TCP.
        gpu_fraction: the part of each GPU's memory; None: that of ``TFCluster.run``.

    Raises:
        RuntimeError: the node has GPUs, but fewer.
    """
    import tensorflow as tf

    num_gpus = count("num_gpus", num_gpus, 0)
    if 0 < ctx.num_gpus < num_gpus:
        raise RuntimeError(f"start_cluster_server(num_gpus={num_gpus}), but {ctx.job_name}:{ctx.task_index} has {ctx.num_gpus}: pass num_gpus={num_gpus} to "
                           "TFCluster.run")
    config = gpus.session_config(ctx.gpu_fraction if gpu_fraction is None else gpu_fraction, min(num_gpus, ctx.num_gpus))
    cluster = tf.train.ClusterSpec(ctx.cluster_spec)
    make = functools.partial(tf.distribute.Server, cluster, job_name=ctx.job_name, task_index=ctx.task_index, config=config)
    if rdma and gpus.has_rdma():
        try:
            return cluster, make(protocol="grpc+verbs")
        except tf.errors.OpError as error:  # its builds for everybody lack it
            logger.warning("rdma=True: this TensorFlow has no protocol grpc+verbs, it uses TCP (NCCL uses the adapter by itself): %s", error.message)
    return cluster, make()


def serve(ctx: Any) -> None:
    """See :meth:`TFNodeContext.serve`."""
    if ctx.job_name not in ("ps", "worker"):
        raise ValueError(f"serve() is for workers and parameter servers; this node is {ctx.job_name}:{ctx.task_index}")
    if "chief" not in ctx.cluster_spec:
        raise ValueError("serve() waits for a chief, and this cluster has none: TFCluster.run(..., master_node='chief')")
    import tensorflow as tf

    cluster = {job: tasks for job, tasks in ctx.cluster_spec.items() if job != "evaluator"}
    server = tf.distribute.Server(cluster, job_name=ctx.job_name, task_index=ctx.task_index, protocol="grpc", start=True)
    if ctx.job_name == "ps":
        server.join()  # the driver stops parameter servers when all others have returned
    with contextlib.suppress(_tfos.ClosedError):  # the chief has ended: it never gives a value
        ctx.mgr.link.agree("tfos/serve", "null", milliseconds(float("inf")))


def export_saved_model(sess: Any, export_dir: str, tag_set: str, signatures: dict) -> None:
    """Exports the graph of a TensorFlow 1 session (``tf.compat.v1.Session``) as a SavedModel.

    Args:
        sess: the session, also one of a ``Supervisor`` or a ``MonitoredTrainingSession``, whose graph is finalized; its hooks are not called.
        export_dir: an empty or new directory, as for ``compat.export_saved_model``.
        tag_set: tags, divided by commas.
        signatures: ``{name: {"inputs": {alias: tensor}, "outputs": {alias: tensor}, "method_name": text}}``; tensors may be names.
    """
    import tensorflow as tf

    export_dir = compat.check_export_dir(export_dir)
    v1 = tf.compat.v1
    session = sess._tf_sess() if hasattr(sess, "_tf_sess") else sess  # a Saver takes no MonitoredSession
    graph = session.graph

    def infos(tensors: Dict[str, Any]) -> Dict[str, Any]:
        return {alias: v1.saved_model.utils.build_tensor_info(graph.get_tensor_by_name(t) if isinstance(t, str) else t)
                for alias, t in tensors.items()}

    with graph.as_default(), _open_for_changes(graph):
        definitions = {
            name: v1.saved_model.signature_def_utils.build_signature_def(
                inputs=infos(s["inputs"]), outputs=infos(s["outputs"]), method_name=s.get("method_name", name))
            for name, s in signatures.items()}
        builder = v1.saved_model.builder.SavedModelBuilder(export_dir)
        builder.add_meta_graph_and_variables(session, tag_set.split(","), signature_def_map=definitions, clear_devices=True)
        for meta_graph in builder._saved_model.meta_graphs:
            saved_models.free_functions(meta_graph)
        builder.save()


@contextlib.contextmanager
def _open_for_changes(graph: Any) -> Iterator[None]:
    """What saves a graph adds operations to it, which TensorFlow refuses of a finalized one."""
    is_finalized = graph.finalized
    if is_finalized:
        graph._unsafe_unfinalize()
    try:
        yield
    finally:
        if is_finalized:
            graph.finalize()


def next_batch(mgr: Any, batch_size: int, qname: str = "input") -> Any:
    """Replaced by :meth:`DataFeed.next_batch`."""
    raise RuntimeError("use TFNode.DataFeed(ctx.mgr).next_batch()")


def batch_results(mgr: Any, results: Any, qname: str = "output") -> Any:
    """Replaced by :meth:`DataFeed.batch_results`."""
    raise RuntimeError("use TFNode.DataFeed(ctx.mgr, train_mode=False).batch_results()")


def terminate(mgr: Any, qname: str = "input") -> Any:
    """Replaced by :meth:`DataFeed.terminate`."""
    raise RuntimeError("use TFNode.DataFeed(ctx.mgr).terminate()")


class DataFeed:
    """The rows that Spark feeds to this node. Thread-safe: each row goes to one of the threads that wait, and results may come from another.

    It belongs to the function's own process: in one that is forked from it (``use_multiprocessing``, workers of a loader, ``os.fork``) reading
    raises ``InvalidError``, and the function's process fails with the same, since both would get the same rows.

    Args:
        mgr: ``ctx.mgr``.
        train_mode: False for inference: a batch then ends with its partition.
        qname_in: queue to read: "input", "validation" for ``cluster.train(validation=...)``, or one of those that
            ``TFCluster.run(queues=...)`` names.
        qname_out: kept for compatibility.
        input_mapping: ``{column: tensor}``: batches come as ``{tensor: values}``. Rows that have names (of DataFrames, Rows, dictionaries,
            namedtuples, dataclasses) are read by name, and may have other columns; tuples and lists by place, in the order of the sorted
            column names.

    Raises:
        ValueError: two columns of ``input_mapping`` go to one tensor.
    """

    def __init__(self, mgr: Any, train_mode: bool = True, qname_in: str = "input", qname_out: str = "output",
                 input_mapping: Optional[Dict[str, str]] = None) -> None:
        self.mgr = mgr
        self.train_mode = train_mode
        self.qname_in = qname_in
        self.qname_out = qname_out
        self.done_feeding = False
        columns = None if input_mapping is None else sorted(input_mapping)
        self.input_tensors = None if columns is None else [input_mapping[column] for column in columns]
        if columns is not None and len(set(self.input_tensors)) < len(columns):
            raise ValueError(f"input_mapping gives two columns to one tensor: {input_mapping!r}")
        self._columns = columns
        self._reader: Any = None
        if mgr.is_fed:  # else programs that make one on every node, whatever its role, fail only where they read it
            self._open()

    def _open(self) -> Any:
        if self._reader is None:
            self._reader = self.mgr.link.open_feed(self.qname_in)
        return self._reader

    def next_batch(self, batch_size: int) -> Union[List[Any], Dict[str, List[Any]]]:
        """Up to ``batch_size`` rows as the objects that were fed, or ``{tensor: list of values}`` with an ``input_mapping``.

        Waits until so many have come. There are fewer only at the end of the feed and, with ``train_mode=False``, of a partition.

        Raises:
            ValueError: a row has not the columns that ``input_mapping`` names; names the partition, row and column.
        """
        reader = self._open()
        rows = reader.next_rows(batch_size, not self.train_mode, columns=self._columns)
        self.done_feeding = reader.at_end
        if self.input_tensors is None:
            return rows or []
        return dict(zip(self.input_tensors, rows or [[] for _ in self.input_tensors]))

    def next_arrays(self, batch_size: int) -> Any:
        """The same rows as numpy arrays, first dimension the rows, without making objects of them.

        Returns:
            A tuple of arrays for rows that are tuples or lists, a dictionary for rows that have names, one array for single
            values; ``{tensor: array}`` with an ``input_mapping``; None once the feed has ended. Lists of n numbers become one array
            ``(rows, n)``, lists of lists one of more dimensions, where all rows of this batch have one length at each level, as
            ``np.array(rows)`` has it; else, or where one is null, an object array with an array a row. Numbers keep their type (float64
            for float, int64 for int).

        Raises:
            ValueError: rows of one batch differ in type, or rows of Python in a shape that all before them had; names the partition, row
                and column.
        """
        reader = self._open()
        arrays = reader.next_arrays(batch_size, not self.train_mode, columns=self._columns)
        self.done_feeding = reader.at_end
        return arrays if arrays is None or self.input_tensors is None else dict(zip(self.input_tensors, arrays))

    def should_stop(self) -> bool:
        """Whether the feed has ended."""
        return self.done_feeding

    def batch_results(self, results: Any) -> None:
        """Gives one result for each of the oldest rows that have none yet.

        Args:
            results: an iterable of results, or arrays whose first dimension is the rows: one array (numpy's, or a tensor), a tuple of arrays or a
                dictionary of arrays. Arrays go to Spark without row objects. In an RDD they become one value, a tuple or a dictionary a row, of
                numpy scalars and arrays, str or bytes.

        Raises:
            ValueError: there are more results than rows of that partition; names it and both counts. Arrays differ in length or have a dtype
                that cannot be sent; names the column.
        """
        arrays = _arrays_of(results)
        if arrays is None:
            self._open().put_results(list(results))
        else:
            self._open().put_arrays(arrays)

    def terminate(self) -> None:
        """Wants no more rows: what is left of the feed is skipped. On the queue "input" this ends all of the node's queues."""
        if self.qname_in == "input":
            self.mgr.set("state", "terminating")
        self._open().terminate()
        self.done_feeding = True


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and hasattr(value, "shape")


def _arrays_of(results: Any) -> Any:
    """Results that are arrays, as numpy's; None for any others."""
    if isinstance(results, dict):
        return {name: _array_of(value) for name, value in results.items()}
    if isinstance(results, tuple) and results and all(map(_is_array, results)) and all(len(value.shape) > 0 for value in results):
        return tuple(map(_array_of, results))
    return _array_of(results) if _is_array(results) else None


def _array_of(value: Any) -> Any:
    """One column of results. A dictionary of arrays, as ``next_arrays()`` gives of structs, becomes one dictionary a row."""
    import numpy as np

    if isinstance(value, np.ma.MaskedArray) and value.mask.any():  # what is masked is no value
        objects = value.data.astype(object)
        objects[np.ma.getmaskarray(value)] = None
        return objects
    if not isinstance(value, dict):
        return np.asarray(value)
    fields = [_array_of(field) for field in value.values()]
    rows = np.empty(len(fields[0]) if fields else 0, object)
    for index, row in enumerate(zip(*fields)):
        rows[index] = dict(zip(value, row))
    return rows

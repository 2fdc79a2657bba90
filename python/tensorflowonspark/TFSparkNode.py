# SPDX-License-Identifier: Apache-2.0
"""The context that the user's function gets on each node."""

from __future__ import annotations

import json
import os
import socket
from typing import Any, Dict, List, Optional, Tuple, Union

from . import TFNode, _tfos
from .arguments import milliseconds, plain, seconds
from .TFManager import TFManager

__all__ = ["TFNodeContext", "current"]

_current: Optional["TFNodeContext"] = None


def current() -> Optional["TFNodeContext"]:
    """The context of this process; None outside of a cluster."""
    return _current


class TFNodeContext:
    """What a node knows of itself and its cluster, and the ways to reach the others. Thread-safe.

    Attributes:
        executor_id: number of this node, from 0 (also ``worker_num``).
        job_name: its role: "ps", "chief" or "master", "worker", "evaluator".
        task_index: its number among the nodes of that role.
        cluster_spec: ``{role: ["host:port", ...]}``, for ``tf.train.ClusterSpec``.
        num_workers: how many chiefs, masters and workers there are.
        defaultFS: Hadoop's default file system, such as ``file://`` or ``hdfs://namenode:8020``.
        working_dir: working directory of the driver.
        mgr: handle for ``TFNode.DataFeed``.
        tmp_socket: with ``TFCluster.run(release_port=False)`` a socket that is bound to TensorFlow's port until ``release_port``; else None.
        num_gpus: how many GPUs this node has.
        gpu_fraction: the part of each that is its; 0: it has them alone.
    """

    def __init__(self, executor_id: int = 0, job_name: str = "", task_index: int = 0,
                 cluster_spec: Optional[Dict[str, List[str]]] = None, defaultFS: str = "file://",
                 working_dir: str = ".", mgr: Optional[TFManager] = None, tmp_socket: Any = None) -> None:
        self.worker_num = executor_id
        self.executor_id = executor_id
        self.job_name = job_name
        self.task_index = task_index
        self.cluster_spec = cluster_spec or {}
        self.num_workers = sum(len(self.cluster_spec.get(job, ())) for job in ("chief", "master", "worker"))
        self.defaultFS = defaultFS
        self.working_dir = working_dir
        self.mgr = mgr
        self.tmp_socket = tmp_socket
        self.num_gpus = 0
        self.gpu_fraction = 0.0

    @classmethod
    def of(cls, link: _tfos.Trainer, context: dict) -> "TFNodeContext":
        """The context of this process, from the node's description of it."""
        global _current
        address = context["cluster_spec"][context["job_name"]][context["task_index"]]
        tmp_socket = None if context["release_port"] else _hold_port(int(address.rpartition(":")[2]))
        _current = cls(context["executor_id"], context["job_name"], context["task_index"], context["cluster_spec"],
                       context["default_fs"], context["working_dir"], TFManager(link, context["fed"]), tmp_socket)
        _current.num_gpus = len(context["gpus"])
        _current.gpu_fraction = max((gpu["fraction"] for gpu in context["gpus"]), default=0.0)
        return _current

    def absolute_path(self, path: Union[str, "os.PathLike[str]"]) -> str:
        """``path`` with the scheme and folder that :func:`TFNode.hdfs_path` gives it."""
        return TFNode.hdfs_path(self, path)

    def serve(self) -> None:
        """Runs TensorFlow's server on a worker or parameter server until the chief's function has returned: what the
        ``ParameterServerStrategy`` of the chief needs of the others, in place of ``tf.distribute.Server(...).join()``, which never returns.

        Raises:
            ValueError: this node is neither, or the cluster has no chief.
        """
        TFNode.serve(self)

    def start_cluster_server(self, num_gpus: int = 1, rdma: bool = False) -> Tuple[Any, Any]:
        """See :func:`TFNode.start_cluster_server`."""
        return TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(self, sess: Any, export_dir: str, tag_set: str, signatures: dict) -> None:
        """See :func:`TFNode.export_saved_model`."""
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(self, train_mode: bool = True, qname_in: str = "input", qname_out: str = "output",
                      input_mapping: Optional[Dict[str, str]] = None) -> "TFNode.DataFeed":
        """A :class:`TFNode.DataFeed` on this node's feed."""
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def get_dataset(self, batch_size: int, uneven: Optional[str] = None, drop_remainder: bool = False,
                    dtypes: Any = None, prefetch: int = 2, timeout: float = 600, columns: Any = None, shapes: Any = None,
                    ragged: Any = None, padded: Any = None, sparse: Any = None, null_value: Any = None,
                    shuffle_buffer: int = 0, seed: Optional[int] = None, split: str = "train") -> Any:
        """A ``tf.data.Dataset`` of batches from this node's feed; see :func:`tensorflowonspark.dataset.get_dataset`."""
        from .dataset import get_dataset

        return get_dataset(self, batch_size, uneven=uneven, drop_remainder=drop_remainder, dtypes=dtypes,
                           prefetch=prefetch, timeout=timeout, columns=columns, shapes=shapes, ragged=ragged, padded=padded,
                           sparse=sparse, null_value=null_value, shuffle_buffer=shuffle_buffer, seed=seed, split=split)

    def release_port(self) -> None:
        """See :func:`TFNode.release_port`."""
        TFNode.release_port(self)

    def agree(self, name: str, value: Any, timeout: float = 600) -> List[Any]:
        """Exchanges a value with all chiefs, masters and workers.

        Args:
            name: what is agreed on; each name once a node.
            value: anything that JSON can hold; of numpy also numbers and arrays, which become lists.
            timeout: seconds to wait for the others.

        Returns:
            The values of all, in the order of executor ids.

        Raises:
            TimeoutError: naming the nodes that gave none.
            ConnectionError: a node has ended, or the driver is gone.
        """
        return json.loads(self._link().agree(name, json.dumps(value, default=plain), milliseconds(seconds("timeout", timeout))))

    def report(self, **values: float) -> None:
        """Shows figures beside this node, in the driver's progress line and in ``tfos status``; the newest of each count."""
        self._link().report(json.dumps({name: float(value) for name, value in values.items()}))

    def _link(self) -> _tfos.Trainer:
        if self.mgr is None:
            raise RuntimeError("this context is not of a running node")
        return self.mgr.link


def _hold_port(port: int) -> socket.socket:
    """A socket that shares the port with the node, which holds it too, and with nobody else."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("", port))
    return holder

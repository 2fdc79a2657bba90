# SPDX-License-Identifier: Apache-2.0
"""Help for programs that run on one node alone."""

from __future__ import annotations

import os
import socket
from typing import Any, Optional, Sequence, Union

from . import fs, gpu_info
from .arguments import count

__all__ = ["find_in_path", "get_ip_address", "index_on_host", "num_executors", "num_param_servers", "single_node_env", "tensorflow_version"]


def single_node_env(num_gpus: int = 1, worker_index: int = -1, nodes: Optional[Sequence[str]] = None) -> None:
    """Sets ``CUDA_VISIBLE_DEVICES`` of this process to free GPUs, or to none, and lets TensorFlow read and write Hadoop's file systems.

    Args:
        num_gpus: GPUs to take, if the machine has any.
        worker_index: number of this node among ``nodes``, or among all; -1: any free GPU will do.
        nodes: "host:port" of every node; nodes of the same host take different GPUs.
    """
    num_gpus, worker_index = count("num_gpus", num_gpus, 0), count("worker_index", worker_index, -1)
    gpus = ""
    is_refused = os.environ.get("TFOS_GPUS") == ""  # in a node that has none
    if num_gpus > 0 and not is_refused and gpu_info.is_gpu_available():
        gpus = str(gpu_info.get_gpus(num_gpus, index_on_host(worker_index, nodes or ())))
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    fs.register_on_import()


def index_on_host(worker_index: int, nodes: Sequence[str]) -> int:
    """The node's number among those of its host; ``worker_index`` itself where nothing is known of the hosts."""
    if not nodes or worker_index < 0:
        return worker_index
    host = nodes[worker_index].rpartition(":")[0]
    return sum(node.rpartition(":")[0] == host for node in nodes[:worker_index])


def get_ip_address() -> str:
    """The address of this machine that its default route uses; without one, what its name resolves to. Sends nothing."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((target, 9))
                return probe.getsockname()[0]
            except OSError:
                continue
    try:
        return socket.gethostbyname(socket.getfqdn())
    except OSError:
        return "127.0.0.1"


def find_in_path(path: str, file: str) -> Union[str, bool]:
    """The first ``file`` in a list of folders divided by ``os.pathsep``, or False."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, file)
        if os.path.isfile(candidate):
            return candidate
    return False


def tensorflow_version() -> str:
    """The version of the installed TensorFlow, which is not imported for it.

    Raises:
        importlib.metadata.PackageNotFoundError: there is none.
    """
    from importlib import metadata

    try:
        return metadata.version("tensorflow")
    except metadata.PackageNotFoundError:
        return metadata.version("tensorflow-cpu")


def num_executors(spark: Any) -> int:
    """How many executors the application of this session (or SparkContext) may have.

    With ``spark.dynamicAllocation.enabled`` that is ``spark.dynamicAllocation.maxExecutors``, else ``spark.executor.instances``.

    Raises:
        ValueError: the application says neither.
    """
    names = ["spark.executor.instances"]
    if str(_setting(spark, "spark.dynamicAllocation.enabled")).lower() == "true":
        names.insert(0, "spark.dynamicAllocation.maxExecutors")
    for name in names:
        value = _setting(spark, name)
        if value is not None:
            return count(name, int(value), 1)
    raise ValueError(f"the application does not say how many executors it has: set {' or '.join(names)}")


def num_param_servers(spark: Any) -> int:
    """How many parameter servers were asked for: ``spark.tensorflow.num.ps``, else the environment's ``NUM_TF_PS``, else 0."""
    name, value = "spark.tensorflow.num.ps", _setting(spark, "spark.tensorflow.num.ps")
    if value is None:
        name, value = "NUM_TF_PS", os.environ.get("NUM_TF_PS") or 0
    return count(name, int(value), 0)


def _setting(spark: Any, name: str) -> Optional[str]:
    return spark.getConf().get(name) if hasattr(spark, "getConf") else spark.conf.get(name, None)

# SPDX-License-Identifier: Apache-2.0
"""Which GPUs the nodes of a cluster get, and how TensorFlow keeps to its part of them."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _tfos, gpu_info
from .arguments import count, is_number
from .util import index_on_host

logger = logging.getLogger(__name__)

__all__ = ["GpuPlan", "groups", "has_rdma", "limit_memory", "plan", "requested", "session_config", "take"]

_MOST_GPUS = 64
_HELPERS = ("ps", "evaluator")
_TRAINERS = ("chief", "master", "worker")
_RESOURCE = re.compile(r"(^|[/.])gpu$")  # "gpu", and what YARN and Kubernetes call it: "yarn.io/gpu", "nvidia.com/gpu"
_CUDA_MIB = 512  # what CUDA and its libraries take of a GPU in each process, besides what TensorFlow allocates


@dataclass(frozen=True)
class GpuPlan:
    """What the nodes of a cluster get. It travels with the tasks."""

    counts: Dict[str, int]  #: by role; one that is not there: what Spark assigns, else one where the machine has any
    fraction: float = 0.0  #: of each; 0: alone

    def config(self, job_name: str) -> Optional[Dict[str, Any]]:
        """The request of the node of this role, made in the Spark task that launches it; None: no GPU.

        Raises:
            RuntimeError: Spark has assigned fewer than are asked for, or nothing in a pod of Kubernetes, where the driver shows what belongs to others.
        """
        wanted = self.counts.get(job_name, 0 if job_name in _HELPERS else None)
        if wanted == 0:
            return None
        addresses = _assigned()
        in_pod = "SPARK_EXECUTOR_POD_IP" in os.environ
        if (addresses or in_pod) and len(addresses) < (wanted or 0):
            raise RuntimeError(f"num_gpus asks for {wanted} GPUs, Spark has assigned {len(addresses)} to this task{': ' if addresses else ''}"
                               f"{', '.join(addresses)}: set spark.task.resource.gpu.amount and spark.executor.resource.gpu.amount")
        if not addresses and in_pod:
            return None
        number = wanted or len(addresses) or 1
        return {"count": number, "fraction": self.fraction, "addresses": ",".join(addresses) or None, "required": bool(wanted or addresses)}


def _assigned() -> List[str]:
    """The addresses of the GPUs that Spark gave to this task, by settings or by a ResourceProfile."""
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = context.resources() if context else {}
    return [address for name in sorted(resources) if _RESOURCE.search(name) for address in resources[name].addresses]


def requested(tf_args: Any) -> Optional[int]:
    """``tf_args.num_gpus``, if there is such a thing."""
    number = getattr(tf_args, "num_gpus", None)
    return None if number is None else count("num_gpus", number, 0, _MOST_GPUS)


def take(num_gpus: Optional[int], worker_index: int = -1, nodes: Sequence[str] = ()) -> List[str]:
    """The GPUs that Spark gave to this task, else free ones of this host, for a process that is no node of a cluster.

    Args:
        num_gpus: how many; None: all that Spark gave, else one if there is one.
        worker_index: number of this task among ``nodes``; -1: it has none.
        nodes: "host:port" of each task; those of one host take different GPUs.

    Raises:
        RuntimeError: there are fewer.
    """
    assigned = _assigned()
    if assigned:
        assigned = assigned if num_gpus is None else assigned[:num_gpus]
    elif num_gpus != 0 and "SPARK_EXECUTOR_POD_IP" not in os.environ and gpu_info.is_gpu_available():
        assigned = list(gpu_info.get_gpus(num_gpus or 1, index_on_host(worker_index, nodes), format=gpu_info.AS_LIST))
    if num_gpus and len(assigned) < num_gpus:
        raise RuntimeError(f"tf_args asks for {num_gpus} GPUs, this task has {len(assigned)}: {assigned}")
    return assigned


def plan(spark: Any, tf_args: Any, num_gpus: Union[None, int, Mapping[str, int]], gpu_fraction: Optional[float], profile: Any) -> GpuPlan:
    """What the arguments of ``TFCluster.run`` mean.

    Raises:
        ValueError: an argument is wrong.
    """
    if profile is not None:
        spark.refuse("resource_profile", "set the resources of the server's tasks instead")
    if num_gpus is None:
        num_gpus = requested(tf_args)
    if num_gpus is None:
        counts: Dict[str, int] = {}
    elif isinstance(num_gpus, Mapping):
        unknown = set(num_gpus) - {*_TRAINERS, *_HELPERS}
        if unknown:
            raise ValueError(f"num_gpus: {sorted(map(str, unknown))[0]!r} is no role; roles are {', '.join([*_TRAINERS, *_HELPERS])}")
        counts = {role: count(f"num_gpus[{role!r}]", number, 0, _MOST_GPUS) for role, number in num_gpus.items()}
        for role in ("chief", "master"):
            if "worker" in counts:
                counts.setdefault(role, counts["worker"])
    else:
        counts = dict.fromkeys(_TRAINERS, count("num_gpus", num_gpus, 0, _MOST_GPUS))
    return GpuPlan(counts, _assigned_part(spark, profile) if gpu_fraction is None else check_fraction(gpu_fraction))


def check_fraction(value: Any) -> float:
    if not is_number(value) or not 0 < float(value) <= 1:
        raise ValueError(f"gpu_fraction must be a number above 0 and at most 1, not {value!r}")
    return float(value)


def _assigned_part(spark: Any, profile: Any) -> float:
    """The part of a GPU that Spark's tasks have; 0: whole ones."""
    request = None if profile is None else profile.taskResources.get("gpu")
    amount = spark.setting("spark.task.resource.gpu.amount") if request is None else request.amount
    return float(amount) if amount is not None and 0 < float(amount) < 1 else 0.0


def groups(executors: Sequence[int], job_name: Callable[[int], str], profile: Any) -> Iterator[Tuple[Sequence[int], Any]]:
    """The nodes that one Spark job launches, with the ResourceProfile of its tasks."""
    if profile is None:
        yield executors, None
        return
    for is_helper, own in ((True, None), (False, profile)):
        group = [executor for executor in executors if (job_name(executor) in _HELPERS) == is_helper]
        if group:
            yield group, own


# -- TensorFlow


def limit_memory(gpus: List[Dict[str, Any]]) -> None:
    """Lets TensorFlow 2 have no more of this trainer's GPUs than its part of their memory. Does nothing where it has them alone."""
    if not any(0 < gpu["fraction"] < 1 for gpu in gpus) or importlib.util.find_spec("tensorflow") is None:
        return
    import tensorflow as tf

    for device, gpu in zip(tf.config.list_physical_devices("GPU"), gpus):
        share = gpu["memory"] // (1 << 20)
        if share <= 0:
            logger.warning("the memory of %s is not known: TensorFlow may take all of it", device.name)
            continue
        limit = max(1, share - min(_CUDA_MIB, share // 4))
        tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration(memory_limit=limit)])


def session_config(fraction: float, num_gpus: int) -> Any:
    """The ``tf.compat.v1.ConfigProto`` of a server or session of TensorFlow 1's kind that keeps to that part of each GPU; 0: it has them alone."""
    import tensorflow as tf

    config = tf.compat.v1.ConfigProto(device_count={"GPU": num_gpus})
    if 0 < fraction < 1:
        config.gpu_options.per_process_gpu_memory_fraction = fraction
    if num_gpus:
        config.gpu_options.visible_device_list = ",".join(map(str, range(num_gpus)))
    return config


def has_rdma(sysfs: Optional[str] = None) -> bool:
    """Whether this machine has an active InfiniBand or RoCE port; a warning says why not. ``sysfs``: its root, /sys if None."""
    ports = _tfos.list_rdma_ports(sysfs)
    active = [f"{device}/{port} ({kind})" for device, port, is_active, kind in ports if is_active]
    if active:
        logger.info("RDMA by %s", ", ".join(active))
    elif ports:
        logger.warning("rdma=True, but no InfiniBand or RoCE port of this machine is active (%s): it uses TCP", ", ".join(f"{p[0]}/{p[1]}" for p in ports))
    else:
        logger.warning("rdma=True, but this machine has no InfiniBand or RoCE adapter: it uses TCP")
    return bool(active)

# SPDX-License-Identifier: Apache-2.0
"""Free GPUs of this machine, for programs that run without a cluster; a node of one has its GPUs already."""

from __future__ import annotations

import os
from typing import List, Optional, Union

from . import _tfos
from .arguments import count

__all__ = ["AS_LIST", "AS_STRING", "MAX_RETRIES", "get_gpus", "give_back", "is_gpu_available"]

MAX_RETRIES = 3  #: how long to wait for GPUs: 30 seconds, and 30 more each time
AS_STRING = "string"
AS_LIST = "list"

_held: Optional[_tfos.GpuAllocation] = None


def is_gpu_available() -> bool:
    """Whether this machine has an NVIDIA GPU and its driver."""
    try:
        return bool(_tfos.list_gpus())
    except _tfos.UnsupportedError:
        return False


def get_gpus(num_gpu: int = 1, worker_index: int = -1, format: str = AS_STRING) -> Union[str, List[str]]:
    """Takes ``num_gpu`` GPUs on which no process computes, for this process: until it ends, or asks again, no other of this user gets them.

    In a node's function these are the first of those that the node has.

    Args:
        num_gpu: how many.
        worker_index: number of this process among those of the machine, which is where it begins to look; -1: any.
        format: ``AS_STRING`` ("0,1") or ``AS_LIST`` (["0", "1"]): what ``CUDA_VISIBLE_DEVICES`` takes.

    Raises:
        RuntimeError: there is no driver (``UnsupportedError``), the machine has fewer (``NotFoundError``), or they are not free in time
            (``BusyError``); names who has them.
        ValueError: the format is unknown.
    """
    global _held
    if format not in (AS_STRING, AS_LIST):
        raise ValueError(f"format must be {AS_STRING!r} or {AS_LIST!r}, not {format!r}")
    num_gpu, worker_index = count("num_gpu", num_gpu, 0), count("worker_index", worker_index, -1)
    own = os.environ.get("TFOS_GPUS")
    if own:
        chosen = own.split(",")[:num_gpu]
        if len(chosen) < num_gpu:
            raise RuntimeError(f"{num_gpu} GPUs wanted, this node has {len(chosen)}: pass num_gpus={num_gpu} to TFCluster.run")
    else:
        give_back()
        timeout_ms = max(1, 30_000 * sum(range(1, MAX_RETRIES + 1)))
        if num_gpu:
            _held = _tfos.GpuAllocation(num_gpu, max(0, worker_index) * num_gpu, timeout_ms, "get_gpus")
        chosen = _held.ids().split(",") if _held else []
    return ",".join(chosen) if format == AS_STRING else chosen


def give_back() -> None:
    """Gives back what :func:`get_gpus` has taken."""
    global _held
    held, _held = _held, None
    if held is not None:
        if os.environ.get("CUDA_VISIBLE_DEVICES") == held.ids():  # of single_node_env
            del os.environ["CUDA_VISIBLE_DEVICES"]
        held.close()

# SPDX-License-Identifier: Apache-2.0
"""Which GPUs of this machine are free, as NVIDIA's driver tells."""

from __future__ import annotations

import logging
import random
import time
from typing import List, Union

from . import _tfos
from .arguments import count

logger = logging.getLogger(__name__)

__all__ = ["AS_LIST", "AS_STRING", "MAX_RETRIES", "get_gpus", "is_gpu_available"]

MAX_RETRIES = 3  #: how often to look again for free GPUs
AS_STRING = "string"
AS_LIST = "list"


def is_gpu_available() -> bool:
    """Whether this machine has an NVIDIA GPU and its driver."""
    try:
        return bool(_tfos.list_gpus())
    except _tfos.UnsupportedError:
        return False


def get_gpus(num_gpu: int = 1, worker_index: int = -1, format: str = AS_STRING) -> Union[str, List[str]]:
    """Indices of ``num_gpu`` GPUs on which no process computes.

    Args:
        num_gpu: how many.
        worker_index: number of this process among those of the machine: each takes the next ``num_gpu`` free ones; -1: any.
        format: ``AS_STRING`` ("0,1") or ``AS_LIST`` (["0", "1"]).

    Raises:
        RuntimeError: there is no driver (``UnsupportedError``), or so many are not free, after ``MAX_RETRIES`` more looks 30, 60 and 90 seconds apart.
        ValueError: the format is unknown.
    """
    if format not in (AS_STRING, AS_LIST):
        raise ValueError(f"format must be {AS_STRING!r} or {AS_LIST!r}, not {format!r}")
    num_gpu, worker_index = count("num_gpu", num_gpu, 0), count("worker_index", worker_index, -1)
    free = _free_gpus()
    for retry in range(1, MAX_RETRIES + 1):
        if len(free) >= num_gpu:
            break
        logger.warning("%d GPUs wanted, %d free; looking again in %d s", num_gpu, len(free), 30 * retry)
        time.sleep(30 * retry)
        free = _free_gpus()
    if len(free) < num_gpu:
        raise RuntimeError(f"{num_gpu} GPUs wanted, {len(free)} free ({', '.join(free) or 'none'}); nvidia-smi shows who uses them")
    if worker_index < 0:
        random.shuffle(free)
        chosen = free[:num_gpu]
    else:
        first = worker_index * num_gpu
        first = first if first + num_gpu <= len(free) else first % len(free)
        chosen = (free + free)[first:first + num_gpu]
    return ",".join(chosen) if format == AS_STRING else chosen


def _free_gpus() -> List[str]:
    return [str(index) for index, is_free in enumerate(_tfos.list_gpus()) if is_free]

# SPDX-License-Identifier: Apache-2.0
"""Ending a cluster from another process, as ``tfos stop`` does."""

from __future__ import annotations

import json

from . import _tfos
from .arguments import milliseconds, seconds

__all__ = ["request_stop"]


def request_stop(cluster: str, timeout: float = 10) -> str:
    """Asks the driver of a cluster to end it in order, and returns when the driver has the request.

    What feeds the cluster ends: a stream behind the batch that it feeds; of other data what is left is skipped, and ``train`` returns. The functions come
    to the end of the feed and return, and the driver continues with its ``shutdown``. Where nothing is fed (``InputMode.TENSORFLOW``) the functions' processes
    get SIGTERM, and SIGKILL 30 seconds later.

    The driver must run on this machine, as this process's user, which the kernel verifies: no key is needed.

    Args:
        cluster: the cluster's id, the beginning of it, or the rendezvous's address, as ``tfos status`` shows them.
        timeout: seconds to wait for the driver.

    Returns:
        The cluster's id.

    Raises:
        tensorflowonspark.errors.NotFoundError: there is no such cluster here; names those that there are.
        ValueError: several clusters' ids begin so.
    """
    answer = _tfos.request_stop(cluster, min(milliseconds(seconds("timeout", timeout)), (1 << 31) - 1))
    return json.loads(answer)["cluster_id"]

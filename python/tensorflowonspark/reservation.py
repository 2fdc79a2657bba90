# SPDX-License-Identifier: Apache-2.0
"""``reservation.Client(addr).request_stop()`` of TensorFlowOnSpark, for scripts that end a streaming cluster."""

from __future__ import annotations

import socket
from typing import List, Tuple, Union

from . import _tfos
from .stopping import request_stop

__all__ = ["Client"]


class Client:
    """Asks the driver whose rendezvous has this address to stop its cluster.

    No connection to that address is made: without the cluster's key nobody talks to it. The driver must run on this machine, as this user.

    Args:
        server_addr: ``(host, port)`` or ``"host:port"``, as ``cluster.cluster_meta["server_addr"]`` and ``tfos status`` show it.
    """

    def __init__(self, server_addr: Union[str, Tuple[str, int]]) -> None:
        host, _, port = server_addr.rpartition(":") if isinstance(server_addr, str) else (server_addr[0], "", str(server_addr[1]))
        self._names = [_joined(name, port) for name in [host.strip("[]"), *_addresses(host.strip("[]"))]]

    def request_stop(self) -> None:
        """See :func:`tensorflowonspark.TFCluster.request_stop`."""
        for name in self._names[1:]:
            try:
                request_stop(name)
                return
            except _tfos.NotFoundError:
                continue
        request_stop(self._names[0])

    def close(self) -> None:
        """Does nothing: there is no connection."""


def _joined(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _addresses(host: str) -> List[str]:
    """What the name resolves to."""
    try:
        return list(dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, None)))
    except OSError:
        return []

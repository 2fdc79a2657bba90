# SPDX-License-Identifier: Apache-2.0
"""``ctx.mgr``: the handle by which ``TFNode.DataFeed`` reaches this node's feed."""

from __future__ import annotations

import threading
from typing import Any, Dict

from . import _tfos

__all__ = ["TFManager"]


class TFManager:
    """This process's link to its node, and a place for values shared by its threads. Thread-safe.

    ``get("state")`` is "running" or "terminating".
    """

    def __init__(self, link: _tfos.Trainer, is_fed: bool) -> None:
        self.link = link
        self.is_fed = is_fed  #: whether Spark feeds this node
        self._lock = threading.Lock()
        self._values: Dict[str, Any] = {"state": "running"}

    def get(self, key: str) -> Any:
        """The value set for ``key``, or None."""
        with self._lock:
            return self._values.get(key)

    def set(self, key: str, value: Any) -> None:
        """Sets a value. ``set("state", "terminating")`` ends feeding to all queues, as ``DataFeed.terminate`` does."""
        with self._lock:
            self._values[key] = value
        if (key, value) == ("state", "terminating"):
            self.link.terminate()

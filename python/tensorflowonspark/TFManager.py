# SPDX-License-Identifier: Apache-2.0
"""``ctx.mgr``: the handle by which ``TFNode.DataFeed`` reaches this node's feed."""

from __future__ import annotations

import threading
from typing import Any, Dict

from . import _tfos

__all__ = ["RowQueue", "TFManager"]


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

    def get_queue(self, name: str) -> "RowQueue":
        """A queue of the node, for programs that read rows one by one; ``DataFeed`` is faster. "output" takes the results of "input".

        Raises:
            tensorflowonspark.errors.NotFoundError: there is no such queue; names those that there are.
        """
        return RowQueue(self.link.open_feed("input" if name == "output" else name))

    def set(self, key: str, value: Any) -> None:
        """Sets a value. ``set("state", "terminating")`` ends feeding to all queues, as ``DataFeed.terminate`` does."""
        with self._lock:
            self._values[key] = value
        if (key, value) == ("state", "terminating"):
            self.link.terminate()


class RowQueue:
    """What programs use of a ``queue.Queue`` of rows."""

    def __init__(self, reader: _tfos.FeedReader) -> None:
        self._reader = reader

    def get(self, block: bool = True) -> Any:
        """The next row, once it has come; None at the end of the feed.

        Raises:
            ValueError: ``block`` is not True.
        """
        if not block:
            raise ValueError("get() waits for the next row: block must be True")
        rows = self._reader.next_rows(1, False)
        return rows[0] if rows else None

    def put(self, result: Any) -> None:
        """Gives the result of the oldest row that has none yet."""
        self._reader.put_results([result])

    def task_done(self) -> None:
        """Does nothing: a row counts as taken when ``get`` gives it."""

# SPDX-License-Identifier: Apache-2.0
"""A cluster that is started again when one of its nodes has failed."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from . import _tfos, arguments, frames

if TYPE_CHECKING:
    from .TFCluster import TFCluster

logger = logging.getLogger("tensorflowonspark")

__all__ = ["RestartingCluster"]


class _Training:
    """What ``train`` was called with, and how many epochs of it the nodes have come behind."""

    def __init__(self, options: Dict[str, Any]) -> None:
        self._options = options
        self._frequency = arguments.validation_epochs(options.pop("validation_freq", 1))
        self._queue = options.get("qname", "input")
        self.epochs = arguments.count("num_epochs", options.pop("num_epochs", 0), 0) or 10
        self.passed = 0
        self._feeds_before = 0

    def run(self, cluster: "TFCluster") -> None:
        """Feeds the epochs that are left; a validation comes after the same epochs as it would have."""
        left = self.epochs - self.passed
        self._feeds_before = cluster._feeds.get(self._queue, 0)
        checked: List[int] = [epoch for epoch in range(1, left + 1) if self._frequency(epoch + self.passed)]
        options = {**self._options, "validation": self._options.get("validation") if checked else None, "validation_freq": checked or 1}
        cluster.train(num_epochs=left, **options)

    def count_passed(self, cluster: "TFCluster", status: dict) -> None:
        """Adds the epochs that the nodes of a cluster that has failed came behind."""
        if cluster._feeds.get(self._queue, 0) > self._feeds_before:
            self.passed += status["progress"]["epochs_passed"]


class RestartingCluster:
    """What ``TFCluster.run(max_restarts=...)`` returns: a :class:`TFCluster` that is started again, with the same function, when a node has failed.

    The function begins anew on each node, and continues from what it has saved (``keras.callbacks.BackupAndRestore``); in ``InputMode.SPARK``
    the training is fed again from the first row of the epoch in which the nodes were. docs/restarts.md says what holds.

    Attributes:
        restarts: how often the cluster was started again so far. The others are those of the present cluster.
    """

    def __init__(self, start: Callable[[], "TFCluster"], most: int) -> None:
        self.restarts = 0
        self._start = start
        self._most = most
        self._training: Optional[_Training] = None
        self._cluster = start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_cluster"], name)

    def __enter__(self) -> "RestartingCluster":
        return self

    def __exit__(self, exc_type: Any, exc: Any, trace: Any) -> None:
        if exc_type is None:
            self.shutdown()
        else:
            self._cluster._abort()

    def train(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`TFCluster.train`, of a DataFrame or an RDD.

        Raises:
            ValueError: of a stream, too: its query starts again from its checkpoint, in a cluster without ``max_restarts``.
            tensorflowonspark.errors.Error: the last failure, when there is no restart left.
        """
        options = inspect.signature(self._cluster.train).bind(*args, **kwargs).arguments
        data = options["dataRDD"]
        if hasattr(type(data), "foreachRDD") or (frames.is_frame(data) and data.isStreaming):
            raise ValueError("max_restarts goes with data that ends; a stream's query is started again by the program, from its checkpoint")
        self._training = _Training(dict(options))
        self._feed()

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`TFCluster.shutdown`. A cluster that fails meanwhile is started again, and fed again what was not used.

        Raises:
            tensorflowonspark.errors.Error: the last failure, when there is no restart left.
        """
        while True:
            try:
                return self._cluster.shutdown(*args, **kwargs)
            except _tfos.Error as failure:
                self._restart(failure)
            if self._training is not None:
                self._feed()

    def _feed(self) -> None:
        """Feeds what is left of the training, whatever fails meanwhile."""
        while True:
            try:
                return self._training.run(self._cluster)  # type: ignore[union-attr]
            except _tfos.Error as failure:
                self._restart(failure)

    def _restart(self, failure: _tfos.Error) -> None:
        """Starts the cluster again; raises the failure if it is none of a node's, was one too many, or the cluster was to stop."""
        status = self._cluster.final_status or self._cluster._status()
        if status["state"] != "failed" or status["stop_requested"]:
            raise failure
        words = "the functions begin anew"
        if self._training is not None:
            self._training.count_passed(self._cluster, status)
            words += f", and the rows are fed again from the first of epoch {self._training.passed + 1} of {self._training.epochs}"
        self._cluster._abort()
        while True:
            if self.restarts == self._most:
                raise type(failure)(f"{failure}\nThe cluster was started again {self.restarts} times before that (max_restarts={self._most})") from None
            self.restarts += 1
            logger.warning("the cluster has failed and is started again, restart %d of %d: %s", self.restarts, self._most, words)
            try:
                self._cluster = self._start()
                return
            except _tfos.Error as error:
                failure = error

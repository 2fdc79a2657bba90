# SPDX-License-Identifier: Apache-2.0
"""The rendezvous' events on the driver: output lines are printed with their node's name, the rest is logged."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Callable, Iterable, List, Optional, Set

from . import _tfos, console
from .failures import text_of
from .results import ResultTable

logger = logging.getLogger("tensorflowonspark")

__all__ = ["EventPump"]

_SLICE_MS = 25  # close() waits for as long
_WATCH_SECS = 0.1
_TENSORBOARD_WAIT_SECS = 30


class EventPump:
    """A thread that takes events until the rendezvous is closed and shows them, and one that waits for the cluster's failure: whatever the
    streams and the logging do that the first shows events with, a failure is acted upon. ``on_stop`` is called when somebody asks that the cluster stops.
    """

    def __init__(self, rendezvous: _tfos.Rendezvous, on_failure: Callable[[], None], on_stop: Callable[[], None]) -> None:
        self._rendezvous = rendezvous
        self._on_failure = on_failure
        self._on_stop = on_stop
        self.results = ResultTable()
        self._ended: Set[int] = set()  # executor ids
        self._warnings: List[str] = []
        self._unshown: Set[str] = set()  # streams that take nothing, which was logged
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=run, name=name, daemon=True)
                         for run, name in ((self._run, "tfos-events"), (self._watch, "tfos-failure"))]
        for thread in self._threads:
            thread.start()

    def has_warning(self, text: str) -> bool:
        """Whether a warning with this text has come."""
        return any(text in warning for warning in self._warnings)

    def have_ended(self, executor_ids: Iterable[int]) -> bool:
        """Whether all that these nodes had to say has come."""
        return self._ended.issuperset(executor_ids)

    def wait(self, seconds: float) -> None:
        """Waits for the next event, or the time."""
        with self._changed:
            self._changed.wait(seconds)

    def await_tensorboard(self, find: Callable[[], Optional[str]]) -> Optional[str]:
        """TensorBoard's address as ``find`` gives it, once it does; None when TensorBoard could not start, or does not serve in 30 seconds."""
        deadline = time.monotonic() + _TENSORBOARD_WAIT_SECS
        while True:
            url = find()
            if url or self.has_warning("TensorBoard") or time.monotonic() > deadline or self._stopping.is_set():
                return url
            self.wait(0.2)

    def close(self) -> None:
        """Takes what has come so far and ends the threads; one that a stream holds up is left to it."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(5)

    def _watch(self) -> None:
        try:
            while not self._stopping.wait(_WATCH_SECS):
                self._rendezvous.check()
        except _tfos.Error:
            self._on_failure()

    def _run(self) -> None:
        while True:
            try:
                text = self._rendezvous.next_event(_SLICE_MS)
            except _tfos.ClosedError:
                return
            if text is not None:
                self._take(json.loads(text))
                with self._changed:
                    self._changed.notify_all()
            elif self._stopping.is_set():
                return

    def _take(self, event: dict) -> None:
        if event["event"] == "result":
            self.results.take(event["executor_id"], event["text"])
            return
        if event["event"] == "ended":
            self._ended.add(event["executor_id"])
        if event["event"] == "warning":
            self._warnings.append(event["message"])
        if event["event"] == "stop_requested":
            self._on_stop()
        try:
            self._show(event)
        except Exception as error:  # of a handler of the application's logging, or of the stream that it logs to
            console.show("stderr", f"tensorflowonspark: this cannot be logged ({text_of(error)}): {event}\n")

    def _show(self, event: dict) -> None:
        kind, node = event["event"], event.get("node") or "node"
        if kind == "line":
            self._print("stderr" if event["stream"] == "stderr" else "stdout", f"[{node}] {event['text']}\n")
        elif kind == "failed":
            logger.error("cluster failed: %s", event["message"])
        elif kind == "warning":
            logger.warning("%s: %s", node, event["message"])
        elif kind == "stop_requested":
            logger.warning("process %s has asked the cluster to stop", event["pid"])
        elif kind == "denied":
            logger.warning("refused %s: %s", event.get("peer"), event["message"])
        elif kind == "dropped":
            logger.warning("%s events were lost because too many came at once", event["count"])
        elif kind == "tensorboard":
            logger.info("TensorBoard runs at %s", event["url"])
        else:
            logger.info("%s: %s", node, {key: value for key, value in event.items() if key != "node"})

    def _print(self, stream_name: str, line: str) -> None:
        error = console.show(stream_name, line)
        if error is not None and stream_name not in self._unshown:
            self._unshown.add(stream_name)
            logger.warning("sys.%s does not take what the nodes print (%s: %s): the executors' logs have it", stream_name,
                           type(error).__name__, text_of(error))

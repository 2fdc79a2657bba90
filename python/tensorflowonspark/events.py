# SPDX-License-Identifier: Apache-2.0
"""The rendezvous' events on the driver: output lines are printed with their node's name, the rest is logged."""

from __future__ import annotations

import json
import logging
import sys
import threading
from typing import Callable, List

from . import _tfos

logger = logging.getLogger("tensorflowonspark")

__all__ = ["EventPump"]

_SLICE_MS = 25  # close() waits for as long


class EventPump:
    """A thread that takes events until the rendezvous is closed."""

    def __init__(self, rendezvous: _tfos.Rendezvous, on_failure: Callable[[], None]) -> None:
        self._rendezvous = rendezvous
        self._on_failure = on_failure
        self._warnings: List[str] = []
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="tfos-events", daemon=True)
        self._thread.start()

    def has_warning(self, text: str) -> bool:
        """Whether a warning with this text has come."""
        return any(text in warning for warning in self._warnings)

    def wait(self, seconds: float) -> None:
        """Waits for the next event, or the time."""
        with self._changed:
            self._changed.wait(seconds)

    def close(self) -> None:
        """Takes what has come so far and ends the thread."""
        self._stopping.set()
        self._thread.join(5)

    def _run(self) -> None:
        while True:
            try:
                text = self._rendezvous.next_event(_SLICE_MS)
            except _tfos.ClosedError:
                return
            if text is not None:
                self._handle(json.loads(text))
                with self._changed:
                    self._changed.notify_all()
            elif self._stopping.is_set():
                return

    def _handle(self, event: dict) -> None:
        kind, node = event["event"], event.get("node") or "node"
        if kind == "line":
            stream = sys.stderr if event["stream"] == "stderr" else sys.stdout
            print(f"[{node}] {event['text']}", file=stream, flush=True)
        elif kind == "failed":
            logger.error("cluster failed: %s", event["message"])
            self._on_failure()
        elif kind == "warning":
            self._warnings.append(event["message"])
            logger.warning("%s: %s", node, event["message"])
        elif kind == "denied":
            logger.warning("refused %s: %s", event.get("peer"), event["message"])
        elif kind == "dropped":
            logger.warning("%s events were lost because too many came at once", event["count"])
        elif kind == "tensorboard":
            logger.info("TensorBoard runs at %s", event["url"])
        else:
            logger.info("%s: %s", node, {key: value for key, value in event.items() if key != "node"})

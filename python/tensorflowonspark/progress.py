# SPDX-License-Identifier: Apache-2.0
"""The line of progress that the driver shows while it feeds."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Callable, Dict, Optional

__all__ = ["ProgressLine"]

_REFRESH_SECS = 0.5
_LINE_SECS = 5.0


class ProgressLine:
    """A context manager that prints rows, rows a second and what the trainers report: over itself on a terminal, else a line each five seconds.

    Args:
        status: gives the status of the cluster (docs/protocol.md, "Status").
        wanted: whether to print; None: only on a terminal.
    """

    def __init__(self, status: Callable[[], dict], wanted: Optional[bool]) -> None:
        self._status = status
        self._terminal = sys.stderr.isatty()
        self._wanted = self._terminal if wanted is None else wanted
        self._stopping = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "ProgressLine":
        if self._wanted:
            self._thread = threading.Thread(target=self._run, name="tfos-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()

    def _run(self) -> None:
        start, first = time.monotonic(), self._rows(self._status())
        period = _REFRESH_SECS if self._terminal else _LINE_SECS
        while not self._stopping.wait(period):
            self._show(start, first)
        self._show(start, first)
        if self._terminal:
            print(file=sys.stderr)

    def _show(self, start: float, first: int) -> None:
        status = self._status()
        rows, seconds = self._rows(status) - first, time.monotonic() - start
        words = [f"{rows:,} rows", f"{rows / max(seconds, 1e-3):,.0f} rows/s", f"{seconds:.0f} s"]
        words += [f"{name} {value:g}" if value == int(value) else f"{name} {value:.4f}"
                  for name, value in self._reported(status).items()]
        line = "  ".join(words)
        print(f"\r{line:<79}" if self._terminal else line, end="" if self._terminal else "\n", file=sys.stderr, flush=True)

    @staticmethod
    def _rows(status: dict) -> int:
        return sum(node.get("rows_read") or 0 for node in status["nodes"])

    @staticmethod
    def _reported(status: dict) -> Dict[str, float]:
        """What the first reporting node says of itself: figures of a synchronous cluster are alike."""
        return next((node["report"] for node in status["nodes"] if node.get("report")), {})

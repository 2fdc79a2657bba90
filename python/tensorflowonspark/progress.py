# SPDX-License-Identifier: Apache-2.0
"""What the driver shows while it feeds: a line on a terminal, a bar in a notebook, lines in a log.

All figures come from the status of the cluster (docs/protocol.md, "Status"), as ``tfos status`` shows them; this module only formats them.
"""

from __future__ import annotations

import contextvars
import html
import logging
import os
import sys
import threading
from typing import Any, Callable, List, Optional

from . import console

logger = logging.getLogger(__name__)

__all__ = ["ProgressLine"]

_BAR_WIDTH = 16
_LINGER_SECS = 2  # for the last figures to be shown: the terminal may block
_SIDES = {"spark": "waiting for Spark", "trainer": "waiting for trainers"}
_CAUSES = {"data": "waits for data", "compute": "computes longer", "silent": "does not answer"}


class ProgressLine:
    """A context manager that shows how far feeding is, how fast, which side is the slower one, and what the trainers report.

    Args:
        status: gives the status of the cluster (docs/protocol.md, "Status").
        wanted: whether to show it; None: only on a terminal and in a notebook.
    """

    def __init__(self, status: Callable[[], dict], wanted: Optional[bool]) -> None:
        self._status = status
        self._wanted = wanted
        self._stopping = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "ProgressLine":
        try:
            display = _choose_display(self._wanted)
        except Exception as error:  # of a notebook's
            logger.debug("no progress is shown: %s", error)
            display = None
        if display is not None:
            # A notebook knows by its context which cell a text belongs to.
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._run, display), name="tfos-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._thread is not None:
            self._stopping.set()
            self._thread.join(_LINGER_SECS)

    def _run(self, display: Any) -> None:
        try:
            while not self._stopping.wait(display.period):
                display.show(self._status()["progress"])
            display.show(self._status()["progress"])
        except Exception as error:  # a notebook's own, or the cluster was closed meanwhile, which train() tells
            logger.debug("no more progress is shown: %s", error)
        finally:
            display.close()


def _choose_display(wanted: Optional[bool]) -> Any:
    if wanted is False:
        return None
    notebook = _find_notebook()
    if notebook is not None:
        return _Notebook(notebook)
    if console.is_terminal("stderr"):
        return _Terminal()
    return _Log() if wanted else None


def _find_notebook() -> Any:
    """IPython, if this runs in a kernel of it; it is never imported for that."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if hasattr(module, "get_ipython") else None
    return module if getattr(shell, "kernel", None) is not None else None


class _Terminal:
    """One line that is written over itself."""

    period = 0.5

    def show(self, progress: dict) -> None:
        words, width = _describe(progress), _terminal_width() - 1
        if progress["fraction"] is not None:
            words.insert(0, _bar(progress["fraction"]))
        line = "  ".join(words)
        while len(line) > width and len(words) > 1:
            words.pop()
            line = "  ".join(words)
        console.show("stderr", f"\r{line[:width]:<{width}}")

    def close(self) -> None:
        console.show("stderr", "\n")


class _Notebook:
    """A bar below the cell."""

    period = 1.0

    def __init__(self, module: Any) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)

    def show(self, progress: dict) -> None:
        fraction = progress["fraction"]
        bar = "" if fraction is None else f'<progress value="{fraction}" max="1"></progress> {fraction:.0%} '
        self._handle.update(self._html(f"<div>{bar}{html.escape(' · '.join(_describe(progress)))}</div>"))

    def close(self) -> None:
        pass


class _Log:
    """A line each five seconds."""

    period = 5.0

    def show(self, progress: dict) -> None:
        words = _describe(progress)
        if progress["fraction"] is not None:
            words.insert(0, f"{progress['fraction']:.0%}")
        console.show("stderr", "  ".join(words) + "\n")

    def close(self) -> None:
        pass


def _terminal_width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _bar(fraction: float) -> str:
    full = round(fraction * _BAR_WIDTH)
    return f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] {fraction:4.0%}"


def _describe(progress: dict) -> List[str]:
    """The figures that are known, the most important first."""
    words = []
    if progress["rows_per_second"] is not None:
        words.append(f"{progress['rows_per_second']:,.0f} rows/s")
    if progress["slower"] is not None:
        words.append(_SIDES[progress["slower"]])
    if progress["straggler"] is not None:
        words.append(f"waiting for {progress['straggler']['node']}, which {_CAUSES[progress['straggler']['cause']]}")
    if progress["seconds_left"] is not None:
        words.append(f"{_duration(progress['seconds_left'])} left")
    words.append(f"{progress['rows']:,} rows")
    if progress["bytes_per_second"] is not None:
        words.append(f"{progress['bytes_per_second'] / 1e6:.1f} MB/s")
    if progress["ring_fill"] is not None:
        words.append(f"ring {progress['ring_fill']:.0%}")
    if (progress["epochs"] or 1) > 1:
        words.append(f"epoch {progress['epoch']} of {progress['epochs']}")
    if progress["partitions"]["total"] is not None:
        words.append(f"{progress['partitions']['done']}/{progress['partitions']['total']} partitions")
    return words + [_figure(name, value) for name, value in (progress["report"] or {}).items()]


def _figure(name: str, value: float) -> str:
    return f"{name} {value:g}" if value == int(value) else f"{name} {value:.4f}"


def _duration(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"

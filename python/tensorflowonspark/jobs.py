# SPDX-License-Identifier: Apache-2.0
"""Spark jobs on threads of their own, each in its own job group, so that they can be cancelled alone."""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from typing import Any, Callable, List, Optional

from . import _tfos
from .failures import printable

logger = logging.getLogger(__name__)

__all__ = ["SparkJob", "advice", "brief", "own_error", "run_instances"]

_CANCEL_SECS = 0.5

# An exception of tfos.jar in a report of the JVM: the name of its class here, and its text.
_JVM_ERROR = re.compile(r"org\.tfos\.TfosException: (\w+): (.*?)(?=\n\s+at |\n+Driver stacktrace:|\Z)", re.DOTALL)

# Where a task's Python exception begins; Spark 4.3 has words before it when the task could not even be read.
_TRACEBACK = re.compile(r"(.*PythonException: .*)?Traceback \(most recent call last\)")


class SparkJob:
    """One action on a thread that inherits the caller's Spark properties. Thread-safe.

    ``spark`` is one of :mod:`tensorflowonspark.sessions`.
    """

    def __init__(self, spark: Any, description: str, action: Callable[[], Any]) -> None:
        self._spark = spark
        self._group = f"tfos-{uuid.uuid4().hex}"
        self._description = description
        self._action = action
        self._error: Optional[BaseException] = None
        self._on_error: Optional[Callable[[BaseException], None]] = None
        self._cancelled = False
        # Waited for instead of the thread: one that is joined when Ctrl-C comes counts as ended in Python 3.9 to 3.12 (bpo-45274).
        self._ended = threading.Event()
        self._thread: Any = None
        self._task_count = 0

    def start(self, on_error: Optional[Callable[[BaseException], None]] = None) -> None:
        """Starts the action; ``on_error`` is called on its thread when it fails."""
        self._on_error = on_error
        self._thread = self._spark.new_thread(self._run)
        self._thread.daemon = True
        self._thread.start()

    def run(self, watch: Optional[Callable[[], None]] = None) -> None:
        """Starts the action, waits for its end and raises what it raised. Ctrl-C cancels it. ``watch`` is called now and then meanwhile."""
        self.start()
        try:
            self._ended.wait(0.1)
            while not self._ended.is_set():
                if watch is not None:
                    watch()
                self._ended.wait(0.5)
        except BaseException:
            self.cancel()
            raise
        if self._error is not None:
            raise self._error

    def task_count(self) -> int:
        """How many tasks the newest stage has, which is the one that yields the result; 0 while that is not known."""
        try:
            tracker = self._spark.sc.statusTracker()
            stages = tracker.getJobInfo(max(tracker.getJobIdsForGroup(self._group))).stageIds
            self._task_count = int(tracker.getStageInfo(max(stages)).numTasks)
        except Exception as error:  # there is no such job yet, Spark has forgotten the stage, or its context is gone
            logger.debug("the number of tasks stays %d: %s", self._task_count, error)
        return self._task_count

    def cancel(self) -> None:
        """Cancels the job's tasks. Does nothing once it has ended or the context has stopped."""
        self._cancelled = True
        if self._thread is None or self._ended.is_set() or self._thread is threading.current_thread():
            return
        try:
            self._spark.cancel_jobs(self._group)
        except Exception:  # the context is gone, and its jobs with it
            return

    def end(self, timeout: float, patience: float = 0) -> None:
        """Cancels the job, also one that Spark does not know yet, and waits for its end; before that ``patience`` seconds for one that ends by itself."""
        if self._thread is not None:
            self._ended.wait(patience)
        deadline = time.monotonic() + timeout
        while self._thread is not None and not self._ended.is_set() and time.monotonic() < deadline:
            self.cancel()
            self._ended.wait(_CANCEL_SECS)

    def _run(self) -> None:
        try:
            self._spark.name_jobs(self._group, self._description)
            self._action()
        except BaseException as error:  # raised by the call that waits
            self._error = error
            if self._on_error is not None and not self._cancelled:
                self._on_error(error)
        finally:
            self._ended.set()


def run_instances(spark: Any, count: int, task: Callable[[int], bytes], barrier: bool, failure: str) -> List[Any]:
    """The pickled results of the task for each number, unpickled.

    Raises:
        tensorflowonspark.errors.Error: the Spark job failed; the text begins with ``failure``.
    """
    from pyspark.serializers import CloudPickleSerializer

    results: List[bytes] = []
    job = SparkJob(spark, f"{count} instances of a function", lambda: results.extend(spark.run_each(count, task, barrier)))
    try:
        job.run()
    except Exception as error:
        text = brief(error)
        raise _tfos.Error(f"{failure}: {text}{advice(text)}") from error
    return list(map(CloudPickleSerializer().loads, results))


def own_error(error: BaseException) -> Optional[_tfos.Error]:
    """The error of this package that a Spark task raised, without Spark's words and the JVM's stack; None when it was another's."""
    text = brief(error)
    match = re.match(r"tensorflowonspark\.errors\.(\w+): (.*)", text, re.DOTALL) or _JVM_ERROR.search(str(error))
    kind = getattr(_tfos, match.group(1), None) if match else None
    return kind(match.group(2)) if kind else None


def advice(text: str) -> str:
    """What to do about an error of a task with this ``text``, to be appended to it; empty where nothing is known."""
    if "No module named 'tensorflowonspark" not in text:
        return ""
    return (". The Python of the executors lacks this package, or has another of its name: install tfos there, or let PYSPARK_PYTHON "
            "(spark.pyspark.python) name a Python that has it")


def brief(error: BaseException) -> str:
    """The part of a Spark error that says what happened: the Python exception of the task, without the JVM's stack."""
    lines = [line.rstrip() for line in printable(str(error)).splitlines()]
    for number in range(len(lines) - 1, -1, -1):
        if _TRACEBACK.match(lines[number]):
            tail = [line for line in lines[number:] if not line.startswith(" SQLSTATE: ")]
            last = next((i for i, line in enumerate(tail) if i and line and not line.startswith((" ", "\t"))), None)
            if last is not None:
                end = next((i for i in range(last, len(tail)) if not tail[i] or tail[i].lstrip().startswith("at ")), len(tail))
                return "\n".join(tail[last:end])
    return "\n".join(line for line in lines if not line.lstrip().startswith("at "))[:2000]

# SPDX-License-Identifier: Apache-2.0
"""Streams over Spark Connect: the server offers each batch of a query, and the client feeds it.

Spark Connect calls what ``foreachBatch`` was given in a process beside the server, which reaches the client only through Spark. So the two
exchange global temporary views, which all sessions of an application see: the server's side writes a batch's rows and number there, the client's side
the batch that it has fed, and a counter as its heartbeat. A side whose peer stops ends with an error.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from typing import Any, Callable, Mapping, Optional, Union

from . import streaming

logger = logging.getLogger(__name__)

__all__ = ["Offer", "OfferFeed"]

_HEARTBEAT_SECS = 10  # between two writes of the client, at most
_CLIENT_TIMEOUT_SECS = 120
_STARTS = 3
_TOO_LATE = "worker failed to connect back"
_END_SECS = 10  # for the thread to end once its query has
_LEAST_PAUSE_SECS = 0.05
_LONGEST_PAUSE_SECS = 0.5


class _Views:
    """The views of one query. Each write and read is a call to the server, and no job of Spark's: it needs no task slot."""

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        self._name = name
        self._database = session.conf.get("spark.sql.globalTempDatabase", "global_temp")

    def write(self, part: str, count: int, batch: int, error: str) -> None:
        from pyspark.sql.types import LongType, StringType, StructField, StructType

        schema = StructType([StructField("count", LongType()), StructField("batch", LongType()), StructField("error", StringType())])
        self.show(part, self._session.createDataFrame([(count, batch, error)], schema))

    def read(self, part: str) -> Any:
        return self.frame(part).collect()[0]

    def show(self, part: str, frame: Any) -> None:
        frame.createOrReplaceGlobalTempView(f"{self._name}_{part}")

    def frame(self, part: str) -> Any:
        return self._session.table(f"{self._database}.{self._name}_{part}")

    def drop(self, *parts: str) -> None:
        for part in parts:
            self._session.catalog.dropGlobalTempView(f"{self._name}_{part}")


class _Pauses:
    """Short pauses while something happens, longer ones when nothing does."""

    def __init__(self) -> None:
        self.seconds = _LEAST_PAUSE_SECS

    def grow(self) -> None:
        self.seconds = min(self.seconds * 1.5, _LONGEST_PAUSE_SECS)


class Offer:
    """The server's side: shows a batch and returns when the client has fed it. Given to ``foreachBatch``, it travels by pickle."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, frame: Any, batch: int) -> None:
        views = _Views(frame.sparkSession, self._name)
        views.show("rows", frame)
        views.write("offer", 0, batch, "")
        try:
            self._await_answer(views, batch)
        finally:
            views.drop("rows")

    def _await_answer(self, views: _Views, batch: int) -> None:
        pauses, seen, since = _Pauses(), -1, time.monotonic()
        while True:
            answer = views.read("answer")
            if answer["batch"] == batch:
                if answer["error"]:
                    raise RuntimeError(answer["error"])
                return
            if answer["count"] != seen:
                seen, since = answer["count"], time.monotonic()
            elif time.monotonic() - since > _CLIENT_TIMEOUT_SECS:
                raise TimeoutError(f"batch {batch} was not fed: the client process, which is the driver of the cluster, has said nothing for "
                                   f"{_CLIENT_TIMEOUT_SECS} s")
            time.sleep(pauses.seconds)
            pauses.grow()


class _Stopped(Exception):
    """The query was stopped while a batch was being fed."""


class OfferFeed(streaming.QueryFeed):
    """The client's side of a query, whose batches it takes from the views and feeds on a thread of its own.

    ``run`` gets the number of a feed, what feeds it, and what is to be called now and then meanwhile, and raises when it must end.
    """

    def __init__(self, batches: streaming.BatchFeed, action_of: Callable[[Any], streaming.Action], is_wanted: Callable[[], bool],
                 check: Callable[[], None], run: Callable[[int, Callable[[], Any], Callable[[], None]], None]) -> None:
        super().__init__(batches, action_of, is_wanted, check)
        self._run = run
        self._views: Any = None
        self._count = 0  # of the reports to the server's side
        self._reported = 0.0  # when the last one was written
        self._answer = (-1, "")  # batch that was answered last, and what it failed by
        self._failure: Optional[BaseException] = None

    def start(self, frame: Any, checkpoint: Optional[str], trigger: Union[None, str, Mapping[str, Any]]) -> Any:
        """Starts the query and returns it."""
        for left in reversed(range(_STARTS)):
            try:
                return super().start(frame, checkpoint, trigger)
            except BaseException as error:
                self._drop()
                # Spark gives the process beside the server 10 s to begin, however busy the machine is.
                if left == 0 or _TOO_LATE not in str(error):
                    raise
                logger.warning("the server's process for batches did not begin in time; it is started again")

    def _prepare(self, frame: Any) -> Callable[[Any, int], None]:
        name = f"tfos_{secrets.token_hex(8)}"
        self._views = _Views(frame.sparkSession, name)
        self._views.write("offer", 0, -1, "")
        self._report()
        return Offer(name)

    def cancel(self) -> None:
        """Does nothing: the job that feeds a batch is one of the cluster's own."""

    def stop(self) -> None:
        if self._watcher.is_alive():  # the server forgets queries some time after their end
            super().stop()

    def failure(self) -> Optional[BaseException]:
        self._watcher.join(_END_SECS)
        return None if self._was_stopped else self._failure

    def close(self, timeout: float) -> None:
        super().close(timeout)
        self._drop()

    def _drop(self) -> None:
        if self._views is None:
            return
        with contextlib.suppress(Exception):  # the server has gone, and its views with it
            self._views.drop("offer", "answer", "rows")

    def _watch(self) -> None:
        try:
            self._follow()
            self._failure = self.query.exception()
        except Exception as error:  # the application has ended, or the server cannot be reached
            if not self._closing.is_set():
                logger.warning("lost touch with the query that feeds the cluster: %s", error)

    def _follow(self) -> None:
        pauses = _Pauses()
        while not self._closing.wait(pauses.seconds) and self.query.isActive:
            if not self._is_wanted():
                self.stop()
                return
            self._report_when_due()
            batch = self._views.read("offer")["batch"]
            pauses.grow()
            if batch != self._answer[0]:
                self._serve(batch)
                pauses = _Pauses()

    def _serve(self, batch: int) -> None:
        """Feeds what was offered, and reports it. Once the query is to end, it is left to be fed when the query starts again."""
        if not self._begin():
            return
        try:
            self._newest = batch
            self._answer = (batch, self._fed(batch))
            self._report()
        finally:
            self._finish()

    def _fed(self, batch: int) -> str:
        """Feeds a batch. The message of its failure; empty where there is none."""
        try:
            self._check()
            action = self._action_of(self._views.frame("rows"))
            self._batches.feed(lambda feed: lambda: self._run(feed, action(feed), self._check_running), self.query.id, batch, self._check_running)
        except Exception as error:
            self._was_stopped = not self.query.isActive
            return str(error) or type(error).__name__
        return ""

    def _check_running(self) -> None:
        self._report_when_due()
        if self._closing.is_set() or not self.query.isActive:
            raise _Stopped("the query was stopped")

    def _report_when_due(self) -> None:
        if time.monotonic() - self._reported > _HEARTBEAT_SECS:
            self._report()

    def _report(self) -> None:
        self._count += 1
        self._views.write("answer", self._count, *self._answer)
        self._reported = time.monotonic()

# SPDX-License-Identifier: Apache-2.0
"""Streams to a cluster: the batches of DStreams and of Structured Streaming, one after the other."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple, Union

from . import _tfos, jobs

logger = logging.getLogger(__name__)

__all__ = ["BatchFeed", "QueryFeed", "await_end", "is_query"]

_WATCH_SECS = 0.5
_START_SECS = 60
_STOP_SECS = 60
_STOP_POLL_MS = 50
_COMMIT_SECS = 10
_COMMIT_POLL_SECS = 0.05

Action = Callable[[int], Callable[[], Any]]  # gives, for the number of a feed, what feeds a batch


def is_query(stream: Any) -> bool:
    """Whether ``stream`` is a StreamingQuery, and not a StreamingContext."""
    return hasattr(stream, "runId")


class BatchFeed:
    """Gives batches their feeds: one each, and to a batch that comes again the one that it had. Feeds one at a time; thread-safe.

    Args:
        rendezvous: the cluster's.
        next_feed: gives the number of the next feed.
        queue: the queue that they are fed to.
    """

    def __init__(self, rendezvous: _tfos.Rendezvous, next_feed: Callable[[], int], queue: str) -> None:
        self._rendezvous = rendezvous
        self._next_feed = next_feed
        self._queue = queue
        self._lock = threading.Lock()
        self._partial: Optional[Tuple[Any, Any, int]] = None  # stream, batch and feed of what was not fed to its end
        self._fed: Dict[str, int] = {}  # by stream: its newest batch

    def feed(self, action: Action, stream: Optional[str] = None, batch: Optional[int] = None,
             watch: Optional[Callable[[], None]] = None) -> None:
        """Feeds a batch. Without ``stream`` and ``batch`` it is one that does not come again. ``watch`` is called now and then while it waits
        for its turn."""
        with self._turn(watch):
            if stream is not None and batch is not None and batch <= self._fed.get(stream, -1):
                logger.info("batch %s of stream %s has been fed: its query ended before it had noted that", batch, stream)
                return
            if self._partial is not None and (stream is None or self._partial[:2] != (stream, batch)):
                self._end()
            if self._partial is None:
                self._partial = (stream, batch, self._next_feed())
            action(self._partial[2])()
            self._end()
            if stream is not None and batch is not None:
                self._fed[stream] = batch

    @contextlib.contextmanager
    def _turn(self, watch: Optional[Callable[[], None]]) -> Iterator[None]:
        while not self._lock.acquire(timeout=_WATCH_SECS):
            if watch is not None:
                watch()
        try:
            yield
        finally:
            self._lock.release()

    def _end(self) -> None:
        assert self._partial is not None
        self._rendezvous.end_batch(self._partial[2], self._queue)
        self._partial = None


class QueryFeed:
    """A query that feeds a streaming DataFrame, and a thread that ends it when nobody wants its rows any more.

    Args:
        batches: the cluster's.
        action_of: gives what feeds a batch's DataFrame.
        is_wanted: whether there is a node that takes rows.
        check: raises the cluster's failure if there is one.
    """

    def __init__(self, batches: BatchFeed, action_of: Callable[[Any], Action], is_wanted: Callable[[], bool],
                 check: Callable[[], None]) -> None:
        self._batches = batches
        self._action_of = action_of
        self._is_wanted = is_wanted
        self._check = check
        self._sc: Any = None
        self.query: Any = None
        self._changed = threading.Condition()
        self._is_feeding = False
        self._is_ending = False
        self._is_awaiting_stop = False
        self._was_stopped = False
        self._newest = -1  # batch
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="tfos-stream", daemon=True)

    def start(self, frame: Any, checkpoint: Optional[str], trigger: Union[None, str, Mapping[str, Any]]) -> Any:
        """Starts the query and returns it."""
        writer = frame.writeStream.foreachBatch(self._prepare(frame))
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", checkpoint)
        if trigger is not None:
            writer = writer.trigger(**({"processingTime": trigger} if isinstance(trigger, str) else trigger))
        query = writer.start()
        with self._changed:
            self.query = query
            self._changed.notify_all()
        self._watcher.start()
        return query

    def _prepare(self, frame: Any) -> Callable[[Any, int], None]:
        """What Spark is to call for each batch."""
        self._sc = frame.sparkSession.sparkContext
        return self._feed

    def stop(self) -> None:
        """Stops the query behind the batch that is being fed, when that is committed."""
        with self._changed:
            self._is_ending = True
            while self._is_feeding and self.query.isActive:
                self._changed.wait(_WATCH_SECS)
            deadline = time.monotonic() + _COMMIT_SECS
            while not self._is_committed() and time.monotonic() < deadline:
                self._changed.wait(_COMMIT_POLL_SECS)
        self.query.stop()

    def _is_committed(self) -> bool:
        if self._newest < 0 or self._is_awaiting_stop or not self.query.isActive:
            return True
        progress = self.query.lastProgress
        return progress is not None and progress["batchId"] >= self._newest

    def cancel(self) -> None:
        """Cancels the Spark job that feeds a batch, which ends the query."""
        if self.query is not None and self._is_feeding:
            with contextlib.suppress(Exception):  # the context is gone, and its jobs with it
                self._sc.cancelJobGroup(self.query.runId)

    def failure(self) -> Optional[BaseException]:
        """What the query failed by; None while it runs, and where it was stopped."""
        return None if self._was_stopped else self.query.exception()

    def close(self, timeout: float) -> None:
        """Stops the query, in the middle of a batch if need be, and the thread."""
        self._closing.set()
        with self._changed:
            self._is_ending = True
        try:
            self.query.stop()
        except Exception as error:  # the application is gone, or the query has failed: nothing runs either way
            logger.debug("while stopping a query: %s", error)
        self._watcher.join(timeout)

    def _watch(self) -> None:
        try:
            while self.query.isActive and not self._closing.wait(_WATCH_SECS):
                if not self._is_wanted():
                    self.stop()
                    return
        except Exception as error:  # the application or the cluster has ended meanwhile, and the query with it
            logger.debug("while watching a query: %s", error)

    def _feed(self, frame: Any, batch: int) -> None:
        with self._feeding(frame):
            self._newest = batch
            try:
                self._check()
                # On this thread, and so within the query's own job group: who stops the query stops it.
                self._batches.feed(self._action_of(frame), self.query.id, batch)
            except Exception as error:
                self._check()
                if not self.query.isActive:
                    self._was_stopped = True
                    self._end_as_stopped(frame)
                own = jobs.own_error(error)
                if own is None:
                    raise
                raise own from error

    @contextlib.contextmanager
    def _feeding(self, frame: Any) -> Iterator[None]:
        with self._changed:
            if not self._changed.wait_for(lambda: self.query is not None, _START_SECS):
                raise TimeoutError(f"the query did not start within {_START_SECS} s")
        if not self._begin():
            self._end_as_stopped(frame)
        try:
            yield
        finally:
            self._finish()

    def _begin(self) -> bool:
        """Whether a batch may be fed; not once the query is to end."""
        with self._changed:
            self._is_feeding = not self._is_ending
            if self._is_ending:
                self._is_awaiting_stop = True
                self._changed.notify_all()
            return self._is_feeding

    def _finish(self) -> None:
        with self._changed:
            self._is_feeding = False
            self._changed.notify_all()

    def _end_as_stopped(self, frame: Any) -> None:
        """Ends the batch, uncommitted, in the way by which Spark knows that the query was stopped: an interrupt of the stream's thread."""
        thread = frame.sparkSession.sparkContext._jvm.java.lang.Thread
        deadline = time.monotonic() + _STOP_SECS
        while self.query.isActive:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the query was to be stopped, and was not within {_STOP_SECS} s")
            thread.sleep(_STOP_POLL_MS)
        # Who stops a query interrupts its thread, but Hadoop may have swallowed that.
        thread.currentThread().interrupt()
        thread.sleep(_STOP_POLL_MS)


def await_end(ssc: Any, is_wanted: Callable[[], bool], check: Callable[[], None]) -> None:
    """Waits for the end of a StreamingContext or a StreamingQuery; stops it once nobody wants its rows."""
    if is_query(ssc):
        while ssc.isActive and is_wanted():
            with contextlib.suppress(Exception):  # it has failed, which is raised when the functions have returned
                ssc.awaitTermination(1)
        return
    try:
        while not ssc.awaitTerminationOrTimeout(1):
            check()
            if not is_wanted():
                ssc.stop(stopSparkContext=False, stopGraceFully=True)
                return
    except Exception:
        with contextlib.suppress(Exception):  # at once: to stop gracefully is to feed what has come, for ten batches' time
            ssc.stop(stopSparkContext=False, stopGraceFully=False)
        check()  # the cluster's failure is the cause of the stream's
        raise

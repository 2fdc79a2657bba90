# SPDX-License-Identifier: Apache-2.0
"""Starting, feeding and stopping a TensorFlow cluster on the executors of a Spark application.

A cluster has three phases. :func:`run` starts a node on each executor and returns once all of them run the user's function.
:meth:`TFCluster.train` and :meth:`TFCluster.inference` feed RDDs to it (``InputMode.SPARK``). :meth:`TFCluster.shutdown` waits for
the functions to return and ends everything. What fails raises :class:`tensorflowonspark.errors.Error`, whose text names the node, the
cause and what to do; the SparkContext stays usable.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import secrets
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union

from . import _tfos, arguments, failures, files, frames, gpus, inference, jobs, launch, offers, slots, streaming
from .arguments import InputMode
from .events import EventPump
from .progress import ProgressLine
from .restarts import RestartingCluster
from .sessions import spark_of
from .stopping import request_stop

logger = logging.getLogger(__name__)

__all__ = ["InputMode", "TFCluster", "request_stop", "run"]

_STOP_GRACE_SECS = 10
_TASK_END_SECS = 2  # until Spark knows that the tasks of ended nodes are over: it calls a cancelled job a failed one
_EVALUATOR_WAIT_SECS = 60  # for a fed evaluator to return after the workers
_VALIDATION = arguments.VALIDATION
_SCHEMA_LIMIT = 1 << 20  # of a schema that the rendezvous sends nodes before the rows


class TFCluster:
    """A running cluster. Made by :func:`run`; also a context manager that shuts the cluster down.

    Attributes:
        sc: the SparkContext; None over Spark Connect.
        cluster_id: text that identifies this cluster.
        cluster_info: a list of dictionaries, one a node, sorted by ``executor_id``, with ``host``, ``port``, ``job_name``,
            ``task_index``, and of TensorBoard, once it serves, ``tb_pid`` and ``tb_port``.
        cluster_meta: what the nodes were started with (without the key).
        input_mode: an :class:`InputMode`.

    One thread at a time may feed and shut down.
    """

    def __init__(self, spark: Any, meta: Any, rendezvous: Any, input_mode: int, queues: List[str], tensorboard: bool) -> None:
        self.sc = spark.sc
        self.cluster_id = meta.cluster_id
        self.cluster_meta = self.meta = meta.public()
        self.input_mode = input_mode
        self.queues = queues
        self.defaultFS = meta.default_fs
        self.working_dir = meta.working_dir
        self.num_executors = meta.num_executors
        self.nodeRDD: Any = None
        self.server = rendezvous
        self._spark = spark
        self._meta = meta
        self._rendezvous = rendezvous
        self._tensorboard = tensorboard
        self._feeds: Dict[str, int] = {}  # by queue the number of the present one
        self._batches: Dict[str, streaming.BatchFeed] = {}  # by queue
        self._streamed: Set[str] = set()  # queues that a stream feeds
        self._queries: List[streaming.QueryFeed] = []
        self._evaluator_is_fed = False
        self._inferences = 0
        self._jobs: List[jobs.SparkJob] = []
        self._local_nodes: List[threading.Thread] = []
        self._failure_raised = False
        self.final_status: Optional[dict] = None  # as it was when the cluster was closed
        self._closed = False
        self._pid = os.getpid()
        self._events = EventPump(rendezvous, self._on_failure, self._on_stop)

    @property
    def cluster_info(self) -> List[dict]:
        return [launch.describe_node(node) for node in self._nodes()]

    def __enter__(self) -> "TFCluster":
        return self

    def __exit__(self, exc_type: Any, exc: Any, trace: Any) -> None:
        if exc_type is None:
            self.shutdown()
        else:
            self._abort()

    # -- feeding

    def train(self, dataRDD: Any, num_epochs: int = 0, feed_timeout: float = 600, qname: str = "input",
              progress: Optional[bool] = None, columns: Optional[Sequence[str]] = None, shuffle: Union[bool, int] = False,
              via: Optional[str] = None, checkpoint: Optional[str] = None,
              trigger: Union[None, str, Mapping[str, Any]] = None, validation: Any = None,
              validation_freq: Union[int, Iterable[int]] = 1) -> Any:
        """Feeds a DataFrame or an RDD to the workers and returns when they have taken all of it, or feeds a stream and returns at once.

        Each row is fed once an epoch, whatever Spark retries. An epoch is a Spark job of its own and its end reaches
        ``ctx.get_dataset``; ``DataFeed`` sees one stream of rows. A stream, of a streaming DataFrame or a DStream, is fed batch by batch as
        they come, and is one epoch, which ends with the feed. docs/streaming.md says what holds when a query starts again.

        Args:
            dataRDD: a DataFrame, a streaming DataFrame, an RDD of rows of any Python type, or a DStream of such RDDs.
            num_epochs: how often it is fed; 0 is 10. Feeding stops early, without an error, when all
                workers have called ``terminate()`` or have returned.
            feed_timeout: seconds in which a worker may take no row at all before feeding fails.
            qname: the queue: "input", which ``ctx.get_dataset`` and ``DataFeed`` read, or another that :func:`run` was given.
            progress: show progress and rate; None: on a terminal and in a notebook.
            columns: names of the DataFrame's columns to feed; None: all.
            shuffle: True, or an integer as the seed: Spark reorders the DataFrame's rows for each epoch, over all partitions
                (spark.sql.shuffle.partitions of them).
            via: how a DataFrame's rows leave Spark: "jvm" straight from its JVMs, "arrow" through Python workers; None: "jvm" where possible.
            checkpoint: of a streaming DataFrame, the directory in which Spark keeps the query's progress.
            trigger: of a streaming DataFrame, when it makes batches: an interval such as "10 seconds", or a dictionary of the arguments of
                ``DataStreamWriter.trigger``, such as ``{"availableNow": True}``; None: a batch as soon as the one before is fed.
            validation: a DataFrame or an RDD that is fed once after each epoch, to the queue "validation": every worker gets a share, which
                ``ctx.get_dataset(split="validation")`` or ``DataFeed(qname_in="validation")`` reads; in a cluster with an evaluator
                (``eval_node=True``) the evaluator gets it all. It must be read each time: an epoch is fed when the validation before it is. ``columns``
                and ``via`` hold for it too.
            validation_freq: after which epochs, as in ``fit(validation_freq=...)``, which must get the same value: each n-th, or those that are
                listed, counted from 1.

        Returns:
            The StreamingQuery of a streaming DataFrame, else None. The query ends when all workers have terminated the feed or returned.

        Raises:
            ValueError: an argument is wrong, a column does not exist or has a type that cannot be fed, or the cluster is not in
                ``InputMode.SPARK``.
            tensorflowonspark.errors.Error: a node failed or takes no rows any more.
        """
        feed_timeout = self._check_feeding(feed_timeout, qname)
        num_epochs = arguments.count("num_epochs", num_epochs, 0)
        progress = None if progress is None else bool(progress)
        frames.check_rows(dataRDD, "train() takes a DataFrame, an RDD or a DStream")
        is_frame = frames.is_frame(dataRDD)
        if not is_frame:
            self._spark.refuse(f"train() of a {type(dataRDD).__name__}", "pass a DataFrame; RDDs and DStreams need Spark's driver here")
        frequency = arguments.validation_epochs(validation_freq)
        if hasattr(type(dataRDD), "foreachRDD"):
            if validation is not None:
                raise ValueError("validation goes with a DataFrame or an RDD, not with a stream")
            batches = self._batches_of(qname)
            self._streamed.add(qname)
            dataRDD.foreachRDD(lambda rdd: self._feed_rdd_batch(batches, self._feeding(rdd, feed_timeout, qname)))
            return None
        if is_frame and dataRDD.isStreaming:
            if validation is not None:
                raise ValueError("validation goes with a DataFrame or an RDD, not with a stream")
            timeout_ms = arguments.milliseconds(feed_timeout)
            return self._start_query(dataRDD, num_epochs, timeout_ms, qname, columns, shuffle, via, checkpoint, trigger)
        if checkpoint is not None or trigger is not None:
            raise ValueError("checkpoint and trigger are for streaming DataFrames")
        if qname in self._streamed:
            raise ValueError("this cluster is fed by a stream, which is one epoch until the feed ends: train on other data before it, "
                             "or with a cluster of its own")
        training = self._feeding(dataRDD, feed_timeout, qname, "trainers", columns, shuffle, via)
        checking = None if validation is None else self._validation(validation, feed_timeout, qname, columns, via)
        epochs = range(1, (num_epochs or 10) + 1)
        checked = set() if checking is None else set(filter(frequency, epochs))
        self._describe(training, len(epochs))
        if checked:
            self._describe(checking, len(checked))
        with ProgressLine(self._status, progress):
            for epoch in epochs:
                if not self._feed_epoch(training, epoch, len(epochs)):
                    break
                if epoch in checked and self._wants_rows(checking.queue, checking.job):
                    self._feed_epoch(checking)
            self._wait(_tfos.DRAINED, feed_timeout)
        return None

    def inference(self, dataRDD: Any, output_schema: Any = None, feed_timeout: float = 600, qname: str = "input",
                  keep: Union[None, str, Sequence[str]] = None, columns: Union[None, str, Sequence[str]] = None,
                  via: Optional[str] = None) -> Any:
        """A DataFrame (or an RDD) of one result a row, in order, partition by partition; computed when an action asks for it, each time anew.

        The function must read with ``DataFeed(train_mode=False)`` and answer each row by ``batch_results``. Of a DataFrame columns are fed and
        columns come back, without row objects, where the function uses ``next_arrays`` and answers with arrays.

        Args:
            dataRDD: a DataFrame, or an RDD of rows of any Python type.
            output_schema: of a DataFrame: the results' columns, as a StructType or text such as ``"label int, scores array<float>"``. A
                result that is a dict or Row goes there by name, a tuple or list by place, one value into the one column. Values are cast where
                nothing is lost by it; arrays are dense vectors where ``VectorUDT`` is declared. With an RDD, a number is the ``feed_timeout``.
            feed_timeout: seconds in which no row may be taken and no result come before it fails.
            qname: the queue: "input", or another that :func:`run` was given.
            keep: names of the DataFrame's columns that come before the results.
            columns: names of the DataFrame's columns to feed; None: all.
            via: "jvm": without Python workers; "arrow": through them; None: the first where it is possible, which it is with Spark's own JVM
                and an ``output_schema`` of numbers, booleans, strings, binary and arrays of them. Results must then be such values, too, or
                numpy arrays of them: lists whose elements differ in type, and rows that differ in their columns, only Python can read.

        Raises:
            ValueError: an argument is wrong, a column does not exist, is there twice or has a type that cannot be carried, or the cluster is
                not in ``InputMode.SPARK``.
            tensorflowonspark.errors.UnsupportedError: a column's type cannot be fed, or ``via="jvm"`` is not possible.
        """
        if arguments.is_number(output_schema):
            feed_timeout, qname = output_schema, feed_timeout if isinstance(feed_timeout, str) else qname
            output_schema = None
        feed_timeout = self._check_feeding(feed_timeout, qname)
        frames.check_rows(dataRDD, "inference() takes a DataFrame or an RDD")
        if frames.is_frame(dataRDD):
            timeout_ms = arguments.milliseconds(feed_timeout)
            self._inferences += 1
            return inference.infer(self._meta, dataRDD, self._inferences, timeout_ms, qname, output_schema, keep, columns, via)
        self._spark.refuse(f"inference() of a {type(dataRDD).__name__}", "RDDs need Spark's driver here")
        if any(option is not None for option in (output_schema, keep, columns, via)):
            raise ValueError("output_schema, keep, columns and via are for DataFrames, not for RDDs")
        self._inferences += 1
        return dataRDD.mapPartitions(launch.FeedTask(self._meta, self._inferences, feed_timeout, qname, results=True))

    def _check_feeding(self, feed_timeout: float, qname: str) -> float:
        """Checks what feeding needs and gives the timeout."""
        if self.input_mode != InputMode.SPARK:
            raise ValueError("train() and inference() need a cluster started with input_mode=InputMode.SPARK")
        if qname not in self.queues:
            raise ValueError(f"unknown queue {qname!r}; this cluster has {', '.join(self.queues)}")
        timeout = arguments.seconds("feed_timeout", feed_timeout)
        if self._closed:
            raise ValueError("the cluster has been shut down")
        return timeout

    def _feeding(self, data: Any, feed_timeout: float, queue: str, job: str = "trainers", columns: Optional[Sequence[str]] = None,
                 shuffle: Union[bool, int] = False, via: Optional[str] = None) -> launch.Feeding:
        """Checks the data."""
        if frames.is_frame(data):
            frame = frames.FrameFeed(self._meta, data, arguments.milliseconds(feed_timeout), queue, columns, shuffle, via, job)
            return launch.Feeding(frame.action, queue, job, frame.schema)
        if columns is not None or via is not None or not (arguments.is_flag(shuffle) and not shuffle):
            raise ValueError("columns, shuffle and via are for DataFrames, not for RDDs")

        def action(feed: int) -> Callable[[], Any]:
            task = launch.FeedTask(self._meta, feed, feed_timeout, queue, results=False, job=job)
            return lambda: data.foreachPartition(task)
        return launch.Feeding(action, queue, job)

    def _describe(self, feeding: launch.Feeding, feeds: int) -> None:
        """Sends the trainers the schema of the next feeds, before the first row; 0: all that follow."""
        schema = feeding.schema if len(feeding.schema.encode()) <= _SCHEMA_LIMIT else "null"
        first = self._feeds.get(feeding.queue, 0) + 1
        self._rendezvous.describe_feed(feeding.queue, schema, first, first + feeds - 1 if feeds else 0)

    def _validation(self, data: Any, feed_timeout: float, training_queue: str, columns: Optional[Sequence[str]],
                    via: Optional[str]) -> launch.Feeding:
        if training_queue == _VALIDATION:
            raise ValueError(f"qname={training_queue!r} is the queue of the validation; train from another")
        frames.check_rows(data, "validation takes a DataFrame or an RDD", "foreachPartition")
        if not frames.is_frame(data):
            columns = via = None
        elif data.isStreaming:
            raise ValueError("validation takes a DataFrame that ends, not a streaming one")
        job = "evaluator" if "evaluator" in self._meta.roles else "trainers"
        self._evaluator_is_fed = job == "evaluator"
        return self._feeding(data, feed_timeout, _VALIDATION, job, columns, False, via)

    def _feed_epoch(self, feeding: launch.Feeding, epoch: int = 0, epochs: int = 0) -> bool:
        """Feeds the data once: the first epoch is 1; 0 when it is none of a training. Returns whether anybody still wants rows of this queue.

        No task of the next feed starts before this one's have ended: all is in the queue then, and a trainer that reads it to the end of
        the epoch waits for no slot of Spark's.
        """
        self._check()
        feed = self._next_feed(feeding.queue)
        self._run_feed(feed, feeding.action(feed), feeding.queue, self._check, epoch, epochs)
        self._rendezvous.end_epoch(feed, feeding.queue)
        self._check()
        return self._wants_rows(feeding.queue, feeding.job)

    def _run_feed(self, feed: int, action: Callable[[], Any], queue: str, check: Callable[[], None], epoch: int = 0, epochs: int = 0,
                  watch: Optional[Callable[[], None]] = None) -> None:
        of_queue = "" if queue == "input" else f" of queue {queue}"
        job = jobs.SparkJob(self._spark, f"feed {feed}{of_queue} of cluster {self.cluster_id}", action)
        self._jobs.append(job)
        try:
            if epochs:
                self._rendezvous.plan_feed(feed, epoch, epochs, queue=queue)
                job.run(lambda: self._rendezvous.plan_feed(feed, epoch, epochs, job.task_count(), queue))
            else:
                job.run(watch)
        except Exception as error:
            job.end(_STOP_GRACE_SECS)
            check()
            own = jobs.own_error(error)
            if own is None:
                raise
            raise own from error
        finally:
            self._jobs.remove(job)

    def _batches_of(self, queue: str) -> streaming.BatchFeed:
        """What numbers the batches of streams to this queue."""
        return self._batches.setdefault(queue, streaming.BatchFeed(self._rendezvous, lambda: self._next_feed(queue), queue))

    def _feed_rdd_batch(self, batches: streaming.BatchFeed, feeding: launch.Feeding) -> None:
        check = self._rendezvous.check  # shutdown() raises the failure: what is raised here stays within Spark
        check()
        batches.feed(lambda feed: lambda: self._run_feed(feed, feeding.action(feed), feeding.queue, check))
        check()

    def _start_query(self, frame: Any, num_epochs: int, timeout_ms: int, qname: str, columns: Optional[Sequence[str]],
                     shuffle: Union[bool, int], via: Optional[str], checkpoint: Optional[str],
                     trigger: Union[None, str, Mapping[str, Any]]) -> Any:
        """Feeds a streaming DataFrame."""
        if num_epochs > 1:
            raise ValueError(f"num_epochs must be 0 or 1 with a streaming DataFrame, which is one epoch, not {num_epochs}")
        if not arguments.is_flag(shuffle) or shuffle:
            raise ValueError("shuffle is for DataFrames that end; of a stream the node can shuffle: get_dataset(shuffle_buffer=...)")

        def feed_of(batch: Any) -> frames.FrameFeed:
            return frames.FrameFeed(self._meta, batch, timeout_ms, qname, columns, False, via)

        description = feed_of(frame)  # what is wrong with columns and types is said before the query starts
        self._check()
        self._describe(launch.Feeding(description.action, qname, "trainers", description.schema), 0)
        shared = (self._batches_of(qname), lambda batch: feed_of(batch).action, lambda: self._is_wanted(qname), self._rendezvous.check)
        query = streaming.QueryFeed(*shared) if self.sc is not None else offers.OfferFeed(
            *shared, lambda feed, action, watch: self._run_feed(feed, action, qname, self._rendezvous.check, watch=watch))
        query.start(frame, checkpoint, trigger)
        self._streamed.add(qname)
        self._queries.append(query)
        return query.query

    def _next_feed(self, queue: str) -> int:
        self._feeds[queue] = self._feeds.get(queue, 0) + 1
        return self._feeds[queue]

    def _is_wanted(self, *queues: str) -> bool:
        """Whether there is a node that rows of one of these queues may be fed to."""
        return self._status()["state"] != "failed" and any(map(self._wants_rows, queues))

    def _wants_rows(self, queue: str = "input", job: str = "trainers") -> bool:
        status = self._status()
        nodes = [n for n in status["nodes"] if n["job_name"] != "ps" and (n["job_name"] == "evaluator") == (job == "evaluator")]
        # A node that was sent `start` is "registered" until its trainer's first report, which may come after run() has returned.
        takes = any(n["state"] in ("registered", "running") and not n["queues"].get(queue, {}).get("terminated") for n in nodes)
        return takes and not status["stop_requested"]

    # -- the end

    def shutdown(self, ssc: Any = None, grace_secs: float = 0, timeout: float = 259200) -> None:
        """Waits for the workers' functions to return, then stops parameter servers and evaluator and ends the cluster.

        In ``InputMode.SPARK`` the feed ends first: ``DataFeed.should_stop()`` becomes true when all rows are taken. Other Spark jobs of the
        application are neither waited for nor touched. An evaluator that was fed gets a minute to return after the workers.

        Args:
            ssc: a StreamingContext or a StreamingQuery: waits for its end; it is stopped when all workers have terminated the feed. Queries
                of ``train`` that it does not name are stopped behind the batch that they feed.
            grace_secs: least time to leave all nodes after the end of the feed, whatever ``timeout`` says: parameter servers and an evaluator
                run on for as long after the workers have returned. It ends early when all functions have returned.
            timeout: seconds to wait for the workers' functions; -1: no limit. When it is over they are stopped.

        Raises:
            tensorflowonspark.errors.Error: a node failed (unless ``train`` has raised that already), or the timeout is over.
            pyspark.errors.StreamingQueryException: a query failed by itself; the functions have read what came before, and have returned.
        """
        timeout = arguments.seconds("timeout", timeout, float("-inf"), words="a number of seconds, or -1 for no limit")
        grace_secs = arguments.seconds("grace_secs", grace_secs, 0, words="a number of seconds, 0 or more")
        if self._closed:
            return
        try:
            if ssc is not None:
                queues = self._streamed or {"input"}
                streaming.await_end(ssc, lambda: self._is_wanted(*queues), self._check)
            for query in self._queries:
                query.stop()
            self._rendezvous.end_feed()
            grace_end = time.monotonic() + grace_secs
            was_raised = self._failure_raised
            try:
                self._wait(_tfos.WORKED, timeout if timeout < 0 else max(timeout, grace_secs))
                self._await_evaluator()
                self._await_grace(grace_end)
            except _tfos.Error:
                if not was_raised:
                    raise
            self._raise_query_failure()
        finally:
            self._abort()

    def _await_evaluator(self) -> None:
        """Lets an evaluator that was fed come to the end of its rows by itself."""
        deadline = time.monotonic() + _EVALUATOR_WAIT_SECS
        while self._evaluator_is_fed and time.monotonic() < deadline:
            states = [n["state"] for n in self._status()["nodes"] if n["job_name"] == "evaluator"]
            if "running" not in states:
                break
            self._events.wait(0.2)
        self._check()

    def _await_grace(self, deadline: float) -> None:
        """Leaves nodes that still run until then."""
        left = deadline - time.monotonic()
        if left > 0:
            with contextlib.suppress(_tfos.TimedOutError):
                self._rendezvous.wait(_tfos.ENDED, arguments.milliseconds(left))
            self._check()

    def _raise_query_failure(self) -> None:
        for query in self._queries:
            failure = query.failure()
            if failure is not None:
                raise failure

    def _abort(self) -> None:
        """Stops what still runs and releases everything; nothing in a process that was forked from the driver, whose cluster it is."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self.final_status = self._status()
        patience = 0
        try:
            self._rendezvous.stop(_STOP_GRACE_SECS * 1000)
            self._rendezvous.wait(_tfos.ENDED, (_STOP_GRACE_SECS + 5) * 1000)
            patience = _TASK_END_SECS
        except _tfos.Error as error:
            logger.debug("while stopping: %s", error)
        for query in self._queries:
            query.close(_STOP_GRACE_SECS)
        for job in list(self._jobs):
            job.end(_STOP_GRACE_SECS, patience)
        for thread in self._local_nodes:
            thread.join(_STOP_GRACE_SECS)
        self._spark.release()
        self._events.close()
        self._rendezvous.close()

    def results(self, timeout: float = 259200) -> List[Any]:
        """What the nodes' functions have returned, by executor id; None of a node whose function returned nothing, or was stopped.

        Waits for the functions of chiefs, masters and workers to return; with ``InputMode.SPARK`` they do when the feed ends, so call
        :meth:`shutdown` first. A result has 4 MiB at most, as JSON or pickled, which it is where JSON does not hold it.

        Raises:
            tensorflowonspark.errors.Error: a node failed, the timeout is over, or a result cannot be carried; names the node.
        """
        if not self._closed:
            self._wait(_tfos.WORKED, arguments.seconds("timeout", timeout, float("-inf"), words="a number of seconds, or -1 for no limit"))
            workers = [node["executor_id"] for node in self.cluster_info if node["job_name"] not in ("ps", "evaluator")]
            deadline = time.monotonic() + _STOP_GRACE_SECS
            while not self._events.have_ended(workers) and time.monotonic() < deadline:
                self._events.wait(0.2)
        return self._events.results.values(self.num_executors, self._meta.allow_pickle)

    def tensorboard_url(self) -> Optional[str]:
        """The address of the cluster's TensorBoard, or None when it was not asked for or could not start.

        Waits for it to come up, 30 seconds at most.
        """
        if not self._tensorboard:
            return None
        return self._events.await_tensorboard(lambda: next((node["tensorboard"] for node in self._nodes() if node["tensorboard"]), None))

    # -- what the others share

    def _status(self) -> dict:
        return json.loads(self._rendezvous.status())

    def _nodes(self) -> List[dict]:
        return (self.final_status or self._status())["nodes"]

    def _wait(self, phase: int, timeout: float) -> None:
        try:
            self._rendezvous.wait(phase, -1 if timeout < 0 else arguments.milliseconds(timeout))
        except _tfos.Error:
            self._failure_raised = True
            raise

    def _check(self) -> None:
        try:
            self._rendezvous.check()
        except _tfos.Error:
            self._failure_raised = True
            raise

    def _on_stop(self) -> None:
        """Somebody asks that the cluster stops. A stream ends behind its batch; what is left of other data is skipped."""
        if not self._streamed:
            self._rendezvous.terminate_feed()

    def _on_failure(self) -> None:
        for job in [*self._jobs, *self._queries]:
            job.cancel()

    def _start(self, payload: bytes, driver_ps_nodes: bool, reservation_timeout: float, resource_profile: Any) -> None:
        """Launches the nodes and waits until all of them run."""
        first = self._meta.num_ps if driver_ps_nodes else 0
        task = launch.NodeTask(self._meta, payload, reservation_timeout)
        for executors, profile in gpus.groups(range(first, self._meta.num_executors), self._meta.job_name, resource_profile):
            self.nodeRDD = nodes = self._spark.nodes(executors) if profile is None else self._spark.nodes(executors).withResources(profile)
            action = functools.partial(self._spark.launch, nodes, task)
            job = jobs.SparkJob(self._spark, f"nodes of cluster {self.cluster_id}", action)
            self._jobs.append(job)
            job.start(self._on_launch_failure)
        for executor_id in range(first):
            self._local_nodes.append(threading.Thread(target=self._run_local_node, args=(task, executor_id), daemon=True))
            self._local_nodes[-1].start()
        self._wait(_tfos.RUNNING, reservation_timeout)

    def _run_local_node(self, task: launch.NodeTask, executor_id: int) -> None:
        try:
            task.launch(executor_id)
        except Exception as error:  # of any kind: the driver raises it
            self._rendezvous.fail("IO", f"parameter server {executor_id} in the driver: {failures.text_of(error)}")

    def _on_launch_failure(self, error: BaseException) -> None:
        if not self._closed:
            text = jobs.brief(error)
            self._rendezvous.fail("CLOSED", f"the Spark job that starts the nodes failed: {text}{jobs.advice(text) or self._spark.hint}")


def run(sc: Any, map_fun: Callable[[Any, Any], Any], tf_args: Any, num_executors: Optional[int] = None, num_ps: int = 0,
        tensorboard: bool = False, input_mode: int = InputMode.TENSORFLOW, log_dir: Optional[str] = None,
        driver_ps_nodes: bool = False, master_node: Optional[str] = None, reservation_timeout: float = 600,
        queues: Optional[List[str]] = None, eval_node: bool = False, release_port: bool = True, allow_pickle: bool = True,
        num_gpus: Union[None, int, Mapping[str, int]] = None, gpu_fraction: Optional[float] = None, resource_profile: Any = None,
        native_ps: bool = False, max_restarts: int = 0) -> Union[TFCluster, RestartingCluster]:
    """Starts a TensorFlow cluster: ``map_fun(tf_args, ctx)`` runs once on each of ``num_executors`` nodes.

    Args:
        sc: the SparkContext or the SparkSession, also of Spark Connect (docs/connect.md).
        map_fun: the function; it must be picklable by cloudpickle.
        tf_args: its first argument: any object; a list also becomes ``sys.argv`` of the node's process.
        num_executors: nodes in all. Spark must have as many free task slots. None: as many as there are executors by the application's settings:
            ``spark.dynamicAllocation.maxExecutors`` with dynamic allocation, ``spark.executor.instances``, or on Standalone ``spark.cores.max`` by
            ``spark.executor.cores``; without any of these as there are task slots when no executor has come for five seconds.
        num_ps: how many of them are parameter servers.
        tensorboard: start TensorBoard beside the first worker (else the chief).
        input_mode: an :class:`InputMode`.
        log_dir: TensorBoard's directory; None: ``tensorboard_<executor id>`` in the executor's working directory.
        driver_ps_nodes: run the parameter servers beside the driver; Spark needs ``num_executors - num_ps`` slots then.
        master_node: name of the role that one node gets, "chief" or "master"; None: workers only.
        reservation_timeout: seconds until all nodes must have registered.
        queues: names of queues of each fed node besides "input" and "validation", for ``qname``; 16 in all, of letters, digits, "-", "_" and ".".
        eval_node: one node is the evaluator. Its task keeps its slot; with ``train(validation=...)`` tasks in the workers' slots feed it.
        release_port: the node keeps TensorFlow's port reserved in a way that lets TensorFlow bind it, whatever this is; code that binds the port
            by other means calls ``ctx.release_port()`` first. With False ``ctx.tmp_socket`` is a socket bound to it.
        allow_pickle: rows and results that have no column form (objects, columns of several types) travel pickled, and reading a pickle runs code
            that it names. False refuses them: the task that feeds, or the trainer that answers, fails with ``UnsupportedError``, which names the column.
        num_gpus: GPUs of each chief, master and worker, or a dictionary of them by role; None: ``tf_args.num_gpus``, else what Spark assigns, else
            one where the machine has any. Parameter servers and the evaluator get those that a dictionary gives them.
        gpu_fraction: the part of each GPU's memory that a node gets, so that several share one (docs/gpus.md); None: it has them alone, unless
            Spark assigns parts (``spark.task.resource.gpu.amount`` below 1).
        resource_profile: the ``ResourceProfile`` of the tasks of chief, master and workers. Parameter servers and the evaluator run in the default one.
        native_ps: parameter servers are TensorFlow's servers without Python, on which ``map_fun`` is not called (docs/parameter_servers.md).
        max_restarts: how often a cluster of which a node has failed is started again (docs/restarts.md); ``map_fun`` continues from what it saved.

    Raises:
        ValueError, TypeError: an argument is wrong; nothing was started.
        tensorflowonspark.errors.UnsupportedError: something is asked for that cannot work over Spark Connect.
        tensorflowonspark.errors.Error: the cluster did not come up; nothing is left running.
    """
    if arguments.count("max_restarts", max_restarts, 0):
        options = {name: value for name, value in locals().items() if name != "max_restarts"}
        return RestartingCluster(lambda: run(**options), int(max_restarts))
    spark = spark_of(sc)
    arguments.check_function(map_fun)
    num_executors = slots.cluster_size(spark) if num_executors is None else num_executors
    options = arguments.run_options(num_executors, num_ps, tensorboard, input_mode, driver_ps_nodes, master_node, reservation_timeout,
                                    eval_node, release_port, native_ps)
    if options.driver_ps_nodes:
        spark.refuse("driver_ps_nodes", "this process is not beside the executors; leave it False")
    plan = gpus.plan(spark, tf_args, num_gpus, gpu_fraction, resource_profile)
    queues = arguments.queue_names(queues)
    payload = launch.pickle_function(map_fun, tf_args)
    feeding = options.input_mode == InputMode.SPARK
    host = os.environ.get("TFOS_SERVER_HOST") or spark.host()
    cluster_id, key = secrets.token_hex(8), secrets.token_hex(32)
    rendezvous = _tfos.Rendezvous(
        cluster_id, key, options.num_executors, options.num_ps, master_node, options.eval_node, feeding, host=host,
        listen_host=host if host and launch.is_loopback(host) else None, queues=",".join(queues))
    try:
        meta = launch.ClusterMeta(
            cluster_id=cluster_id, key=key, address=rendezvous.address, num_executors=options.num_executors, num_ps=options.num_ps,
            roles=json.loads(rendezvous.roles()), feeding=feeding, default_fs=files.before_slash(spark.default_fs()),
            working_dir=os.getcwd(), release_port=options.release_port, tensorboard=options.tensorboard, log_dir=log_dir and os.fspath(log_dir),
            gpus=plan, queues=",".join(queues), allow_pickle=bool(allow_pickle), native_ps=options.native_ps,
            preload=os.environ.get("TFOS_PRELOAD", ""))
        cluster = TFCluster(spark, meta, rendezvous, options.input_mode, queues, options.tensorboard)
    except BaseException:
        rendezvous.close()
        raise
    try:
        cluster._start(payload, options.driver_ps_nodes, options.reservation_timeout, resource_profile)
    except BaseException:
        cluster._abort()
        raise
    return cluster

# SPDX-License-Identifier: Apache-2.0
"""Instances of a function that run on the executors side by side, each for itself: inference on files, a search over parameters."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, List

from . import arguments, files, fs, gpus, jobs, launch, slots
from .failures import sendable
from .sessions import spark_of

__all__ = ["run"]


def run(sc: Any, map_fn: Callable[[Any, Any], Any], tf_args: Any, num_executors: int, use_barrier: bool = True) -> List[Any]:
    """Runs ``map_fn(tf_args, ctx)`` as so many Spark tasks and gives what each returned, in the order of ``ctx.worker_num``.

    There is no cluster: of ``ctx``, ``worker_num`` (also ``executor_id``), ``num_workers``, ``defaultFS``, ``working_dir`` and ``absolute_path`` are
    of use. The function runs in Spark's own Python worker. GPUs are the task's, as Spark gives them, else free ones of its machine, others for each instance.

    Args:
        sc: the SparkContext or the SparkSession, also of Spark Connect.
        map_fn: the function; it must be picklable by cloudpickle, and so must what it returns.
        tf_args: its first argument; a list also is ``sys.argv`` while it runs.
        num_executors: how many instances. Several share an executor that has several slots.
        use_barrier: all start at a time, or none does, and all know where the others run. False: they run as slots become free; Spark runs one that
            fails again, ``spark.task.maxFailures`` times in all.

    Raises:
        ValueError, TypeError: an argument is wrong.
        RuntimeError: with ``use_barrier``, there are fewer slots than instances; names both.
        tensorflowonspark.errors.Error: an instance failed; has its exception.
    """
    spark = spark_of(sc)
    arguments.check_function(map_fn)
    count = arguments.count("num_executors", num_executors, 1)
    use_barrier = bool(use_barrier)
    if use_barrier:
        slots.await_slots(spark, count, "TFParallel.run(use_barrier=True)")
    task = _Instance(launch.pickle_function(map_fn, tf_args), count, files.before_slash(spark.default_fs()), gpus.requested(tf_args), use_barrier)
    return jobs.run_instances(spark, count, task, use_barrier, "TFParallel: an instance failed")


class _Instance:
    """Runs the function in a Spark task."""

    def __init__(self, payload: bytes, count: int, default_fs: str, num_gpus: Any, is_barrier: bool) -> None:
        self._payload = payload
        self._count = count
        self._default_fs = default_fs
        self._num_gpus = num_gpus
        self._is_barrier = is_barrier
        self._working_dir = os.getcwd()

    def __call__(self, number: int) -> bytes:
        from pyspark import BarrierTaskContext
        from pyspark.serializers import CloudPickleSerializer

        from .TFSparkNode import TFNodeContext
        from .trainer import complete

        nodes = [info.address for info in BarrierTaskContext.get().getTaskInfos()] if self._is_barrier else ()
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus.take(self._num_gpus, number, nodes))
        fs.register_on_import()
        serializer = CloudPickleSerializer()
        function, args = serializer.loads(self._payload)
        context = TFNodeContext(number, defaultFS=self._default_fs, working_dir=self._working_dir)
        context.num_workers = self._count
        argv = sys.argv
        try:
            if isinstance(args, list):
                sys.argv = args
            with sendable():
                return serializer.dumps(complete(function(args, context)))
        finally:
            sys.argv = argv

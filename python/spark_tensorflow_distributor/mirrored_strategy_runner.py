# SPDX-License-Identifier: Apache-2.0
"""Training in step in the tasks of one barrier stage: of Keras 3 by tensorflowonspark.keras, else under TensorFlow's MultiWorkerMirroredStrategy."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import random
import secrets
import socket
from typing import Any, Callable, Dict, Iterator, List, Optional

from tensorflowonspark import _tfos, collectives, fs, jobs, keras_mirror, launch, slots
from tensorflowonspark.failures import sendable
from tensorflowonspark.sessions import ContextSpark

logger = logging.getLogger(__name__)

__all__ = ["MirroredStrategyRunner"]

_IGNORE_SSL = "tensorflow.spark.distributor.ignoreSsl"
_UNENCRYPTED = ("spark.ssl.enabled is set, and TensorFlow's servers, by which the workers of a tf.distribute strategy talk, encrypt nothing: compile and fit a "
                "Keras 3 model without a strategy, or by tensorflowonspark.keras.distribute, whose workers encrypt what they send, or allow it by "
                f"{_IGNORE_SSL}=true")


class MirroredStrategyRunner:
    """Trains a function in step on the tasks of a Spark job, or in the driver.

    The function makes its model and calls ``compile`` and ``fit`` as on one machine, in Spark's Python workers, where ``BarrierTaskContext`` is of use. A
    model of Keras 3 trains in step by :mod:`tensorflowonspark.keras`, encrypted between hosts. Any other function (Keras 2, ``TF_USE_LEGACY_KERAS=1``) runs in
    the scope of a ``MultiWorkerMirroredStrategy``, and so does one that asks ``tf.distribute.get_strategy()`` for it. Batches of ``fit`` are those of all
    workers together: each takes its part of a ``tf.data.Dataset``, or of arrays.

    Args:
        num_slots: GPUs in all, or tasks without GPUs.
        local_mode: run it in the driver.
        use_gpu: with GPUs, as Spark gives them to tasks; else without.
        gpu_resource_name: Spark's name of the GPUs, as in ``spark.task.resource.gpu.amount``.
        use_custom_strategy: the function makes a strategy by itself, or calls ``tensorflowonspark.keras.distribute``, to which all data are its worker's own.

    Raises:
        ValueError: ``num_slots`` is not above 0, or ``spark.task.resource.<name>.amount`` is below 1.
        RuntimeError: ``use_gpu``, and Spark has no such resource.
    """

    def __init__(self, *, num_slots: int, local_mode: bool = False, use_gpu: bool = True, gpu_resource_name: str = "gpu",
                 use_custom_strategy: bool = False) -> None:
        from pyspark.sql import SparkSession

        if num_slots <= 0:
            raise ValueError(f"num_slots must be above 0, not {num_slots}")
        self._num_slots = num_slots
        self._local_mode = local_mode
        self._use_gpu = use_gpu
        self._gpu_resource_name = gpu_resource_name
        self._use_custom_strategy = use_custom_strategy
        self.sc = SparkSession.builder.getOrCreate().sparkContext
        self._num_tasks = None if local_mode else self.get_num_tasks()

    def get_num_tasks(self) -> int:
        """How many Spark tasks train: as many as have ``num_slots`` GPUs, or ``num_slots``.

        Raises:
            ValueError, RuntimeError: as the constructor.
        """
        if not self._use_gpu:
            return self._num_slots
        key = f"spark.task.resource.{self._gpu_resource_name}.amount"
        amount = self.sc.getConf().get(key)
        if amount is None:
            raise RuntimeError(f"use_gpu=True needs GPUs that Spark gives to tasks, and {key} is not set: set it, with the executors' amount and discovery "
                               "script, or pass use_gpu=False")
        if float(amount) < 1:
            raise ValueError(f"{key} is {amount}, and must be 1 or more: a GPU has one task")
        return math.ceil(self._num_slots / int(float(amount)))

    def run(self, train_fn: Callable[..., Any], **kwargs: Any) -> Any:
        """Calls ``train_fn(**kwargs)`` on each task and gives what the first of them (partition 0) returned.

        Raises:
            ValueError: in local mode there are fewer GPUs than ``num_slots``, or more slots than one are to do without GPUs.
            RuntimeError: there are fewer task slots than are needed; names both.
            tensorflowonspark.errors.Error: the function failed; has its exception. With ``spark.ssl.enabled`` a strategy between workers fails so, as do
                TensorFlow's servers: they talk unencrypted, which ``tensorflow.spark.distributor.ignoreSsl=true`` allows.
        """
        if self._local_mode:
            return self._run_here(train_fn, kwargs)
        is_encrypted = self._must_encrypt()
        spark = ContextSpark(self.sc)
        slots.await_slots(spark, self._num_tasks, f"MirroredStrategyRunner(num_slots={self._num_slots})")
        payload = launch.pickle_function(train_fn, kwargs)
        task = _Worker(payload, self._num_slots, self._num_tasks, self._gpu_resource_name if self._use_gpu else None, self._use_custom_strategy,
                       is_encrypted)
        return jobs.run_instances(spark, self._num_tasks, task, True, "MirroredStrategyRunner: the training failed")[0]

    def _run_here(self, train_fn: Callable[..., Any], kwargs: Dict[str, Any]) -> Any:
        chosen: List[str] = []
        if self._use_gpu:
            owned = _owned_gpus(self.sc.resources, self._gpu_resource_name)
            if self._num_slots > len(owned):
                raise ValueError(f"num_slots={self._num_slots} needs as many GPUs in local mode, and the driver has {len(owned)}")
            chosen = random.sample(owned, self._num_slots)
        elif self._num_slots > 1:
            raise ValueError(f"num_slots={self._num_slots}: in local mode without GPUs there is one slot, the driver: pass num_slots=1")
        with _environment(CUDA_VISIBLE_DEVICES=",".join(chosen)):
            return _train(train_fn, kwargs, self._use_custom_strategy, is_alone=True, device_count=len(chosen))

    def _must_encrypt(self) -> bool:
        """Whether nothing may go unencrypted between the workers."""
        if not self._is_set("spark.ssl.enabled"):
            return False
        if self._is_set(_IGNORE_SSL):
            logger.warning("%s is set: under a strategy parameters, and what they tell of the data, go unencrypted between the workers", _IGNORE_SSL)
            return False
        return True

    def _is_set(self, key: str) -> bool:
        text = self.sc.getConf().get(key, "false").lower()
        if text not in ("true", "false"):
            raise ValueError(f"{key} must be true or false, not {text!r}")
        return text == "true"


class _Worker:
    """A worker in a task of the barrier stage."""

    def __init__(self, payload: bytes, num_slots: int, num_tasks: int, gpu_resource: Optional[str], use_custom_strategy: bool,
                 must_encrypt: bool = False) -> None:
        self._payload = payload
        self._num_slots = num_slots
        self._num_tasks = num_tasks
        self._gpu_resource = gpu_resource
        self._use_custom_strategy = use_custom_strategy
        self._must_encrypt = must_encrypt
        self._key = secrets.token_bytes(32)

    def __call__(self, number: int) -> bytes:
        from pyspark import BarrierTaskContext
        from pyspark.serializers import CloudPickleSerializer

        context = BarrierTaskContext.get()
        serializer = CloudPickleSerializer()
        gpus = self._gpus(context, number)
        with sendable(), _reserved_port() as port:
            host = context.getTaskInfos()[number].address.rpartition(":")[0]
            workers = context.allGather(f"{host}:{port}")
            config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": number}}
            environment = _environment(CUDA_VISIBLE_DEVICES=",".join(gpus), TF_CONFIG=json.dumps(config), TF_GRPC_REUSE_PORT="true")
            with environment, collectives.provided(lambda gpu: self._open_group(context, number, host, gpu)):
                train_fn, kwargs = serializer.loads(self._payload)
                with _no_servers() if self._must_encrypt else contextlib.nullcontext():
                    result = _train(train_fn, kwargs, self._use_custom_strategy, device_count=len(gpus))
        return serializer.dumps(result if number == 0 else None)

    def _open_group(self, context: Any, number: int, host: str, gpu: bool) -> _tfos.Collective:
        """What the workers exchange gradients by; waits until all of them call this."""
        def exchange(stage: str, value: str) -> str:
            return f"[{','.join(context.allGather(value))}]"

        return _tfos.Collective(number, self._num_tasks, exchange, self._key, "workers", gpu=gpu, host=host)

    def _gpus(self, context: Any, number: int) -> List[str]:
        """As many of the task's as it is to use: where they are not a multiple, the first tasks have one more."""
        if self._gpu_resource is None:
            return []
        count = self._num_slots // self._num_tasks + (number < self._num_slots % self._num_tasks)
        return random.sample(_owned_gpus(context.resources(), self._gpu_resource), count)


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
    """A port of this machine that only TensorFlow's server of this process can listen on meanwhile."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("", 0))
        yield holder.getsockname()[1]


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _owned_gpus(resources: Any, name: str) -> List[str]:
    """The GPUs that Spark gave, as CUDA_VISIBLE_DEVICES names them: by their place in what that says already, where it is set."""
    if name not in resources:
        raise ValueError(f"Spark has given no resource {name!r} here; it has given {', '.join(map(repr, resources)) or 'none'}: set "
                         f"spark.task.resource.{name}.amount, spark.executor.resource.{name}.amount and discoveryScript (spark.driver.resource in local mode)")
    addresses = list(resources[name].addresses)
    wrong = [address for address in addresses if not address.isdigit() or address != str(int(address))]
    if wrong:
        raise ValueError(f"the discovery script of {name!r} names {wrong[0]!r}, which CUDA_VISIBLE_DEVICES does not take: numbers from 0 on are")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not visible:
        return addresses
    devices = visible.split(",")
    outside = [address for address in addresses if int(address) >= len(devices)]
    if outside:
        raise ValueError(f"Spark has given GPU {outside[0]}, and CUDA_VISIBLE_DEVICES={visible} names only {len(devices)}")
    return [devices[int(address)] for address in addresses]


@contextlib.contextmanager
def _no_servers() -> Iterator[None]:
    """Meanwhile this process's TensorFlow, if there is one, raises instead of talking to other processes."""
    try:
        from tensorflow.python.eager.context import Context
        from tensorflow.python.training.server_lib import Server
    except ImportError:
        yield
        return
    configure = Context.configure_collective_ops

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError(_UNENCRYPTED)

    def configure_alone(self: Any, collective_leader: str = "", *args: Any, **kwargs: Any) -> None:
        if collective_leader:  # before anything has changed, so that the function can run without
            refuse()
        configure(self, collective_leader, *args, **kwargs)

    with contextlib.ExitStack() as stack:
        for owner, name, value in ((Context, "configure_collective_ops", configure_alone), (Context, "enable_collective_ops", refuse),
                                   (Context, "set_server_def", refuse), (Server, "__init__", refuse)):
            stack.enter_context(keras_mirror.replaced(owner, name, value))
        yield


def _train(train_fn: Callable[..., Any], kwargs: Dict[str, Any], use_custom_strategy: bool, is_alone: bool = False, device_count: int = 0) -> Any:
    fs.register_on_import()
    if use_custom_strategy:
        return train_fn(**kwargs)
    import tensorflow as tf
    from tensorflow.python.eager import context

    context._reset_context()  # a worker of Spark's that has trained before knows the other workers of then

    if not keras_mirror.is_used(tf):
        scope = tf.distribute.MultiWorkerMirroredStrategy().scope()
    elif is_alone and device_count > 1:
        scope = tf.distribute.MirroredStrategy().scope()
    else:
        if device_count > 1:
            logger.warning("a task has %d GPUs, and Keras 3 in step uses its first: set spark.task.resource.gpu.amount to 1", device_count)
        scope = keras_mirror.mirrored(tf, tf.distribute.MultiWorkerMirroredStrategy)
    with scope:
        return train_fn(**kwargs)

# SPDX-License-Identifier: Apache-2.0
"""The group of the workers that train in step, and the ops in C by which it exchanges tensors."""

from __future__ import annotations

import contextlib
import json
import logging
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from . import TFSparkNode, _tfos
from .arguments import flag, milliseconds, seconds
from .dataset import load_operations

logger = logging.getLogger(__name__)

__all__ = ["STOPPED", "Group", "of_process", "provided"]

_NAMES = {"sync": "workers", "async": "asynchronous workers"}
_MEMBERS = ("chief", "master", "worker")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_STOP = -1.0  # the weight by which a rank says that it stops
STOPPED = "a rank has stopped"  #: what OutOfRangeError says then


class Group:
    """Processes that call the same operations in the same order. Calls are ops: in a ``tf.function`` they become part of it.

    Args:
        tf: the module tensorflow.
        handle: the ``_tfos.Collective``.
        is_chief: whether this process is the one that writes; one of the group is.
    """

    def __init__(self, tf: Any, handle: _tfos.Collective, is_chief: bool) -> None:
        self._tf = tf
        self._ops = load_operations(tf)
        self._handle = handle
        self.rank: int = handle.rank
        self.size: int = handle.size
        self.is_chief = is_chief
        self.root = 0  #: rank of the chief
        if self.size > 1:
            chiefs, gpus = zip(*self.exchange([is_chief, _has_gpu(tf)], "the chief"))
            self.root = chiefs.index(True)
            if any(gpus):
                self._find_route(gpus[self.rank])

    def _find_route(self, has_gpu: bool) -> None:
        """Finds out how tensors on GPUs go, and logs it."""
        with self._tf.device("GPU:0" if has_gpu else "CPU:0"):
            self.all_reduce([self._tf.zeros([1])], "the GPUs")
        if has_gpu:
            route = str(self._handle.gpu_route)
            logger.log(logging.INFO if " by NCCL " in route else logging.WARNING, "%s", route)

    def close(self) -> None:
        """Ends the group: on other ranks operations fail from now on."""
        self._handle.close()

    def mean(self, gradients: Sequence[Any], weight: Any, operation: str = "gradients") -> Any:
        """The mean over the ranks, in which each counts by its weight, and the share of this rank's weight in the sum.

        Gradients that are ``IndexedSlices`` are joined and stay such; None stays None.

        Raises:
            ValueError: a gradient is not of real numbers.
            tf.errors.OutOfRangeError: on all ranks, if none has a weight, or one has called ``stop``.
        """
        tf = self._tf
        dense = [index for index, gradient in enumerate(gradients) if gradient is not None and not isinstance(gradient, tf.IndexedSlices)]
        tensors = [tf.convert_to_tensor(gradients[index]) for index in dense]
        for tensor in tensors:
            if tensor.dtype.name not in _FLOATS:
                raise ValueError(f"distribute: gradients of {tensor.dtype.name} cannot be averaged; those of {', '.join(_FLOATS)} can")
        # Half types are summed as float32 anyway.
        wide = [tf.cast(tensor, tf.float32) if tensor.dtype.size < 4 else tensor for tensor in tensors]
        share, means = self._ops.tfos_mean_gradients(
            group=self._handle.number, weight=tf.cast(weight, tf.float64), gradients=wide, operation=operation)
        result = list(gradients)
        for index, tensor, mean in zip(dense, tensors, means):
            result[index] = tf.cast(mean, tensor.dtype) if mean.dtype != tensor.dtype else mean
        sparse = [index for index, gradient in enumerate(gradients) if isinstance(gradient, tf.IndexedSlices)]
        if sparse:
            for index, slices in zip(sparse, self._join([gradients[index] for index in sparse], share, operation)):
                result[index] = slices
        return result, share

    def _join(self, slices: List[Any], share: Any, operation: str) -> List[Any]:
        """``IndexedSlices`` of all ranks, each times its share."""
        tf = self._tf
        values = [tf.math.multiply_no_nan(one.values, tf.cast(share, one.values.dtype)) for one in slices]
        joined = self.gather(values + [one.indices for one in slices], operation)
        return [tf.IndexedSlices(values, indices, one.dense_shape)
                for values, indices, one in zip(joined, joined[len(slices):], slices)]

    def share(self, weight: Any, operation: str = "gradients") -> Any:
        """The share of this rank's weight in the sum of all; float64. Raises as ``mean`` does."""
        return self.mean([], weight, operation)[1]

    @contextlib.contextmanager
    def steps(self) -> Iterator[None]:
        """Surrounds a call that takes steps, so that waits for their data are counted apart (docs/watching.md)."""
        self._handle.mark_steps(True)
        try:
            yield
        finally:
            self._handle.mark_steps(False)

    def have_data(self, data: Any) -> None:
        """Notes, in a step, when its data is there."""
        if not self._tf.executing_eagerly():
            self._handle.mark_steps(False)  # what follows is the time that tracing takes
        tensors = [leaf for leaf in self._tf.nest.flatten(data, expand_composites=True) if self._tf.is_tensor(leaf)]
        with self._tf.control_dependencies(tensors):
            self._ops.tfos_have_data(group=self._handle.number)

    def stop(self, operation: str = "gradients") -> None:
        """Takes part in the other ranks' next ``mean``, which ends with OutOfRangeError on all."""
        try:
            self.mean([], _STOP, operation)
        except self._tf.errors.OutOfRangeError:
            pass

    def all_reduce(self, tensors: Sequence[Any], operation: str, reduction: str = "sum") -> List[Any]:
        """The tensors reduced over the ranks: "sum", "mean", "min" or "max"."""
        tf = self._tf
        tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
        result: List[Any] = list(tensors)
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            chosen = [index for index, tensor in enumerate(tensors) if tensor.dtype == dtype]
            reduced = self._ops.tfos_all_reduce(
                group=self._handle.number, tensors=[tensors[index] for index in chosen], operation=operation, reduction=reduction)
            for index, tensor in zip(chosen, reduced):
                result[index] = tensor
        return result

    def broadcast(self, tensors: Sequence[Any], operation: str, root: Optional[int] = None) -> List[Any]:
        """The tensors of rank ``root``; None: of the chief."""
        if not tensors:
            return []
        return self._ops.tfos_broadcast(
            group=self._handle.number, tensors=list(tensors), operation=operation, root=self.root if root is None else root)

    def gather(self, tensors: Sequence[Any], operation: str) -> List[Any]:
        """The tensors of all ranks joined along their first dimension, in the order of ranks."""
        tensors = [self._tf.convert_to_tensor(tensor) for tensor in tensors]
        joined = self._ops.tfos_all_gather(group=self._handle.number, tensors=tensors, operation=operation)
        for tensor, one in zip(joined, tensors):
            tensor.set_shape([None, *one.shape[1:]])
        return joined

    # ---- variables of float32 that are trained asynchronously, in a group that was opened for it

    def open_parameters(self, variables: Sequence[Any], staleness: int, operation: str) -> None:
        """Gives the variables the values of rank 0, with which all begin."""
        self._assign(self._ops.tfos_open_parameters, variables, staleness, operation)

    def pull_parameters(self, variables: Sequence[Any], steps: int, operation: str) -> None:
        """Gives the variables the values that all share, when this rank may take so many steps."""
        self._assign(self._ops.tfos_pull_parameters, variables, steps, operation)

    def push_parameters(self, variables: Sequence[Any], steps: int, operation: str) -> None:
        """Adds to the shared values what so many steps have changed."""
        self._ops.tfos_push_parameters(**self._parameters(variables, steps, operation))

    def close_parameters(self, variables: Sequence[Any], operation: str) -> None:
        """Takes no more steps, waits until no rank does, and gives the variables the shared values."""
        self._assign(self._ops.tfos_close_parameters, variables, 0, operation)

    def watched(self, dataset: Any, operation: str) -> Any:
        """The dataset, for which the other ranks do not wait for long."""
        tf = self._tf

        def note(is_waiting: int) -> Any:
            def mark(index: Any) -> Any:
                self._ops.tfos_await_rows(group=self._handle.number, is_waiting=tf.constant(is_waiting, tf.int64), operation=operation)
                return index

            return tf.data.Dataset.range(2**62).map(mark)

        # zip asks its parts in their order.
        options = tf.data.Options()
        options.experimental_optimization.map_parallelization = False
        zipped = tf.data.Dataset.zip(note(1), dataset, note(0))
        return zipped.map(lambda _, element, __: element).with_options(options)

    def _assign(self, op: Any, variables: Sequence[Any], steps: int, operation: str) -> None:
        for variable, value in zip(variables, op(**self._parameters(variables, steps, operation))):
            variable.assign(value)

    def _parameters(self, variables: Sequence[Any], steps: int, operation: str) -> Dict[str, Any]:
        tf = self._tf
        return {"group": self._handle.number, "steps": tf.cast(steps, tf.int64), "operation": operation,
                "parameters": [tf.convert_to_tensor(variable) for variable in variables]}

    def exchange(self, value: Any, operation: str) -> List[Any]:
        """What JSON can hold, of all ranks in their order."""
        tf = self._tf
        text = json.dumps(value).encode()
        with tf.device("CPU:0"):  # a GPU would only have to give it back
            sizes, joined = self.gather([[len(text)], tf.io.decode_raw(text, tf.uint8)], operation)
        left, values = joined.numpy().tobytes(), []
        for size in sizes.numpy():
            values.append(json.loads(left[:size]))
            left = left[size:]
        return values


_groups: Dict[str, Group] = {}  # of this process, by mode
_provider: Optional[Callable[[Any], Group]] = None


@contextlib.contextmanager
def provided(open_handle: Callable[[bool], _tfos.Collective]) -> Iterator[None]:
    """Meanwhile the group of this process is that of the handle, which is opened when the group is first asked for, and closed at the end.

    ``open_handle`` is told whether TensorFlow has a GPU.
    """
    global _provider
    groups: List[Group] = []

    def provide(tf: Any) -> Group:
        if not groups:
            handle = open_handle(_has_gpu(tf))
            groups.append(Group(tf, handle, handle.rank == 0))
        return groups[0]

    before, _provider = _provider, provide
    try:
        yield
    finally:
        _provider = before
        for group in groups:
            group.close()


def _has_gpu(tf: Any) -> bool:
    return bool(tf.config.list_logical_devices("GPU"))


def of_process(tf: Any, timeout: float = 600, trusted_network: bool = False, mode: str = "sync") -> Group:
    """The group of this process: the chief, master and workers of its cluster; outside of one, the process alone.

    The first call of a mode opens it, and waits until all of them have called this. It lasts as long as the process.
    """
    if _provider is not None and mode == "sync":
        return _provider(tf)
    if mode not in _groups:
        name, is_asynchronous = _NAMES[mode], mode == "async"
        context = TFSparkNode.current()
        if context is None or context.job_name not in _MEMBERS:
            handle = _tfos.Collective(0, 1, lambda stage, value: f"[{value}]", bytes(32), name, parameters=is_asynchronous)
            _groups[mode] = Group(tf, handle, True)
        else:
            limit = milliseconds(seconds("timeout", timeout))
            handle = context.mgr.link.open_collective(
                name, trusted=flag("trusted_network", trusted_network), parameters=is_asynchronous, gpu=_has_gpu(tf),
                open_timeout_ms=limit, stall_timeout_ms=limit)
            has_chief = any(context.cluster_spec.get(job) for job in ("chief", "master"))
            _groups[mode] = Group(tf, handle, context.job_name in ("chief", "master") if has_chief else context.task_index == 0)
    return _groups[mode]

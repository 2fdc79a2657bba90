# SPDX-License-Identifier: Apache-2.0
"""Functions for one process that compile and fit Keras 3 models, called on every worker: the models train in step, and each worker takes its part of the data.

It splits the data as ``MultiWorkerMirroredStrategy`` does: the batches of ``fit`` and ``evaluate`` are those of all workers together.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from typing import Any, Callable, Iterator, List

import numpy as np

from .collectives import Group, of_process
from .keras import distribute

logger = logging.getLogger(__name__)

__all__ = ["is_used", "mirrored", "replaced"]

_ASKED = ("get_strategy", "has_strategy", "get_replica_context", "in_cross_replica_context")
_OWN = ("keras", "tensorflowonspark")  # who asks for other reasons
_BATCH_SIZE = 32  # Keras's own


def is_used(tf: Any) -> bool:
    """Whether ``tf.keras`` is Keras 3."""
    try:
        return int(tf.keras.__version__.partition(".")[0]) >= 3
    except (AttributeError, ImportError):  # Keras 2 of TensorFlow's own, or none
        return False


@contextlib.contextmanager
def mirrored(tf: Any, strategy: Callable[[], Any]) -> Iterator[None]:
    """Meanwhile each Keras 3 model that is compiled trains in step with those of the process's group.

    A function that asks ``tf.distribute`` for a strategy is given what ``strategy()`` makes, and is in its scope from then on.
    """
    import keras

    with contextlib.ExitStack() as scopes:
        scopes.enter_context(replaced(keras.Model, "compile", _compile_in_step(tf, keras.Model.compile)))
        asked: List[Any] = []

        def enter() -> None:
            if not asked:
                asked.append(True)
                scopes.enter_context(strategy().scope())

        for name in _ASKED:
            scopes.enter_context(replaced(tf.distribute, name, _entering(getattr(tf.distribute, name), enter)))
        yield


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Meanwhile the attribute has another value."""
    is_own, before = name in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def _entering(function: Callable, enter: Callable[[], None]) -> Callable:
    """The function, which calls ``enter`` first when the user's code calls it."""
    @functools.wraps(function)
    def entering(*args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] not in _OWN:
            enter()
        return function(*args, **kwargs)

    return entering


def _compile_in_step(tf: Any, original: Callable) -> Callable:
    @functools.wraps(original)
    def compile(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if getattr(self, "_tfos", None) is None and not tf.distribute.has_strategy():
            group = of_process(tf)
            distribute(self, group)
            if group.size > 1:
                self._tfos.deal = functools.partial(_deal, tf, group)

    return compile


# -- a worker's part of the data


def _deal(tf: Any, group: Group, arguments: dict) -> None:
    """Replaces the data among the arguments of ``fit`` or ``evaluate`` by this worker's part."""
    batch_size = arguments.get("batch_size") or _BATCH_SIZE
    if _is_arrays(tf, arguments.get("x")):
        for name in ("x", "y", "sample_weight"):
            arguments[name] = _rows_of(tf, group, arguments.get(name), batch_size)
        arguments["batch_size"] = max(1, _parts(batch_size, group)[group.rank])
    else:
        arguments["x"] = _batches_of(tf, group, arguments.get("x"))
    validation = arguments.get("validation_data")
    if validation is None:
        return
    if isinstance(validation, (tuple, list)) and _is_arrays(tf, validation[0]):
        batch_size = arguments.get("validation_batch_size") or batch_size
        arguments["validation_data"] = tuple(_rows_of(tf, group, part, batch_size) for part in validation)
        arguments["validation_batch_size"] = max(1, _parts(batch_size, group)[group.rank])
    else:
        arguments["validation_data"] = _batches_of(tf, group, validation)


def _is_arrays(tf: Any, x: Any) -> bool:
    leaf = next(iter(tf.nest.flatten(x)), None)
    return not isinstance(x, tf.data.Dataset) and hasattr(leaf, "shape") and hasattr(leaf, "__getitem__")


def _parts(batch_size: int, group: Group) -> List[int]:
    """The workers' rows of a batch."""
    return [batch_size // group.size + (rank < batch_size % group.size) for rank in range(group.size)]


def _rows_of(tf: Any, group: Group, structure: Any, batch_size: int) -> Any:
    """This worker's rows of each batch of arrays."""
    parts = _parts(batch_size, group)
    begin = sum(parts[:group.rank])

    def rows_of(array: Any) -> Any:
        if array is None:
            return None
        places = np.arange(len(array)) % batch_size
        chosen = np.flatnonzero((begin <= places) & (places < begin + parts[group.rank]))
        return tf.gather(array, chosen) if tf.is_tensor(array) else array.iloc[chosen] if hasattr(array, "iloc") else array[chosen]

    return tf.nest.map_structure(rows_of, structure)


def _batches_of(tf: Any, group: Group, data: Any) -> Any:
    """This worker's part of each batch of a dataset. ``AutoShardPolicy.OFF``: all of its own dataset, in batches of its part."""
    if not isinstance(data, tf.data.Dataset):
        if data is not None:
            logger.warning("%s: each worker trains on all that its %s gives, in whole batches: use a tf.data.Dataset or arrays", __name__, type(data).__name__)
        return data
    batch_size = int(tf.raw_ops.ComputeBatchSize(input_dataset=tf.data.experimental.to_variant(data)))
    if batch_size >= group.size:
        data = data.rebatch(_parts(batch_size, group))
    elif batch_size < 0:
        logger.warning("%s: the dataset does not tell the size of its batches: workers take whole batches in turn", __name__)
    if data.options().experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.OFF:
        return data
    return data.shard(group.size, group.rank)

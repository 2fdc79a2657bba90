# SPDX-License-Identifier: Apache-2.0
"""Keras 3 trains in step: ``model = distribute(model)`` after ``compile``, on each worker, and ``fit`` as on one machine.

docs/keras.md says how it works, and what it costs.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Iterable, List, Optional, Sequence

from .arguments import count
from .collectives import Group, of_process

_STALENESS, _EVERY = 64, 4

logger = logging.getLogger(__name__)

__all__ = ["all_reduce", "broadcast", "distribute"]


def distribute(model: Any, group: Optional[Group] = None, timeout: float = 600, trusted_network: bool = False, mode: str = "sync",
               staleness: Optional[int] = None, every: Optional[int] = None) -> Any:
    """Makes a compiled Keras 3 model train together with those of the other workers; returns it.

    The rest of this, up to the arguments, is about the mode "sync".

    Each worker calls this, then ``fit`` with its own part of the data, in batches of its own. Each step uses the rows that the workers
    have at that step; a worker that has none left takes part without rows. The weights are those that one process would get
    from all these rows in one batch, and so are the metrics at the end of an epoch and of ``evaluate``. What ``fit`` begins with, weights, the optimizer's
    state and seeds, is the chief's. Callbacks that write files (``ModelCheckpoint``, ``TensorBoard``, ``BackupAndRestore``,
    ``CSVLogger``) act on the chief only, and ``model.save`` is to be called there. Outside of a cluster the process is alone.

    Args:
        model: a compiled model; the same program on all workers.
        group: None: all chiefs, masters and workers of the cluster.
        timeout: seconds to wait for a worker that runs, but does not join an operation: it writes a checkpoint, or waits for data. The first
            call in a process decides.
        trusted_network: nobody else can read or write what goes between the hosts: it is then authenticated, but not encrypted. The first call decides.
        mode: "sync", or "async": each worker takes over weights that all share, takes some steps of its own, and adds what these have changed, divided by the
            number of workers. It waits for no other, but for the staleness. Metrics are each worker's own; at the end of ``fit`` all have the same weights,
            those of the chief.
        staleness: for "async", how many steps each worker may take while another is in its steps, before it waits for that one; 64 if not given.
        every: for "async", the steps between two exchanges, at most the staleness; 4 if not given.

    Raises:
        ValueError: the model is not one of Keras 3 on TensorFlow, is not compiled, or belongs to a strategy of tf.distribute; or an argument is wrong. From
            ``fit`` in mode "async": something would make workers wait for each other.
    """
    import tensorflow as tf

    _check(tf, model)
    if mode not in ("sync", "async"):
        raise ValueError(f"mode must be 'sync' or 'async', not {mode!r}")
    if mode == "sync":
        if staleness is not None or every is not None:
            raise ValueError("staleness and every are of mode 'async': in mode 'sync' all workers take each step together")
        from .keras_model import attach

        return attach(tf, model, group or of_process(tf, timeout, trusted_network))
    staleness, every = (default if value is None else count(name, value, 1)
                        for name, value, default in (("staleness", staleness, _STALENESS), ("every", every, _EVERY)))
    if every > staleness:
        raise ValueError(f"every={every} must be at most staleness={staleness}")
    from . import keras_async

    return keras_async.attach(tf, model, group or of_process(tf, timeout, trusted_network, mode), staleness, every)


def all_reduce(gradients: Iterable[Any], rows: Any = 1, group: Optional[Group] = None) -> List[Any]:
    """The mean of the workers' gradients, for loops with ``tf.GradientTape``: to be called by all of them, before ``optimizer.apply``.

    Args:
        gradients: tensors, ``IndexedSlices`` or None, as ``tape.gradient`` gives them; the same ones on all workers.
        rows: how much this worker's gradients count, such as the rows of its batch.
        group: as in ``distribute``.

    Raises:
        tf.errors.AbortedError: a worker has ended; names it.
        tf.errors.OutOfRangeError: no worker has rows.
    """
    import tensorflow as tf

    return (group or of_process(tf)).mean(list(gradients), rows)[0]


def broadcast(variables: Sequence[Any], group: Optional[Group] = None) -> None:
    """Assigns the chief's values to variables, for loops with ``tf.GradientTape``: to be called by all workers before the first step."""
    import tensorflow as tf

    group = group or of_process(tf)
    variables = [getattr(variable, "value", variable) if not isinstance(variable, tf.Variable) else variable for variable in variables]
    values = group.broadcast([tf.convert_to_tensor(variable) for variable in variables], "variables")
    if group.rank != group.root:
        for variable, value in zip(variables, values):
            variable.assign(value)


def _check(tf: Any, model: Any) -> None:
    kind = type(model)
    if any(base.__module__.partition(".")[0] == "tf_keras" for base in kind.__mro__):
        raise ValueError("distribute() is for Keras 3, and this is a model of tf_keras: build it with `import keras`, and leave "
                         "TF_USE_LEGACY_KERAS unset; or train it under tf.distribute.MultiWorkerMirroredStrategy")
    keras = sys.modules.get("keras")
    if keras is None or not hasattr(keras, "__version__") or int(keras.__version__.partition(".")[0]) < 3:
        raise ValueError(f"distribute() needs Keras 3, and this is {getattr(keras, '__version__', 'another')}: install keras 3 "
                         "(TensorFlow 2.16 and later bring it)")
    if not isinstance(model, keras.Model):
        raise ValueError(f"distribute() takes a model of Keras 3, not {kind.__name__}")
    if keras.backend.backend() != "tensorflow":
        raise ValueError(f"distribute() needs Keras on TensorFlow, and it runs on {keras.backend.backend()}: set KERAS_BACKEND=tensorflow "
                         "before keras is imported")
    if not hasattr(model, "_maybe_symbolic_build"):
        raise ValueError(f"distribute() needs Keras 3.5 or later, and this is {keras.__version__}: upgrade keras")
    if not getattr(model, "compiled", False) or model.optimizer is None:
        raise ValueError("distribute() comes after compile(), which makes the optimizer: call model.compile(...) first")
    if tf.distribute.has_strategy() or getattr(model, "_distribute_strategy", None) is not None:
        raise ValueError("distribute() takes the place of a strategy of tf.distribute: build and compile the model outside of strategy.scope()")

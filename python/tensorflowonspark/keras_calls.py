# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``fit`` on one of several workers."""

from __future__ import annotations

import inspect
import logging
from typing import Any, Callable, Sequence

import keras

from .collectives import Group
from .keras_data import weigh_classes

logger = logging.getLogger(__name__)

__all__ = ["bind_fit", "build"]


def bind_fit(fit: Callable, tf: Any, group: Group, args: Sequence[Any], kwargs: Any, first: Sequence[Any] = (), last: Sequence[Any] = ()) -> Any:
    """The call of ``fit`` with callbacks put before and behind the user's: those that write are the chief's alone, and so is the progress bar."""
    call = inspect.signature(fit).bind(*args, **kwargs)
    callbacks = call.arguments.get("callbacks") or []
    if isinstance(callbacks, keras.callbacks.CallbackList):
        raise ValueError("fit of a distributed model takes callbacks as a list, not as a CallbackList")
    callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    call.arguments["callbacks"] = [*first, *(callback for callback in callbacks if group.is_chief or not _writes(callback)), *last]
    if not group.is_chief and call.arguments.get("verbose", "auto") == "auto":
        call.arguments["verbose"] = 0
    if isinstance(call.arguments.get("x"), tf.data.Dataset):
        call.arguments.setdefault("shuffle", False)  # Keras warns of its own default
        classes, structure = call.arguments.get("class_weight"), call.arguments["x"].element_spec
        if classes is not None and isinstance(structure, tuple) and len(structure) == 3:  # Keras takes no such dataset
            call.arguments["x"] = weigh_classes(tf, call.arguments["x"], classes)
            call.arguments["class_weight"] = None
    return call


def _writes(callback: Any) -> bool:
    kinds = ("ModelCheckpoint", "TensorBoard", "BackupAndRestore", "CSVLogger", "OrbaxCheckpoint", "RemoteMonitor")
    return isinstance(callback, tuple(getattr(keras.callbacks, kind) for kind in kinds if hasattr(keras.callbacks, kind)))


def build(model: Any, data_batch: Any) -> None:
    """Builds what the structure of the data lets be built."""
    try:
        model._symbolic_build(data_batch=data_batch)
    except Exception as error:
        logger.debug("the model is built by its first step: %s", error)

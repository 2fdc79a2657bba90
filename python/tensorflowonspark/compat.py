# SPDX-License-Identifier: Apache-2.0
"""What differs between versions of TensorFlow, for the user's function."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Union

from . import files

__all__ = ["disable_auto_shard", "export_saved_model", "is_gpu_available"]


def export_saved_model(model: Any, export_dir: Union[str, "os.PathLike[str]"], is_chief: bool = False) -> None:
    """Exports a Keras model as a SavedModel with a ``serving_default`` signature, on Keras 2 and 3.

    Under a multi-worker strategy every worker must call it; only the chief's model stays at ``export_dir``, the others save to a temporary folder and
    remove it.

    Raises:
        ValueError: the folder's name has characters that TensorFlow takes for a pattern when it loads a model, so that it may load another.
    """
    export_dir = check_export_dir(export_dir)
    if is_chief:
        _save(model, export_dir)
        return
    folder = tempfile.mkdtemp(prefix="tfos-export-")
    try:
        _save(model, os.path.join(folder, "model"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_export_dir(export_dir: Union[str, "os.PathLike[str]"]) -> str:
    """The folder's name, if TensorFlow can load a model from it."""
    name = files.for_tensorflow(export_dir)
    found = [character for character in "*?[\\" if character in name]
    if found:
        raise ValueError(f"export_dir: TensorFlow takes {found[0]} in {name!r} for a pattern when it loads the model: choose a name without * ? [ and \\")
    return name


def _save(model: Any, export_dir: str) -> None:
    if type(model).__module__.startswith("keras.src") and hasattr(model, "export") and _keras_major(model) >= 3:
        model.export(export_dir)
    else:
        model.save(export_dir, save_format="tf")


def _keras_major(model: Any) -> int:
    import keras

    return int(keras.__version__.split(".")[0])


def disable_auto_shard(options: Any) -> None:
    """Sets ``tf.data.Options`` so that every worker reads all of its own dataset."""
    import tensorflow as tf

    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF


def is_gpu_available() -> bool:
    """Whether TensorFlow sees a GPU."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))

# SPDX-License-Identifier: Apache-2.0
"""Hadoop's file systems for TensorFlow::

    from tensorflowonspark import fs
    fs.register()
    tf.data.TFRecordDataset(tf.io.gfile.glob("hdfs:///data/*.tfrecord"))

Trainers, the functions of ``TFParallel``, ``MirroredStrategyRunner`` and ``TFEstimator``, and what loads a model for ``TFModel``
have them without a call. Files go through Hadoop's own client, in a JVM that the first use of such a file starts
(docs/file_systems.md).
"""

from __future__ import annotations

import ctypes
import importlib.abc
import sys
import threading
import warnings
from typing import Any, Iterable, List, Optional

from . import files

__all__ = ["SCHEMES", "register"]

#: What Hadoop's FileSystem is asked for. Which of them it serves depends on its configuration and jars.
SCHEMES = (
    "hdfs", "viewfs", "viewfshdfs", "har", "webhdfs", "swebhdfs", "ofs", "o3fs", "s3", "s3a", "s3n", "abfs", "abfss", "wasb", "wasbs", "adl", "oss",
    "cosn", "obs", "alluxio",
)  # fmt: skip
_lock = threading.Lock()


def register(schemes: Optional[Iterable[str]] = None) -> List[str]:
    """Makes TensorFlow read and write files of these schemes: ``tf.io.gfile``, ``tf.data``, checkpoints, SavedModels, ``.keras`` files and summaries.

    Args:
        schemes: None: ``SCHEMES``. What TensorFlow has already, from another plugin or an earlier call, is left as it is.

    Returns:
        The schemes that were registered.

    Raises:
        RuntimeError: TensorFlow is older than 2.15.
    """
    import tensorflow as tf

    from . import dataset

    if isinstance(schemes, str):
        raise TypeError(f"schemes: expected a list of schemes, not the text {schemes!r}")
    with _lock:
        return _register(tf, dataset, SCHEMES if schemes is None else schemes)


def _register(tf: Any, dataset: Any, schemes: Iterable[str]) -> List[str]:
    from tensorflow.python.lib.io import file_io

    present = set(file_io.get_registered_schemes())
    added = [scheme for scheme in dict.fromkeys(schemes) if scheme not in present]
    if not added:
        return []
    files.find_hadoop()
    dataset.load_operations(tf)
    path = dataset.library_path()
    add = ctypes.CDLL(path).tfos_tf_add_scheme
    add.restype = ctypes.c_bool
    for scheme in added:
        if not add(scheme.encode()):
            raise ValueError(f"schemes: {scheme}: at most 32 schemes of 15 characters are registered at once")
    tf.experimental.register_filesystem_plugin(path)
    return added


def register_on_import() -> None:
    """As soon as this process imports TensorFlow. What fails then is a warning: the import does not."""
    if "tensorflow" in sys.modules:
        _register_or_warn()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register_or_warn() -> None:
    try:
        register()
    except Exception as error:
        warnings.warn(f"TensorFlow reads no hdfs:// here: {error}", stacklevel=2)


class _Finder(importlib.abc.MetaPathFinder):
    """Puts a loader before TensorFlow's own. Who only looks for TensorFlow does not import it."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "tensorflow":
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(self, spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, finder: _Finder, loader: Any) -> None:
        self._finder, self._loader = finder, loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._loader.exec_module(module)
        _register_or_warn()

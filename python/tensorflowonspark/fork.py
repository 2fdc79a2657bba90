# SPDX-License-Identifier: Apache-2.0
"""Packages of another name whose modules are this one's, with another default for the part of a GPU that a node gets."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

__all__ = ["install"]

_PACKAGE = __name__.rpartition(".")[0]
_TAKES_FRACTION = {"TFCluster": "run", "TFNode": "start_cluster_server"}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``package.X`` as a module that has what ``tensorflowonspark.X`` has."""

    def __init__(self, package: str, gpu_fraction: float) -> None:
        self._package = package
        self._fraction = gpu_fraction

    def find_spec(self, name: str, path: Optional[Sequence[Any]] = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        package, _, rest = name.partition(".")
        if package != self._package or not rest or importlib.util.find_spec(f"{_PACKAGE}.{rest}") is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        rest = module.__name__.partition(".")[2]
        original = importlib.import_module(f"{_PACKAGE}.{rest}")
        for name, value in vars(original).items():
            if not name.startswith("__") or name in ("__all__", "__doc__"):
                setattr(module, name, value)
        name = _TAKES_FRACTION.get(rest)
        if name is not None:
            setattr(module, name, _with_default(getattr(original, name), self._fraction))


def _with_default(function: Any, gpu_fraction: float) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{"gpu_fraction": gpu_fraction, **kwargs})

    return call


def install(package: str, gpu_fraction: float) -> None:
    """Lets modules of ``package`` be imported."""
    sys.meta_path.append(_Finder(package, gpu_fraction))

# SPDX-License-Identifier: Apache-2.0
"""The fork server of an executor: a process that has imported TensorFlow, of which nodes and their trainers are forks (docs/preloading.md)."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Callable, Dict

from . import _tfos, failures, fs

__all__ = ["serve_if_asked"]

_VARIABLE = "TFOS_FORK_SERVER"  # as in <tfos/node.h>
_LISTENER = 3


def serve_if_asked(run: Callable[[], None]) -> None:
    """Serves forks, and ends this process, if the launcher has started it for that. ``run`` is called in each trainer and does not return."""
    task = os.environ.pop(_VARIABLE, None)
    if task is None:
        return
    executor_pid, _, modules = task.partition(" ")
    fs.register_on_import()
    for name in filter(None, map(str.strip, modules.split(","))):
        _preload(name)
    gc.collect()
    gc.freeze()  # so that collections in the forks do not touch, and so copy, the pages of what is there

    def begin(environment: Dict[bytes, bytes]) -> None:
        _take_environment(environment)
        run()

    _tfos.serve_forks(_LISTENER, int(executor_pid), begin)
    os._exit(0)


def _preload(name: str) -> None:
    """Imports a module. What cannot be imported here is left to the trainers, whose function may do without it."""
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"TFOS_PRELOAD: {name} was not imported: {failures.text_of(error)}", file=sys.stderr, flush=True)


def _take_environment(environment: Dict[bytes, bytes]) -> None:
    """What differs between processes that were started, and would not between forks."""
    for name in set(os.environb) - set(environment):
        del os.environb[name]
    os.environb.update(environment)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()

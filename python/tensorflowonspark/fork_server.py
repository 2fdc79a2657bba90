# SPDX-License-Identifier: Apache-2.0
"""The fork server of an executor: a process that has imported TensorFlow, of which nodes and their trainers are forks (docs/preloading.md)."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Callable, Dict

from . import _tfos, failures, fs

__all__ = ["preload", "serve_if_asked"]

_VARIABLE = "TFOS_FORK_SERVER"  # as in <tfos/node.h>
_LISTENER = 3


def serve_if_asked(run: Callable[[], None]) -> None:
    """Serves forks, and ends this process, if the launcher has started it for that. ``run`` is called in each trainer and does not return."""
    task = os.environ.pop(_VARIABLE, None)
    if task is None:
        return
    executor_pid, _, modules = task.partition(" ")
    fs.register_on_import()
    preload(modules)

    def begin(environment: Dict[bytes, bytes]) -> None:
        for name in set(os.environb) - set(environment):
            del os.environb[name]
        os.environb.update(environment)
        run()

    _tfos.serve_forks(_LISTENER, int(executor_pid), begin)
    os._exit(0)


def preload(modules: str) -> None:
    """Imports modules, divided by commas, for forks of this process. One that cannot be imported here is left to the forks, which may do without it."""
    for name in filter(None, map(str.strip, modules.split(","))):
        try:
            importlib.import_module(name)
        except Exception as error:
            print(f"TFOS_PRELOAD: {name} was not imported: {failures.text_of(error)}", file=sys.stderr, flush=True)
    if "numpy" in sys.modules:  # the others seed themselves after a fork, or at their first use
        os.register_at_fork(after_in_child=sys.modules["numpy"].random.seed)
    gc.collect()
    gc.freeze()  # collections in the forks do not touch, and so do not copy, the pages of what is there

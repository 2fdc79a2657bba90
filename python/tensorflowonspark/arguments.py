# SPDX-License-Identifier: Apache-2.0
"""Checks of what a user asks of a cluster, before anything is started or fed."""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, List, Optional

__all__ = ["VALIDATION", "InputMode", "check_run", "queue_names", "validation_epochs"]

VALIDATION = "validation"  # the queue
_QUEUE_LIMIT = 16


class InputMode:
    """Who reads the data."""

    TENSORFLOW = 0  #: the user's function reads its own data
    SPARK = 1  #: Spark feeds RDDs to the function


def check_run(map_fun: Any, num_executors: Any, num_ps: Any, input_mode: Any, master_node: Any,
               reservation_timeout: Any, eval_node: Any) -> None:
    if not callable(map_fun):
        raise TypeError(f"map_fun must be a function of (args, ctx), not {type(map_fun).__name__}")
    for name, value, least in (("num_executors", num_executors, 1), ("num_ps", num_ps, 0)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an integer, not {value!r}")
        if value < least:
            raise ValueError(f"{name} must be {least} or more, not {value}")
    if input_mode not in (InputMode.TENSORFLOW, InputMode.SPARK):
        raise ValueError(f"input_mode must be InputMode.TENSORFLOW or InputMode.SPARK, not {input_mode!r}")
    if master_node is not None and (not isinstance(master_node, str) or not master_node.isalpha()):
        raise ValueError(f"master_node must be a name such as 'chief' or 'master', not {master_node!r}")
    if master_node in ("ps", "worker", "evaluator"):
        raise ValueError(f"master_node must not be {master_node!r}, which is another role's name")
    if not isinstance(reservation_timeout, (int, float)) or not reservation_timeout > 0:
        raise ValueError(f"reservation_timeout must be a number of seconds above 0, not {reservation_timeout!r}")
    special = num_ps + (1 if eval_node else 0)
    if num_executors < special + 1:
        raise ValueError(
            f"num_executors={num_executors} leaves no worker: num_ps={num_ps}{' and the evaluator' if eval_node else ''} take "
            f"{special} nodes, and a cluster needs one {'worker or ' + master_node if master_node else 'worker'} besides")


def queue_names(queues: Optional[Iterable[str]]) -> List[str]:
    """The names of all queues, "input" first."""
    if isinstance(queues, (str, bytes)) or (queues is not None and not isinstance(queues, Iterable)):
        raise TypeError(f"queues must be a list of names, not {queues!r}")
    names = list(dict.fromkeys(["input", VALIDATION, *(queues or ())]))
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            raise ValueError(f"queues: {name!r} is no name of a queue: 1 to 64 letters, digits, '-', '_' and '.'")
    if len(names) > _QUEUE_LIMIT:
        raise ValueError(f"queues: {len(names)} queues with 'input' and 'validation' are too many; {_QUEUE_LIMIT} are possible")
    return names


def validation_epochs(frequency: Any) -> Callable[[int], bool]:
    """Whether an epoch, counted from 1, is followed by a validation, in Keras's words: each n-th, or those of a list."""
    if _is_count(frequency):
        return lambda epoch: epoch % frequency == 0
    epochs = None if isinstance(frequency, (str, bytes)) or not isinstance(frequency, Iterable) else set(frequency)
    if not epochs or not all(map(_is_count, epochs)):
        raise ValueError(f"validation_freq must be a number of epochs or a list of epochs, from 1, not {frequency!r}")
    return epochs.__contains__


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1

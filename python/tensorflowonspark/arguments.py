# SPDX-License-Identifier: Apache-2.0
"""Checks of what a user passes, before anything is started or fed. Numbers and flags of numpy and pandas become Python's here."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from typing import Any, Callable, Iterable, List, NamedTuple, Optional

__all__ = ["VALIDATION", "InputMode", "RunOptions", "check_function", "count", "flag", "is_flag", "is_number", "milliseconds", "plain", "queue_names",
           "run_options", "seconds", "validation_epochs"]

VALIDATION = "validation"  # the queue
_QUEUE_LIMIT = 16
_LONGEST_SECS = 1e9


class InputMode:
    """Who reads the data."""

    TENSORFLOW = 0  #: the user's function reads its own data
    SPARK = 1  #: Spark feeds RDDs to the function


# -- numbers


def is_flag(value: Any) -> bool:
    """Whether it is True or False, be it numpy's."""
    return isinstance(value, bool) or (_numpy_kind(value) == "b" and value.shape == ())


def flag(name: str, value: Any) -> bool:
    if not is_flag(value):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def count(name: str, value: Any, least: Optional[int] = None, most: Optional[int] = None, words: str = "", wrong_type: type = ValueError) -> int:
    """The integer within its limits; ``words`` say what it must be, where that is more than these."""
    if not words:
        words = "an integer" if least is None else f"an integer of {least} or more" if most is None else f"an integer from {least} to {most}"
    try:
        number = None if is_flag(value) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise wrong_type(f"{name} must be {words}, not {value!r}")
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"{name} must be {words}, not {value!r}")
    return number


def is_number(value: Any) -> bool:
    """Whether it is one number, not a flag."""
    if isinstance(value, (str, bytes)) or is_flag(value) or not hasattr(type(value), "__float__"):
        return False
    return getattr(value, "shape", ()) == ()


def seconds(name: str, value: Any, least: float = 0.001, most: float = float("inf"), words: str = "a number of seconds above 0") -> float:
    number = float(value) if is_number(value) else float("nan")
    if not least <= number <= most:
        raise ValueError(f"{name} must be {words}, not {value!r}")
    return number


def milliseconds(seconds: float) -> int:
    """The same time; 30 years where it is longer."""
    return int(min(seconds, _LONGEST_SECS) * 1000)


def plain(value: Any) -> Any:
    """numpy's number, flag or array as Python's: what ``json.dumps(default=...)`` calls."""
    if _numpy_kind(value) is None:
        raise TypeError(f"{type(value).__name__} is not among what JSON can hold")
    return value.tolist()


def _numpy_kind(value: Any) -> Any:
    return getattr(getattr(value, "dtype", None), "kind", None)


# -- a cluster


class RunOptions(NamedTuple):
    """The arguments of ``TFCluster.run``, as Python has them."""

    num_executors: int
    num_ps: int
    tensorboard: bool
    input_mode: int
    driver_ps_nodes: bool
    reservation_timeout: float
    eval_node: bool
    release_port: bool
    native_ps: bool


def run_options(num_executors: Any, num_ps: Any, tensorboard: Any, input_mode: Any, driver_ps_nodes: Any, master_node: Any,
                reservation_timeout: Any, eval_node: Any, release_port: Any, native_ps: Any = False) -> RunOptions:
    options = RunOptions(
        count("num_executors", num_executors, 1, wrong_type=TypeError), count("num_ps", num_ps, 0, wrong_type=TypeError), bool(tensorboard),
        count("input_mode", input_mode, InputMode.TENSORFLOW, InputMode.SPARK, "InputMode.TENSORFLOW or InputMode.SPARK"), bool(driver_ps_nodes),
        seconds("reservation_timeout", reservation_timeout), bool(eval_node), bool(release_port),
        flag("native_ps", native_ps))
    if options.native_ps and options.num_ps == 0:
        raise ValueError("native_ps=True is for parameter servers, and num_ps is 0")
    if master_node is not None and (not isinstance(master_node, str) or not master_node.isalpha()):
        raise ValueError(f"master_node must be a name such as 'chief' or 'master', not {master_node!r}")
    if master_node in ("ps", "worker", "evaluator"):
        raise ValueError(f"master_node must not be {master_node!r}, which is another role's name")
    special = options.num_ps + options.eval_node
    if options.num_executors < special + 1:
        raise ValueError(
            f"num_executors={options.num_executors} leaves no worker: num_ps={options.num_ps}{' and the evaluator' if options.eval_node else ''} take "
            f"{special} nodes, and a cluster needs one {'worker or ' + master_node if master_node else 'worker'} besides")
    return options


def check_function(map_fun: Any) -> None:
    """Whether calling it with two arguments runs anything.

    Raises:
        TypeError: it cannot be called so, or would only give a generator.
    """
    if not callable(map_fun):
        raise TypeError(f"map_fun must be a function of (args, ctx), not {type(map_fun).__name__}")
    called = map_fun
    while isinstance(called, functools.partial):
        called = called.func
    for function in (called, type(called).__call__):
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"map_fun must be a function of (args, ctx) that runs when it is called; {map_fun!r} gives a generator, which nobody "
                            "iterates over: pass a function that does")
    try:
        signature = inspect.signature(map_fun, follow_wrapped=False)
    except (TypeError, ValueError):  # one in C may have no signature
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise TypeError(f"map_fun must be a function of (args, ctx); {map_fun!r} takes {signature}: {error}") from None


def queue_names(queues: Optional[Iterable[str]]) -> List[str]:
    """The names of all queues, "input" first."""
    if isinstance(queues, (str, bytes)) or (queues is not None and not isinstance(queues, Iterable)):
        raise TypeError(f"queues must be a list of names, not {queues!r}")
    names = list(dict.fromkeys(["input", VALIDATION, *(() if queues is None else queues)]))
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            raise ValueError(f"queues: {name!r} is no name of a queue: 1 to 64 letters, digits, '-', '_' and '.'")
    if len(names) > _QUEUE_LIMIT:
        raise ValueError(f"queues: {len(names)} queues with 'input' and 'validation' are too many; {_QUEUE_LIMIT} are possible")
    return names


def validation_epochs(frequency: Any) -> Callable[[int], bool]:
    """Whether an epoch, counted from 1, is followed by a validation, in Keras's words: each n-th, or those of a list."""
    one = functools.partial(count, "validation_freq", least=1, words="a number of epochs or a list of epochs, from 1")
    if isinstance(frequency, (str, bytes)) or not isinstance(frequency, Iterable) or getattr(frequency, "shape", None) == ():
        step = one(frequency)
        return lambda epoch: epoch % step == 0
    epochs = {one(epoch) for epoch in frequency}
    if not epochs:
        one(frequency)
    return epochs.__contains__

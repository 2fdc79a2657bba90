# SPDX-License-Identifier: Apache-2.0
"""Exceptions as texts that can be sent and shown, whatever they are made of: not too long, and nothing in them that cannot be encoded."""

from __future__ import annotations

import contextlib
import sys
import traceback
from typing import Iterator, Optional

__all__ = ["LOG_LIMIT", "MESSAGE_LIMIT", "advice", "explain", "printable", "sendable", "text_of"]

# Bytes of a part of a traceback. The driver shows the last 2,000 of the whole, and the exception's name begins the last part.
LOG_LIMIT, MESSAGE_LIMIT = 1 << 20, 1200


def text_of(error: BaseException) -> str:
    """What the exception says, cut and escaped; its type's name where it says nothing, or raises when it is asked."""
    try:
        text = str(error)
    except BaseException:
        text = ""
    return _cut(text, MESSAGE_LIMIT) or type(error).__name__


def explain(error: BaseException, limit: int) -> str:
    """The exception's traceback, each part cut and escaped, and what to do, where that is known."""
    try:
        parts = list(traceback.TracebackException.from_exception(error).format())
    except BaseException:  # its class has members of types that no exception's should have
        parts = [*traceback.format_tb(error.__traceback__), f"{type(error).__name__}: {text_of(error)}\n"]
    return "".join([*(_cut(part, limit) for part in parts), advice(error)])


@contextlib.contextmanager
def sendable() -> Iterator[None]:
    """For Spark's tasks: pyspark cannot send the text of an exception that has a lone surrogate in it, and waits for ever.

    Raises:
        RuntimeError: in the place of such an exception, with its traceback escaped.
    """
    try:
        yield
    except Exception as error:
        try:
            traceback.format_exc().encode()
        except UnicodeEncodeError:
            raise RuntimeError(explain(error, MESSAGE_LIMIT)) from None
        raise


def printable(text: str) -> str:
    """The text with lone surrogates and null characters escaped."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _cut(text: str, limit: int) -> str:
    """The printable text, without its middle if it is longer than ``limit`` bytes."""
    data = printable(text).encode()
    if len(data) <= limit:
        return data.decode()
    tail_size = limit // 4
    head, tail = (part.decode(errors="ignore") for part in (data[:limit - tail_size], data[-tail_size:]))
    return f"{head} ... ({len(data) - limit} bytes are left out here) ... {tail}"


def advice(error: BaseException) -> str:
    """What to do about a module that this process lacks, as a line; empty for other errors."""
    missing = _missing_module(error)
    if missing is None:
        return ""
    name = str(missing.name).partition(".")[0]
    if name in sys.modules:
        return f"The module {name!r} of this executor ({getattr(sys.modules[name], '__file__', None)}) is another than the driver's.\n"
    return (f"The Python of this executor ({sys.executable}) has no module {name!r}. If it is yours, beside the driver's program, send it along: "
            f"spark-submit --py-files {name}.py (a package as a .zip), or sc.addPyFile(\"{name}.py\") before TFCluster.run. If it is an "
            f"installed one, install {name!r} there, or point spark.pyspark.python (or PYSPARK_PYTHON) to a Python that has it.\n")


def _missing_module(error: Optional[BaseException]) -> Optional[ModuleNotFoundError]:
    """The exception, or the nearest of its causes, that names a module; None: there is none."""
    seen = set()
    while error is not None and id(error) not in seen and not isinstance(error, ModuleNotFoundError):
        seen.add(id(error))
        error = error.__cause__
    return error if isinstance(error, ModuleNotFoundError) else None

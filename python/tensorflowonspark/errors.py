# SPDX-License-Identifier: Apache-2.0
"""What calls of this package raise. ``str(error)`` says what failed, where, why and what to do.

Each is an ``Error``, and a built-in exception of its kind where there is one, so that ``except TimeoutError`` catches a ``TimedOutError``.
"""

from ._tfos import (
    BusyError,
    ClosedError,
    CorruptError,
    DeniedError,
    Error,
    InvalidError,
    IoError,
    NoMemoryError,
    NotFoundError,
    TimedOutError,
    UnsupportedError,
)

__all__ = ["BusyError", "ClosedError", "CorruptError", "DeniedError", "Error", "InvalidError", "IoError", "NoMemoryError", "NotFoundError",
           "TimedOutError", "UnsupportedError"]

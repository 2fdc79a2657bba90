# SPDX-License-Identifier: Apache-2.0
"""Texts for a person, on ``sys.stdout`` and ``sys.stderr`` as they are at the moment. Where these do not take them, nothing else fails."""

from __future__ import annotations

import sys
from typing import Optional

__all__ = ["is_terminal", "show"]


def show(stream_name: str, text: str) -> Optional[Exception]:
    """Writes the text to "stdout" or "stderr", with what that cannot encode escaped. Gives why it takes nothing; None where it does, or is None."""
    try:
        stream = getattr(sys, stream_name)
        if stream is None:
            return None
        try:
            stream.write(text)
        except UnicodeError:
            encoding = getattr(stream, "encoding", None) or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except Exception as error:  # it is closed, nobody reads it any more, or it is one of a notebook that raises what it likes
        return error
    return None


def is_terminal(stream_name: str) -> bool:
    """Whether the stream is one."""
    try:
        return bool(getattr(sys, stream_name).isatty())
    except Exception:
        return False

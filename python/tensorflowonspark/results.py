# SPDX-License-Identifier: Apache-2.0
"""What functions have returned, and arguments that are saved: as JSON where that holds them, else pickled."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any, Dict, Iterator, List

from . import _tfos
from .failures import text_of

__all__ = ["ResultTable", "pack", "parts_of", "pickled", "unpack"]

_SIZE_LIMIT = 4 << 20  # of one result as text
_PART_SIZE = 1 << 19


def pack(value: Any) -> dict:
    """The value in what JSON can hold."""
    try:
        if json.loads(json.dumps(value)) == value:
            return {"json": value}
    except (TypeError, ValueError, RecursionError):
        pass
    return pickled(value)


def pickled(value: Any) -> dict:
    from pyspark import cloudpickle

    return {"pickle": base64.b64encode(cloudpickle.dumps(value)).decode()}


def unpack(held: dict) -> Any:
    """The value. A pickle runs what it says."""
    from pyspark import cloudpickle

    return held["json"] if "json" in held else cloudpickle.loads(base64.b64decode(held["pickle"]))


def parts_of(result: Any) -> Iterator[str]:
    """A function's result as the messages that a trainer sends; none of None."""
    if result is None:
        return
    try:
        text = json.dumps(pack(result))
    except Exception as error:  # of the result's own classes
        text = json.dumps({"error": f"what it returned cannot be pickled: {text_of(error)}"})
    if len(text) > _SIZE_LIMIT:
        text = json.dumps({"error": f"what it returned has {len(text)} bytes, and {_SIZE_LIMIT} are carried at most: write it to a file"})
    begins = range(0, len(text), _PART_SIZE)
    for begin in begins:
        yield json.dumps({"part": begin // _PART_SIZE, "parts": len(begins), "text": text[begin:begin + _PART_SIZE]})


class ResultTable:
    """The results that have come, by executor id. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: Dict[int, List[str]] = {}
        self._counts: Dict[int, int] = {}

    def take(self, executor_id: int, message: str) -> None:
        """Takes a message of ``parts_of``."""
        part = json.loads(message)
        with self._lock:
            if part["part"] == 0:
                self._texts[executor_id] = []
            self._texts[executor_id].append(part["text"])
            self._counts[executor_id] = part["parts"]

    def values(self, node_count: int, allow_pickle: bool) -> List[Any]:
        """Each node's result; None where there is none.

        Raises:
            tensorflowonspark.errors.Error: one could not be carried, or is pickled where that is not allowed; names the node.
        """
        with self._lock:
            texts, counts = {node: list(parts) for node, parts in self._texts.items()}, dict(self._counts)
        return [_value(node, texts[node], counts[node], allow_pickle) if node in texts else None for node in range(node_count)]


def _value(node: int, texts: List[str], count: int, allow_pickle: bool) -> Any:
    if len(texts) < count:
        raise _tfos.Error(f"results: of what node {node} returned only {len(texts)} of {count} parts have come")
    held = json.loads("".join(texts))
    if "error" in held:
        raise _tfos.Error(f"results: node {node}: {held['error']}")
    if "pickle" in held and not allow_pickle:
        raise _tfos.UnsupportedError(f"results: what node {node} returned is pickled, which allow_pickle=False refuses: return what JSON can hold")
    return unpack(held)

# SPDX-License-Identifier: Apache-2.0
"""``ctx.get_dataset``: the feed as a ``tf.data.Dataset`` of batches."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

__all__ = ["get_dataset"]

_UNEVEN = (None, "pad", "stop")


def get_dataset(ctx: Any, batch_size: int, uneven: Optional[str] = None, drop_remainder: bool = False,
                dtypes: Any = None, prefetch: int = 2, timeout: float = 600) -> Any:
    """A ``tf.data.Dataset`` whose elements are batches of the rows fed to this node.

    Each pass over it is one epoch of ``cluster.train``; after the last it is empty. Waits for the first row, whose shape and type say
    what the elements are: a tuple of tensors for rows that are tuples or lists, a dictionary for dictionaries and Rows, one tensor for
    single values; the first dimension is the batch.

    Args:
        ctx: the node's context.
        batch_size: rows of a batch on this node. Keras's ``fit`` under a multi-worker strategy cuts each batch of a plain dataset
            into as many parts as there are workers: give it ``ctx.num_workers`` times the rows of a step.
        uneven: how nodes that train in step stay so, though they get unequal numbers of rows. None: each node on its own. "pad": before each
            batch all nodes agree whether any has rows left; who has none, or too few, fills up with zero rows. Elements
            then end with a float32 vector of sample weights, 1 for rows and 0 for filling, as Keras takes it (metrics heed it as
            ``weighted_metrics``), and every batch has ``batch_size`` rows. "stop": the epoch ends for all when one node has no whole batch left;
            the rest of the rows is dropped.
        drop_remainder: with ``uneven=None``, leave out an epoch's last batch when it has too few rows.
        dtypes: a dtype for all tensors, or a tuple or dictionary of them in the elements' structure; None: as fed (float64
            for Python floats, int64 for ints).
        prefetch: batches to keep ready.
        timeout: seconds to wait for the other nodes in each agreement.

    Raises:
        ValueError: an argument is wrong; later, from the iterator, rows whose shape or type changes.
    """
    import tensorflow as tf

    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be an integer of 1 or more, not {batch_size!r}")
    if uneven not in _UNEVEN:
        raise ValueError(f"uneven must be None, 'pad' or 'stop', not {uneven!r}")
    source = _Source(ctx, batch_size, uneven, drop_remainder, dtypes, timeout)
    dataset = tf.data.Dataset.from_generator(source.epoch, output_signature=source.signature(tf))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.prefetch(prefetch).with_options(options)


class _Layout:
    """The structure of the rows and the shape and dtype of each column; can be told to other nodes as JSON."""

    def __init__(self, names: Optional[List[str]], single: bool, columns: List[Tuple[List[int], str]]) -> None:
        self.names = names
        self.single = single
        self.columns = columns

    @classmethod
    def of(cls, arrays: Any) -> "_Layout":
        names = list(arrays) if isinstance(arrays, dict) else None
        return cls(names, isinstance(arrays, np.ndarray), [(list(a.shape[1:]), _dtype_name(a)) for a in _columns(arrays)])

    def to_json(self) -> list:
        return [self.names, self.single, self.columns]

    def build(self, columns: List[Any]) -> Any:
        """The columns in the structure of a row."""
        if self.single:
            return columns[0]
        return dict(zip(self.names, columns)) if self.names is not None else tuple(columns)


def _dtype_name(array: np.ndarray) -> str:
    """The column's dtype for TensorFlow: objects must be text or bytes."""
    if array.dtype != object:
        return array.dtype.name
    if len(array) and not isinstance(array[0], (str, bytes)):
        raise ValueError(f"a column of {type(array[0]).__name__} has no tensor form; feed numbers, text, bytes or lists of numbers "
                         "of one length")
    return "object"


def _columns(arrays: Any) -> List[np.ndarray]:
    if isinstance(arrays, np.ndarray):
        return [arrays]
    return list(arrays.values()) if isinstance(arrays, dict) else list(arrays)


def _row_count(arrays: Any) -> int:
    """Rows of what the reader gave; 0 at the end of an epoch or of the feed."""
    columns = [] if arrays is None else _columns(arrays)
    return len(columns[0]) if columns else 0


class _Source:
    """Batches from the feed, in step with the other nodes if asked."""

    def __init__(self, ctx: Any, batch_size: int, uneven: Optional[str], drop_remainder: bool, dtypes: Any,
                 timeout: float) -> None:
        self._ctx = ctx
        self._reader = ctx.mgr.link.open_feed("input")
        self._batch_size = batch_size
        self._uneven = uneven
        self._drop_remainder = drop_remainder
        self._timeout = timeout
        self._epoch = 0
        self._peeked = [self._first_batch()]
        self._layout = self._agree_layout(self._peeked[0])
        self._dtypes = self._spread_dtypes(dtypes)

    def signature(self, tf: Any) -> Any:
        rows = self._batch_size if self._uneven or self._drop_remainder else None
        specs = [tf.TensorSpec([rows, *shape], tf.string if dtype == "object" else dtype)
                 for (shape, _), dtype in zip(self._layout.columns, self._dtypes)]
        return self._element(specs, tf.TensorSpec([rows], "float32"))

    def epoch(self) -> Iterator[Any]:
        """The batches of one epoch."""
        self._epoch += 1
        over, step = False, 0
        while True:
            batch = None if over else self._next_batch()
            count = _row_count(batch)
            over = over or count == 0
            if not self._continues(step, count):
                break
            step += 1
            yield self._element(*self._fill(batch, count))
        while not over:  # rows that this epoch does not use must not begin the next one
            over = _row_count(self._read()) == 0

    def _first_batch(self) -> Any:
        """The first batch, or what says that this node has no rows in the first epoch (alone: in any epoch)."""
        batch = self._read()
        while not self._uneven and batch is not None and _row_count(batch) == 0:
            batch = self._read()
        return batch

    def _next_batch(self) -> Any:
        return self._peeked.pop() if self._peeked else self._read()

    def _read(self) -> Any:
        return self._reader.next_arrays(self._batch_size, stop_at_epoch=True)

    def _continues(self, step: int, count: int) -> bool:
        least = self._batch_size if self._uneven == "stop" or self._drop_remainder else 1
        if not self._uneven:
            return count >= least
        counts = self._ctx.agree(f"dataset/{self._epoch}/{step}", count, self._timeout)
        return max(counts) >= 1 if self._uneven == "pad" else min(counts) >= least

    def _fill(self, batch: Any, count: int) -> Tuple[List[np.ndarray], np.ndarray]:
        """The columns, made up with zeros to a whole batch where batches are whole, and the weights."""
        columns: List[Any] = _columns(batch) if count else [None] * len(self._layout.columns)
        rows = self._batch_size if self._uneven else count
        filled = [self._column(column, count, rows, shape, dtype)
                  for column, (shape, _), dtype in zip(columns, self._layout.columns, self._dtypes)]
        weights = np.zeros(rows, "float32")
        weights[:count] = 1
        return filled, weights

    @staticmethod
    def _column(column: Optional[np.ndarray], count: int, rows: int, shape: List[int], dtype: str) -> np.ndarray:
        if count == rows and column is not None:
            return column if dtype == "object" else column.astype(dtype, copy=False)
        filled = np.full([rows, *shape], "" if dtype == "object" else 0, dtype)
        if column is not None:
            filled[:count] = column
        return filled

    def _element(self, columns: List[Any], weights: Any) -> Any:
        element = self._layout.build(columns)
        if self._uneven != "pad":
            return element
        return (*element, weights) if isinstance(element, tuple) else (element, weights)

    def _agree_layout(self, first: Any) -> _Layout:
        """The layout of this node's first batch; a node without rows learns it from the others."""
        own = _Layout.of(first) if _row_count(first) else None
        if not self._uneven:
            if own is None:
                raise ValueError("the feed ended before the first row, so the dataset's structure is unknown")
            return own
        layouts = self._ctx.agree("dataset/layout", own and own.to_json(), self._timeout)
        known = [layout for layout in layouts if layout is not None]
        if not known:
            raise ValueError("no node was fed a row, so the dataset's structure is unknown")
        if any(layout != known[0] for layout in known):
            raise ValueError(f"the nodes were fed rows of different structure: {known}")
        names, single, columns = known[0]
        return _Layout(names, single, [(shape, dtype) for shape, dtype in columns])

    def _spread_dtypes(self, dtypes: Any) -> List[str]:
        """One dtype name a column."""
        if dtypes is None:
            return [dtype for _, dtype in self._layout.columns]
        if isinstance(dtypes, dict):
            dtypes = [dtypes[name] for name in self._layout.names or ()]
        if not isinstance(dtypes, (list, tuple)):
            dtypes = [dtypes] * len(self._layout.columns)
        if len(dtypes) != len(self._layout.columns):
            raise ValueError(f"dtypes names {len(dtypes)} columns, the rows have {len(self._layout.columns)}")
        return [np.dtype(getattr(dtype, "as_numpy_dtype", dtype)).name for dtype in dtypes]

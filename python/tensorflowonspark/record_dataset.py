# SPDX-License-Identifier: Apache-2.0
"""``tfrecord.dataset``: TFRecord files as a ``tf.data.Dataset`` of batches, read and decoded by ops in C."""

from __future__ import annotations

import os
import secrets
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from . import _tfos
from .arguments import count, flag
from .dataset import Source, check_dtypes, load_operations, options_of, prefetch_of, settle, wishes_of

__all__ = ["Counts", "make"]

_MOST_READS = 1024


class Counts(NamedTuple):
    """What a dataset has read so far: files at their ends, and files of passes that were given up."""

    records: int
    bytes: int
    damages: int  #: places where something was passed over
    skipped_bytes: int


class _Files(Source):
    """Files, of which each pass is a dataset of the library of its own, closed with the iterator that holds its number."""

    def __init__(self, tf: Any, dataset: _tfos.RecordDataset, paths: List[str], reads: int, shuffle: bool, seed: Optional[int]) -> None:
        super().__init__(tf, dataset, None)
        self._begin = load_operations(tf).tfos_begin_pass
        self._paths, self._reads, self._shuffle, self._seed = paths, reads, shuffle, seed

    def _known(self, uneven: Optional[str]) -> Any:
        return self.dataset.specs()

    def _passes(self, function: Callable, element_spec: Any) -> Any:
        tf = self._tf
        paths = tf.data.Dataset.from_tensors(tf.constant([os.fsencode(path) for path in self._paths], tf.string, shape=[len(self._paths)]))
        if self._shuffle:
            paths = paths.unbatch().shuffle(len(self._paths), seed=self._seed, reshuffle_each_iteration=True).batch(len(self._paths))
        # A seed for each pass: the same ones again for the same seed.
        seeds = tf.data.Dataset.random(seed=self._seed, rerandomize_each_iteration=True).take(1)

        def begin(paths: Any, seed: Any) -> Any:
            number = self._begin(dataset=self.dataset.number, paths=paths, seed=seed, parallel_reads=self._reads)
            return self._pass(number, function, element_spec)

        return tf.data.Dataset.zip((paths, seeds)).flat_map(tf.autograph.experimental.do_not_convert(begin))


def make(paths: List[str], schema: Any, reading: Dict[str, Any], batch_size: int, drop_remainder: bool, num_parallel_reads: Optional[int],
         shuffle_files: bool, shuffle_buffer: int, seed: Optional[int], shapes: Any, ragged: Any, padded: Any, null_value: Any,
         dtypes: Any, prefetch: int) -> Any:
    """``tfrecord.dataset`` for files of a schema; ``reading``: type, compression, mode, max_record_size."""
    options = options_of(batch_size, None, drop_remainder, 1, None, null_value, shuffle_buffer, seed)
    columns = wishes_of(shapes, ragged, padded, None, null_value)
    reads = _reads(num_parallel_reads)
    shuffle_files = flag("shuffle_files", shuffle_files)
    prefetch = prefetch_of(prefetch)

    import tensorflow as tf

    check_dtypes(tf, dtypes)
    library = _tfos.RecordDataset(
        paths, schema, columns=columns, **{name: options[name] for name in ("batch_size", "drop_remainder", "null_value", "shuffle_rows")},
        **reading,
    )  # fmt: skip
    source = _Files(tf, library, paths, reads, shuffle_files, secrets.randbits(31) if seed is None else options["seed"])
    dataset = source.batches(dtypes)
    if prefetch:
        dataset = dataset.prefetch(prefetch)
    dataset = settle(tf, dataset)
    # What is made of the dataset keeps it, and with it the library's, whose number is in the graph.
    dataset.record_source = source
    dataset.counts = lambda: Counts(*library.counts)
    return dataset


def _reads(number: Optional[int]) -> int:
    if number is None:
        return 0
    number = count("num_parallel_reads", number, -1, _MOST_READS, f"a number of files from 0 to {_MOST_READS}, or -1 (tf.data.AUTOTUNE)")
    return min(os.cpu_count() or 1, 16) if number < 0 else number

# SPDX-License-Identifier: Apache-2.0
"""``tfrecord.dataset``: TFRecord files as a ``tf.data.Dataset`` of batches, read and decoded by ops in C."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _tfos
from .arguments import count, flag
from .dataset import ALL, Source, check_dtypes, column_options_of, options_of, prefetch_of, settle
from .TFSparkNode import TFNodeContext

__all__ = ["Counts", "make"]

_MOST_READS = 1024
_BATCHES = 256  # from one position to the next: as many are read again at most when an iterator is restored


class Counts(NamedTuple):
    """What a dataset has read so far: files at their ends, and files of passes that were given up."""

    records: int
    bytes: int
    damages: int  #: places where something was skipped
    skipped_bytes: int


class _Files(Source):
    """Files, of which each pass is a dataset of the library of its own, closed with the iterator that holds its number."""

    def __init__(self, tf: Any, dataset: _tfos.RecordDataset, uneven: Optional[str], reads: int, shuffle: bool, seed: int,
                 shard: Tuple[int, int]) -> None:
        super().__init__(tf, dataset, uneven)
        self._reads, self._shuffle, self._seed, self._shard = reads, shuffle, seed, shard

    def _known(self, uneven: Optional[str]) -> Any:
        return self.dataset.specs()

    def _passes(self, finish: Callable, element_spec: Any) -> Any:
        tf, operations = self._tf, self._operations
        number = tf.TensorSpec([], tf.int64)
        place = (tf.TensorSpec([None], tf.int64), number, number)  # of a batch: a position, how many batches behind it, the pass

        def mark(element: Any) -> Any:
            # By a reader in a function tf.data's auto-sharding knows where a shard's files are chosen: it shards what comes in here.
            tf.raw_ops.TFRecordDataset(filenames=tf.constant([], tf.string), compression_type="", buffer_size=0)
            return tf.data.Dataset.from_tensors(element)

        def begin(elements: Any, seeds: Any) -> Any:
            return self._flat_map(tf.data.experimental.from_variant(seeds, number), open_pass, [elements], place)

        def open_pass(seed: Any, elements: Any) -> Any:
            opened = operations.tfos_begin_pass(
                dataset=self.dataset.number, elements=elements, parallel_reads=self._reads, shuffle_files=int(self._shuffle), seed=seed
            )
            # tf.data saves the last position, and makes the next one of it when it has been restored.
            positions = self._over(tf.raw_ops.ScanDataset, tf.data.Dataset.range(ALL), move, [opened], place[0],
                                   state=[tf.constant([], tf.int64)], preserve_cardinality=False)
            return self._flat_map(positions, places_behind, [opened], place)

        def move(position: Any, index: Any, opened: Any) -> List[Any]:
            following = operations.tfos_pass_position(dataset=opened, position=position, batch_count=_BATCHES)
            return [following, following]

        def places_behind(position: Any, opened: Any) -> Any:
            repeated = [tf.data.Dataset.from_tensors(tensor).repeat() for tensor in (position, opened)]
            return tf.data.Dataset.zip((repeated[0], tf.data.Dataset.range(_BATCHES), repeated[1]))

        def read_batch(position: Any, count: Any, opened: Any) -> List[Any]:
            return finish(operations.tfos_read_batch(dataset=opened, position=position, batch_count=count, output_types=self._output_types()))

        index, count = self._shard
        # Which of all elements the first two are says which shard this is, and of how many.
        elements = self._flat_map(tf.data.Dataset.range(ALL).shard(count, index), mark, [], number).batch(2).take(1)
        # A seed for each pass: the same ones again for the same seed.
        seeds = tf.data.Dataset.random(seed=self._seed, rerandomize_each_iteration=True).take(1)
        places = self._flat_map(elements, begin, [tf.data.experimental.to_variant(seeds)], place)
        # The end of a pass comes from here, where all that is before stays as it is: an iterator that has ended is saved with its pass.
        return self._map(places, read_batch, [], element_spec)

    def _flat_map(self, dataset: Any, function: Callable, arguments: List[Any], element_spec: Any) -> Any:
        to_variant = self._tf.data.experimental.to_variant
        return self._over(self._tf.raw_ops.FlatMapDataset, dataset, lambda *inputs: to_variant(function(*inputs)), arguments, element_spec)


def make(paths: List[str], schema: Any, reading: Dict[str, Any], batch_size: int, drop_remainder: bool, num_parallel_reads: Optional[int],
         shuffle_files: bool, shuffle_buffer: int, seed: Optional[int], shard: Any, uneven: Optional[str], timeout: float, shapes: Any,
         ragged: Any, padded: Any, null_value: Any, dtypes: Any, prefetch: int) -> Any:
    """``tfrecord.dataset`` for files of a schema; ``reading``: type, compression, mode, max_record_size."""
    seed = _seed(paths) if seed is None else seed
    options = options_of(batch_size, uneven, drop_remainder, timeout, None, null_value, shuffle_buffer, seed)
    columns = column_options_of(shapes, ragged, padded, None, null_value)
    reads = _reads(num_parallel_reads)
    part = _shard(shard)
    if uneven and not isinstance(shard, TFNodeContext):
        raise ValueError(f"uneven={uneven!r} needs shard=ctx, the context of the node, by which the workers agree on their steps; shard is {shard!r}")
    named = ("batch_size", "drop_remainder", "null_value", "shuffle_rows", "uneven", "agree_timeout_ms")
    shuffle_files = flag("shuffle_files", shuffle_files)
    prefetch = prefetch_of(prefetch)

    import tensorflow as tf

    check_dtypes(tf, dtypes)
    library = _tfos.RecordDataset(
        paths, schema, columns=columns, trainer=shard.mgr.link if uneven else None, **{name: options[name] for name in named}, **reading,
    )  # fmt: skip
    source = _Files(tf, library, uneven, reads, shuffle_files, options["seed"], part)
    dataset = source.batches(dtypes)
    if prefetch:
        dataset = dataset.prefetch(prefetch)
    dataset = settle(tf, dataset, uneven, is_sharded=shard is not None)
    # What is made of the dataset keeps it, and with it the library's, whose number is in the graph.
    dataset.record_source = source
    dataset.counts = lambda: Counts(*library.counts)
    return dataset


def _seed(paths: List[str]) -> int:
    """Another each time, but the same one on all workers of a cluster: where they read everything, they must do so in the same order."""
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    if sum(len(cluster.get(job, ())) for job in ("chief", "master", "worker")) < 2:
        return secrets.randbits(63)
    names = [os.path.basename(path) for path in paths]
    return int.from_bytes(hashlib.sha256(json.dumps([cluster, names], sort_keys=True).encode()).digest()[:8], "big") >> 1


def _shard(shard: Any) -> Tuple[int, int]:
    """Index and count."""
    if shard is None:
        return 0, 1
    if isinstance(shard, TFNodeContext):
        return _part_of(shard)
    if hasattr(shard, "num_input_pipelines"):
        shard = (shard.input_pipeline_id, shard.num_input_pipelines)
    if isinstance(shard, (tuple, list)) and len(shard) == 2 and all(type(number) is int for number in shard) and 0 <= shard[0] < shard[1]:
        return shard[0], shard[1]
    raise ValueError(f"shard must be the context of the node, (index, count), as (0, 4) for the first of four, or a tf.distribute.InputContext, not {shard!r}")


def _part_of(ctx: TFNodeContext) -> Tuple[int, int]:
    """Those who train are numbered as TensorFlow numbers them: the chief or master first."""
    trainers = [(job, index) for job in ("chief", "master", "worker") for index in range(len(ctx.cluster_spec.get(job, ())))]
    if (ctx.job_name, ctx.task_index) not in trainers:
        raise ValueError(f"shard: {ctx.job_name}:{ctx.task_index} does not train, so no part of the rows is for it: give None, which is all of them, or "
                         "(index, count)")
    return trainers.index((ctx.job_name, ctx.task_index)), len(trainers)


def _reads(number: Optional[int]) -> int:
    if number is None:
        return 0
    number = count("num_parallel_reads", number, -1, _MOST_READS, f"a number of files from 0 to {_MOST_READS}, or -1 (tf.data.AUTOTUNE)")
    return min(os.cpu_count() or 1, 16) if number < 0 else number

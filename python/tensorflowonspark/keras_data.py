# SPDX-License-Identifier: Apache-2.0
"""Batches of a step: which of their rows are padding, and batches without rows for workers whose data has ended."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

__all__ = ["drain", "endless", "follow", "split_rows", "static_rows", "take_all", "untuned", "weigh_classes",
           "without_padding"]

_SIGN_BITS = {"float16": ("uint16", 1 << 15), "bfloat16": ("uint16", 1 << 15), "float32": ("uint32", 1 << 31), "float64": ("uint64", 1 << 63)}


def endless(tf: Any, dataset: Any) -> Any:
    """The dataset's batches, then batches without rows for ever: a worker whose data has ended takes part in the others' steps."""
    empty = tf.nest.map_structure(lambda spec: _empty(tf, spec), dataset.element_spec)
    return untuned(tf, dataset.concatenate(tf.data.Dataset.from_tensors(empty).repeat()))


def untuned(tf: Any, dataset: Any) -> Any:
    """The dataset without the thread by which tf.data tunes itself, if the user has not asked for it.

    It sleeps for up to a minute between two looks, and the end of an iterator waits for it.
    """
    if dataset.options().autotune.enabled is not None:
        return dataset
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def _empty(tf: Any, spec: Any) -> Any:
    """A value of the spec whose first dimension is 0."""
    if isinstance(spec, tf.RaggedTensorSpec):
        inner = [size or 0 for size in spec.shape[spec.ragged_rank + 1:]]
        splits = [tf.zeros([1], spec.row_splits_dtype)] * spec.ragged_rank
        return tf.RaggedTensor.from_nested_row_splits(tf.zeros([0, *inner], spec.dtype), splits)
    if isinstance(spec, tf.SparseTensorSpec):
        shape = [0, *(size or 0 for size in spec.shape[1:])]
        return tf.SparseTensor(tf.zeros([0, len(shape)], tf.int64), tf.zeros([0], spec.dtype), shape)
    if spec.shape.rank == 0:
        return tf.zeros([], spec.dtype)
    return tf.zeros([0, *(size or 0 for size in (spec.shape[1:] if spec.shape.rank else ()))], spec.dtype)


def follow(tf: Any, iterator: Any, limit: Optional[int]) -> None:
    """Makes Keras's iterator over epochs take the batches of ``endless``, ``limit`` an epoch: the most that a worker has, None if unknown."""
    dataset = endless(tf, iterator._distributed_dataset)
    if limit is not None and not iterator.steps_per_epoch:
        dataset = dataset.take(limit)
    iterator._distributed_dataset = dataset
    take_all(iterator, limit)


def take_all(iterator: Any, limit: Optional[int]) -> None:
    """Makes Keras's iterator over epochs take each to its end, also where it is longer or shorter than the first one: ``limit`` batches, None: as many as
    come."""
    base = type(iterator)

    class WholeEpochs(base):  # type: ignore[misc, valid-type]
        """An epoch ends by its number of batches, or by OutOfRangeError where that is unknown."""

        _num_batches = property(lambda self: limit, lambda self, value: None)

        def _interrupted_warning(self) -> None:
            if self.steps_per_epoch:
                super()._interrupted_warning()

    iterator.__dict__.pop("_num_batches", None)
    iterator.__class__ = WholeEpochs


def weigh_classes(tf: Any, dataset: Any, factors: Mapping[int, float]) -> Any:
    """The dataset with each row's weight multiplied by its class's, 1 where there is none. Padding stays padding.

    Raises:
        ValueError: there is more than one output.
    """
    table = tf.constant([float(factors.get(number, 1)) for number in range(max(factors) + 1)])

    def weigh(x: Any, y: Any, weights: Any) -> Any:
        if not tf.is_tensor(y) or not tf.is_tensor(weights):
            raise ValueError("class_weight is for models with one output: weigh the rows in the dataset")
        label = tf.argmax(y, -1) if y.shape.rank > 1 and y.shape[-1] != 1 else tf.reshape(tf.cast(tf.round(y), tf.int64), [-1])
        factor = tf.where(label < len(table), tf.gather(table, tf.minimum(label, len(table) - 1)), 1)
        return x, y, weights * tf.cast(factor, weights.dtype)

    return dataset.map(weigh)


def drain(tf: Any, iterator: Any) -> None:
    """Reads on to where the data of an epoch has ended, over batches of padding alone, which no worker has found a row beside.

    Raises:
        ValueError: there is a row.
    """
    for batch in iterator:
        parts = batch if isinstance(batch, tuple) else (batch,)
        x, weights = parts[0], parts[2] if len(parts) == 3 else None
        if int(count_rows(tf, _first(x))) == 0:
            return
        if int(split_rows(tf, x, weights)[0]) > 0:
            raise ValueError("distribute: no worker had a row in a batch, and there are rows behind it: leave batches without rows out of the dataset")


def count_rows(tf: Any, leaf: Any) -> Any:
    if isinstance(leaf, tf.SparseTensor):
        return leaf.dense_shape[0]
    return leaf.nrows() if isinstance(leaf, tf.RaggedTensor) else tf.shape(leaf)[0]


def static_rows(batch: Any) -> Optional[int]:
    """How many rows the batch has, as far as its shape says."""
    leaf = _first(batch)
    shape = getattr(leaf, "shape", None)
    return shape[0] if shape is not None and len(shape) > 0 else None


def _first(structure: Any) -> Any:
    import tensorflow as tf

    return next((leaf for leaf in tf.nest.flatten(structure) if leaf is not None), None)


def split_rows(tf: Any, x: Any, weights: Any) -> Tuple[Any, Optional[Any]]:
    """The number of rows that are no padding, and which they are; None: all."""
    leaf, weight = _first(x), _first(weights)
    if weight is None or not tf.is_tensor(weight) or weight.dtype.name not in _SIGN_BITS:
        return tf.cast(count_rows(tf, leaf), tf.int32), None
    # Padding has the weight -0.0, which is 0 for everybody else: rows whose own weight is 0 are rows.
    bits, sign = _SIGN_BITS[weight.dtype.name]
    is_padding = tf.equal(tf.bitcast(weight, bits), tf.constant(sign, bits))
    if weight.shape.rank is None or weight.shape.rank > 1:
        is_padding = tf.reduce_all(tf.reshape(is_padding, [tf.shape(weight)[0], -1]), axis=1)
    keep = tf.reshape(tf.where(tf.logical_not(is_padding)), [-1])
    return tf.size(keep), keep


def without_padding(tf: Any, batch: Any, rows: Any, keep: Any) -> Any:
    """The rows of the batch that are to be kept."""
    leaves = tf.nest.flatten(batch)
    taken = [index for index, leaf in enumerate(leaves) if leaf is not None]
    tensors = [leaves[index] for index in taken]
    kept = tf.cond(tf.cast(count_rows(tf, tensors[0]), tf.int32) > rows,
                   lambda: [_take(tf, tensor, keep) for tensor in tensors], lambda: [tf.identity(tensor) for tensor in tensors])
    for index, tensor in zip(taken, kept):
        leaves[index] = tensor
    return tf.nest.pack_sequence_as(batch, leaves)


def _take(tf: Any, tensor: Any, keep: Any) -> Any:
    if not isinstance(tensor, tf.SparseTensor):
        return tf.gather(tensor, keep)
    rows = tensor.dense_shape[0]
    is_kept = tf.scatter_nd(tf.expand_dims(keep, 1), tf.ones_like(keep), [rows])
    number = tf.cumsum(is_kept) - 1  # of a row among those that are kept
    left = tf.sparse.retain(tensor, tf.gather(is_kept, tensor.indices[:, 0]) > 0)
    indices = tf.concat([tf.expand_dims(tf.gather(number, left.indices[:, 0]), 1), left.indices[:, 1:]], 1)
    return tf.SparseTensor(indices, left.values, tf.concat([[tf.size(keep, tf.int64)], tensor.dense_shape[1:]], 0))

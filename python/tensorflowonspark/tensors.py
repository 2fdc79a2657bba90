# SPDX-License-Identifier: Apache-2.0
"""Arrow columns as the tensors that a model takes, and a model's tensors as Arrow columns."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np
import pyarrow as pa

from .answers import is_list, taken_apart
from .saved_models import InputSpec

__all__ = ["input_of", "joined", "parts_of", "result_type", "row_count"]

_VECTOR = ["type", "size", "indices", "values"]  # what MLlib stores of a vector


# -- inputs


class _Column(NamedTuple):
    """The values of a column of lists, and of each level of these where they begin, and where the last one ends."""

    values: np.ndarray
    splits: List[np.ndarray]


def input_of(tf: Any, column: Any, spec: InputSpec, names: Tuple[str, str]) -> Any:
    """The column's rows as the tensor for an input. ``names``: of the column and of the input.

    Raises:
        ValueError: the values cannot be had as that without loss, or not in that shape; names both.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type) and [column.type.field(i).name for i in range(column.type.num_fields)] == _VECTOR:
        parts = _vectors(column, names)
        if spec.form == "sparse":
            return _sparse(tf, *parts, len(column), spec, names)
        found = _Column(_scattered(*parts, len(column)), [])
    else:
        found = _flattened(column, names)
    values = _converted(found.values, spec.dtype, names)
    if spec.form == "ragged":
        splits = found.splits or [np.arange(len(values) + 1)]
        return tf.RaggedTensor.from_nested_row_splits(tf.convert_to_tensor(values, spec.dtype), [level.astype(np.int64) for level in splits])
    dense = tf.convert_to_tensor(_shaped(values, found.splits, spec.shape if spec.form == "dense" else None, names), spec.dtype)
    return dense if spec.form == "dense" else tf.sparse.from_dense(dense)


def _flattened(column: Any, names: Tuple[str, str]) -> _Column:
    splits = []
    _refuse_nulls(column, names)
    while is_list(column.type):
        lists = taken_apart(column)
        splits.append(lists.offsets)
        column = lists.items
        _refuse_nulls(column, names)
    types, type_ = pa.types, column.type
    if types.is_decimal(type_):
        column = column.cast(pa.float64())
    elif types.is_date32(type_):
        column = column.cast(pa.int32())
    elif types.is_timestamp(type_) or types.is_time64(type_) or types.is_duration(type_):
        column = column.cast(pa.int64())
    elif types.is_nested(type_) or types.is_null(type_):
        raise ValueError(f"column {names[0]!r} is {type_}, which no tensor holds: select its parts as columns")
    return _Column(column.to_numpy(zero_copy_only=False), splits)


def _refuse_nulls(column: Any, names: Tuple[str, str]) -> None:
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise ValueError(f"column {names[0]!r} has a null (value {row} of a batch), and input {names[1]!r} takes none: fill it, by df.fillna() "
                         "for one, or filter it out")


def _converted(values: np.ndarray, dtype: Any, names: Tuple[str, str]) -> np.ndarray:
    """The values in the input's type, if none of them loses by it but what a nearer float does."""
    is_text = values.dtype == object or values.dtype.kind in "SU"
    wants_text = dtype.name == "string"
    if is_text and wants_text:
        return values
    target = dtype.as_numpy_dtype
    if is_text or wants_text:
        given = "text or bytes" if is_text else values.dtype
        raise ValueError(f"column {names[0]!r} has {given}, and input {names[1]!r} takes {dtype.name}: cast the column, or map another")
    if values.dtype == target:
        return values
    converted = values.astype(target)
    if np.issubdtype(target, np.integer) or target == np.bool_:
        wrong = np.flatnonzero(converted.astype(values.dtype) != values)
        if len(wrong):
            raise ValueError(f"column {names[0]!r} has {values[wrong[0]]}, which is no {dtype.name} as input {names[1]!r} takes it: cast the column")
    return converted


def _shaped(values: np.ndarray, splits: List[np.ndarray], shape: Optional[Tuple[Optional[int], ...]], names: Tuple[str, str]) -> np.ndarray:
    """The values in the input's shape; its first dimension is the rows, whatever it says of them."""
    lengths = []
    for level in splits:
        sizes = np.diff(level)
        if len(sizes) and (sizes != sizes[0]).any():
            raise ValueError(f"column {names[0]!r} has lists of {sizes.min()} to {sizes.max()} values in one batch, and input {names[1]!r} takes rows of "
                             f"one shape{'' if shape is None else ', ' + _text(shape)}: pad them, or export a signature with a RaggedTensorSpec")
        lengths.append(int(sizes[0]) if len(sizes) else 0)
    rows = len(splits[0]) - 1 if splits else len(values)
    own = (rows, *lengths, *values.shape[1:])
    if shape is None:
        return values.reshape(own)
    wanted = (rows, *shape[1:])
    if len(own) == len(wanted) and all(size in (None, given) for size, given in zip(wanted, own)):
        return values.reshape(own)
    try:
        return values.reshape([-1 if size is None else size for size in wanted] if wanted.count(None) < 2 else own)
    except ValueError:
        raise ValueError(f"column {names[0]!r} has rows of shape {_text(own)}, and input {names[1]!r} takes {_text(shape)}: each row needs "
                         "as many values as that") from None


def _text(shape: Tuple[Optional[int], ...]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in shape[1:])})"


def _vectors(column: Any, names: Tuple[str, str]) -> Tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Row, place and value of what MLlib's vectors hold, and their size."""
    _refuse_nulls(column, names)
    kinds, sizes, indices, values = (column.field(i) for i in range(4))
    held, places = taken_apart(values), taken_apart(indices)
    counts = np.diff(held.offsets)
    rows = np.repeat(np.arange(len(column)), counts)
    # A dense vector has no indices: its values are at 0, 1, ...
    found = np.arange(len(rows)) - np.repeat(held.offsets[:-1], counts)
    is_sparse = kinds.to_numpy(zero_copy_only=False) == 0
    found[np.repeat(is_sparse, counts)] = places.items.to_numpy(zero_copy_only=False)
    all_sizes = np.where(is_sparse, sizes.fill_null(0).to_numpy(zero_copy_only=False), counts)
    if len(all_sizes) and (all_sizes != all_sizes[0]).any():
        raise ValueError(f"column {names[0]!r} has vectors of {all_sizes.min()} and of {all_sizes.max()} values, and input {names[1]!r} takes one size")
    return rows, found, held.items.to_numpy(zero_copy_only=False), int(all_sizes[0]) if len(all_sizes) else 0


def _scattered(rows: np.ndarray, places: np.ndarray, values: np.ndarray, size: int, row_count: int) -> np.ndarray:
    if len(values) == row_count * size:
        return values.reshape(row_count, size)  # all are dense, or as good as that
    dense = np.zeros((row_count, size))
    dense[rows, places] = values
    return dense


def _sparse(tf: Any, rows: np.ndarray, places: np.ndarray, values: np.ndarray, size: int, row_count: int, spec: InputSpec,
            names: Tuple[str, str]) -> Any:
    wanted = spec.shape[1] if spec.shape is not None and len(spec.shape) == 2 else None
    if wanted not in (None, size):
        raise ValueError(f"column {names[0]!r} has vectors of {size} values, and input {names[1]!r} takes {wanted}")
    return tf.SparseTensor(np.stack([rows, places], axis=1).astype(np.int64), _converted(values, spec.dtype, names), [row_count, size])


# -- outputs


def result_type(dtype: Any) -> Any:
    """The Arrow type for values of an output: floats are double and integers long, as Python's are to Spark."""
    if dtype.is_floating:
        return pa.float64()
    if dtype.is_integer:
        return pa.int64()
    types = {"bool": pa.bool_(), "string": pa.binary()}
    if dtype.name not in types:
        raise ValueError(f"its type, {dtype.name}, is none of Spark's")
    return types[dtype.name]


def _lists_of(type_: Any, depth: int) -> Any:
    """Lists of the type, so many levels of them."""
    return type_ if depth == 0 else pa.list_(_lists_of(type_, depth - 1))


def parts_of(tf: Any, value: Any) -> _Column:
    """An output as numpy's arrays."""
    if isinstance(value, tf.RaggedTensor):
        return _Column(value.flat_values.numpy(), [splits.numpy() for splits in value.nested_row_splits])
    if isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    return _Column(np.asarray(value), [])


def joined(outputs: List[_Column], type_: Any, depth: int, name: str) -> Any:
    """An output of several calls as one column, of so many levels of lists.

    Raises:
        ValueError: it has another number of dimensions; ``name`` is the output's.
    """
    first = outputs[0]
    if len(outputs) > 1 and all(not one.splits and one.values.shape[1:] == first.values.shape[1:] for one in outputs):
        outputs = [_Column(np.concatenate([one.values for one in outputs]), [])]
    columns, wanted = [_column_of(output, type_) for output in outputs], _lists_of(type_, depth)
    for column in columns:
        if column.type != wanted:
            raise ValueError(f"output {name!r} of the model is {column.type} here, and was to be {wanted}")
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _column_of(output: _Column, type_: Any) -> Any:
    """An output as a column, of lists of the type where it has more dimensions than one."""
    shape, splits = output.values.shape, list(output.splits)
    for level in range(1, len(shape)):
        splits.append(np.arange(int(np.prod(shape[:level])) + 1) * shape[level])
    values = output.values.reshape(-1)
    if pa.types.is_floating(type_):
        values = values.astype(np.float64)
    column = pa.array(values.tolist() if values.dtype == object else values, None if values.dtype != object else type_).cast(type_)
    for level in reversed(splits):
        column = pa.ListArray.from_arrays(pa.array(level, pa.int32()), column)
    return column


def row_count(output: _Column) -> Optional[int]:
    """How many rows an output has; None of a single value."""
    if output.splits:
        return len(output.splits[0]) - 1
    return output.values.shape[0] if output.values.ndim else None

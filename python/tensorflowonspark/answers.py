# SPDX-License-Identifier: Apache-2.0
"""A trainer's results as columns of declared types: what an inference's Spark tasks make of the batches that come back.

Results have the form in which the trainer gave them (docs/protocol.md, "Feed: rows of Python"). Columns of numbers, text and bytes become
Spark's by Arrow alone; what was pickled goes through Python objects.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional

import numpy as np
import pyarrow as pa

from . import _tfos

__all__ = ["columns_of", "is_list", "taken_apart"]


def columns_of(batch: pa.RecordBatch, fields: List[pa.Field]) -> List[pa.Array]:
    """One array for each declared field, of its type, from a batch of results.

    Raises:
        tensorflowonspark.errors.InvalidError: a column is missing or one too many, or its values cannot be cast without loss; names the column
            and both types.
    """
    kind = (batch.schema.metadata or {}).get(b"tfos.row", b"row").decode()
    if kind == "value" and len(fields) != 1 and _note(batch.schema.field(0)) == "pickle":
        return _columns_of_rows(_tfos.unpack(batch), fields)
    if kind in ("tuple", "list") and len(fields) == 1 and is_list(fields[0].type) and not _is_one_list(batch.schema):
        return [_from_objects([list(row) for row in _tfos.unpack(batch)], fields[0])]  # the row is the value
    names = batch.schema.names if kind in ("dict", "row") else None
    _check_columns(names, batch.num_columns, fields)
    return [_fit(batch, names.index(field.name) if names else i, field) for i, field in enumerate(fields)]


def _note(field: pa.Field) -> Optional[str]:
    """What the packer says of a column's values."""
    note = (field.metadata or {}).get(b"tfos.value")
    return None if note is None else note.decode()


def is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


def _is_one_list(schema: pa.Schema) -> bool:
    return len(schema) == 1 and (is_list(schema.field(0).type) or _note(schema.field(0)) == "pickle")


def _check_columns(names: Optional[Iterable[str]], count: int, fields: List[pa.Field]) -> None:
    """Whether results of ``count`` columns, with these names if they have any, are those that are declared."""
    wanted = [field.name for field in fields]
    if names is None:
        if count != len(wanted):
            raise _tfos.InvalidError(f"inference: a result has {count} columns, output_schema {len(wanted)}: {_listed(wanted)}")
        return
    for name in wanted:
        if name not in names:
            raise _tfos.InvalidError(f"inference: a result has no column {name!r}, which output_schema has; it has {_listed(names)}")
    for name in names:
        if name not in wanted:
            raise _tfos.InvalidError(f"inference: a result has a column {name!r}, which output_schema has not; that has {_listed(wanted)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _fit(batch: pa.RecordBatch, index: int, field: pa.Field) -> pa.Array:
    """A column of results as one of the declared type."""
    note = _note(batch.schema.field(index))
    if note == "pickle":
        alone = pa.schema([batch.schema.field(index)], {b"tfos.row": b"value"})
        return _from_objects(_tfos.unpack(pa.RecordBatch.from_arrays([batch.column(index)], schema=alone)), field)
    array = _unpacked(batch.column(index), note, field)
    try:
        return _checked(_cast(array, field.type), field)
    except pa.ArrowException as error:
        raise _refusal(field, f"{_spark_name(array.type)} cannot", error) from error


def _refusal(field: pa.Field, what: str, error: Any) -> _tfos.InvalidError:
    return _tfos.InvalidError(f"inference: result column {field.name!r}: {what} be cast to {_spark_name(field.type)} without loss: {error}")


def _spark_name(type_: pa.DataType) -> str:
    """What Spark calls the type; numpy's name for what it has not."""
    from pyspark.sql.pandas.types import from_arrow_type

    if is_list(type_):
        return f"array<{_spark_name(type_.value_type)}>"
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        return "string" if pa.types.is_large_string(type_) else "binary"
    try:
        return from_arrow_type(type_).simpleString()
    except Exception:  # Spark's own, of a class that depends on its version
        return "float16" if pa.types.is_float16(type_) else str(type_)


def _checked(array: pa.Array, field: pa.Field) -> pa.Array:
    if not field.nullable and array.null_count > 0:
        raise _tfos.InvalidError(f"inference: result column {field.name!r} has a null, though output_schema says NOT NULL")
    return array


# -- columns


class _Lists(NamedTuple):
    """A column of lists, of whichever layout."""

    offsets: np.ndarray  #: of the first list from 0 on, and the last one's end
    items: pa.Array
    valid: Optional[np.ndarray]  #: None: all are


def taken_apart(array: pa.Array) -> _Lists:
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        offsets = np.arange(len(array) + 1) * size
        items = array.values.slice(array.offset * size, len(array) * size)
    else:
        offsets = array.offsets.to_numpy()
        items = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
    return _Lists(offsets, items, array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None)


def _put_together(type_: pa.DataType, lists: _Lists) -> pa.Array:
    # The bits of a column of booleans are those of a validity buffer.
    validity = None if lists.valid is None else pa.array(lists.valid).buffers()[1]
    offsets = pa.py_buffer(np.ascontiguousarray(lists.offsets, np.int32))
    return pa.Array.from_buffers(type_, len(lists.offsets) - 1, [validity, offsets], children=[lists.items])


def _unpacked(array: pa.Array, note: Optional[str], field: pa.Field) -> pa.Array:
    """A column as the packer made it, as Arrow has such values."""
    words = (note or "").split()
    if note == "null":
        return pa.nulls(len(array))
    if any(word in ("c8", "c16") for word in words[1:2]):
        raise _tfos.InvalidError(f"inference: result column {field.name!r}: complex numbers cannot be cast: Spark has none: give their real and "
                                 "imaginary parts as two columns")
    is_bool = words[:2] in (["bool"], ["scalar", "b1"]) or words[1:2] in (["bool"], ["b1"])
    if not words or words[0] not in ("list", "tuple", "array"):
        return array.cast(pa.bool_()) if is_bool else array
    lists = taken_apart(array)
    items = lists.items.cast(pa.bool_()) if is_bool else lists.items
    shape = [int(word) for word in words[2:]]
    for depth in range(len(shape) - 1, 0, -1):
        count = len(array) * math.prod(shape[:depth])
        items = _put_together(pa.list_(items.type), _Lists(np.arange(count + 1) * shape[depth], items, None))
    offsets = np.arange(len(array) + 1) * shape[0] if shape else lists.offsets
    return _put_together(pa.list_(items.type), _Lists(offsets, items, lists.valid))


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if is_list(array.type) and _is_vector(type_):
        return _as_vectors(array, type_)
    if not is_list(array.type) or not pa.types.is_list(type_):
        return array if array.type.equals(type_) else array.cast(type_)
    lists = taken_apart(array)
    items = _cast(lists.items, type_.value_type)
    if not type_.value_field.nullable and items.null_count > 0:
        raise pa.ArrowInvalid("an element is null, though output_schema says that none is")
    return _put_together(type_, lists._replace(items=items))


def _is_vector(type_: pa.DataType) -> bool:
    """Whether the type is what MLlib's vectors store."""
    return pa.types.is_struct(type_) and [type_.field(i).name for i in range(type_.num_fields)] == ["type", "size", "indices", "values"]


def _as_vectors(array: pa.Array, type_: pa.StructType) -> pa.Array:
    """Lists of numbers as dense vectors."""
    kind, size, indices, values = (type_.field(i) for i in range(4))
    columns = [pa.array(np.ones(len(array), np.int8)).cast(kind.type), pa.nulls(len(array), size.type), pa.nulls(len(array), indices.type),
               _cast(array, values.type)]
    return pa.StructArray.from_arrays(columns, fields=[kind, size, indices, values], mask=array.is_null() if array.null_count else None)


# -- Python objects


def _columns_of_rows(rows: List[Any], fields: List[pa.Field]) -> List[pa.Array]:
    """Rows that were pickled one by one, since no two of them need have the same columns."""
    columns: List[List[Any]] = [[] for _ in fields]
    for row in rows:
        named = _by_name(row)
        if named is None and not isinstance(row, (tuple, list)):
            _check_columns(None, 1, fields)
        _check_columns(named, len(row if named is None else named), fields)
        for index, (column, field) in enumerate(zip(columns, fields)):
            column.append(row[index] if named is None else named[field.name])
    return [_from_objects(values, field) for values, field in zip(columns, fields)]


def _by_name(value: Any) -> Optional[Mapping[str, Any]]:
    """The fields of a dictionary, a Row, a namedtuple or a dataclass; None for all else."""
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple):
        names = getattr(value, "__fields__", getattr(value, "_fields", None))
        return None if names is None else dict(zip(names, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _from_objects(values: List[Any], field: pa.Field) -> pa.Array:
    try:
        return _checked(pa.array([_prepared(value, field.type) for value in values], field.type), field)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, _tfos.Error):
            raise
        kinds = ", ".join(sorted({type(value).__name__ for value in values if value is not None}))
        raise _refusal(field, f"Python objects of type {kinds} cannot", error) from error


def _prepared(value: Any, type_: pa.DataType) -> Any:
    """A value as pyarrow takes it: with Spark's meaning of naive datetimes (local time), Rows and maps."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None:
        return None
    if pa.types.is_timestamp(type_) and type_.tz is not None and isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.astimezone()
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        if hasattr(value, "__UDT__"):  # a vector, for one, is what it stores
            value = value.__UDT__.serialize(value)
        named = _by_name(value)
        if named is None and isinstance(value, tuple):
            named = dict(zip((field.name for field in fields), value))
        if named is None:
            raise TypeError("a struct is a dictionary, a Row, a namedtuple, a dataclass or a tuple")
        return {field.name: _prepared(named.get(field.name), field.type) for field in fields}
    if pa.types.is_map(type_):
        return [(_prepared(key, type_.key_type), _prepared(item, type_.item_type)) for key, item in dict(value).items()]
    if is_list(type_):
        return [_prepared(item, type_.value_type) for item in value]
    return bytes(value) if isinstance(value, bytearray) else value

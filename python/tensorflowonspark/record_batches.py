# SPDX-License-Identifier: Apache-2.0
"""What ``tfrecord.write`` is given, as batches of columns of types that records hold."""

from __future__ import annotations

import itertools
import sys
from typing import Any, Iterable, Iterator, List

__all__ = ["batches_of", "check_names", "is_list", "plain_schema", "plain_type"]

_PACK_ROWS, _PACK_SIZE = 1024, 16 << 20  # records and bytes of a batch of bytes
_OTHERS = {"halffloat": "float", "string_view": "string", "binary_view": "binary"}  # what holds the same


def batches_of(data: Any, is_plain: bool) -> Iterator[Any]:
    """The batches of a table, a DataFrame, a stream of Arrow's, a batch, arrays by name, or several of the last two; of ``bytes`` too if the records
    are plain ones. ValueError and TypeError name the column."""
    import pyarrow

    if isinstance(data, (pyarrow.RecordBatch, dict)):
        data = [data]
    elif _is_pandas(data):
        data = pyarrow.Table.from_pandas(data, preserve_index=False)
    batches = _streamed(data) if hasattr(data, "__arrow_c_stream__") else data
    if not isinstance(batches, Iterable) or isinstance(batches, (str, bytes)):
        raise TypeError(f"data: expected a pyarrow.Table, a RecordBatch, a DataFrame, a dict of arrays or an iterable of these, not {type(data)!r}")
    return map(_batch, _packed(iter(batches)) if is_plain else iter(batches))


def plain_schema() -> Any:
    import pyarrow

    return pyarrow.schema([pyarrow.field("byteArray", pyarrow.binary(), nullable=False)])


def check_names(fields: Iterable[Any]) -> None:
    """ValueError for a name that C, to which it ends with its first null character, would take for another."""
    from pyarrow import types

    for field in fields:
        if "\0" in field.name:
            raise ValueError(f"column {field.name!r} has a null character in its name, which a feature cannot have: rename it")
        type = field.type
        while is_list(type):
            type = type.value_type
        if types.is_struct(type):
            check_names(type)


def plain_type(type: Any) -> Any:
    """A type that a record can hold, for one that has the same values."""
    import pyarrow

    types = pyarrow.types
    if isinstance(type, pyarrow.BaseExtensionType):
        return plain_type(type.storage_type)
    if types.is_dictionary(type):
        return plain_type(type.value_type)
    if types.is_fixed_size_binary(type):
        return pyarrow.binary()
    if is_list(type) and plain_type(type.value_type) != type.value_type:
        plain = plain_type(type.value_type)
        return pyarrow.list_(plain, type.list_size) if types.is_fixed_size_list(type) else pyarrow.large_list(plain)
    other = _OTHERS.get(str(type))
    return pyarrow.type_for_alias(other) if other else type


def is_list(type: Any) -> bool:
    from pyarrow import types

    return types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type)


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _streamed(data: Any) -> Any:
    """At least one batch; None of what is one column."""
    import pyarrow

    if isinstance(data, pyarrow.Table):
        reader = data.to_reader()
    elif isinstance(data, pyarrow.RecordBatchReader):
        reader = data
    else:
        try:
            reader = pyarrow.RecordBatchReader.from_stream(data)
        except pyarrow.ArrowInvalid:
            return None
    first = next(reader, None)
    return itertools.chain([pyarrow.RecordBatch.from_pylist([], reader.schema) if first is None else first], reader)


def _batch(item: Any) -> Any:
    import pyarrow

    if isinstance(item, dict):
        item = pyarrow.RecordBatch.from_pydict({_name(name): _column(name, values) for name, values in item.items()})
    elif _is_pandas(item):
        item = pyarrow.RecordBatch.from_pandas(item, preserve_index=False)
    elif not hasattr(item, "schema"):
        advice = "; with record_type='ByteArray' each is a record" if isinstance(item, bytes) else ""
        raise TypeError(f"data: expected batches or dicts of arrays, not {type(item)!r}{advice}")
    # Of a column of nulls no feature is written, whatever its type.
    plain = [pyarrow.string() if pyarrow.types.is_null(type) else plain_type(type) for type in item.schema.types]
    if plain == item.schema.types:
        return item
    columns = [column if column.type == type else column.cast(type) for column, type in zip(item.columns, plain)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema([field.with_type(type) for field, type in zip(item.schema, plain)]))


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"data: the name of a column is text, not {name!r}")
    return name


def _column(name: str, values: Any) -> Any:
    """Values as Arrow has them."""
    import pyarrow

    try:
        return _converted(name, values)
    except (pyarrow.ArrowException, UnicodeError) as error:
        raise ValueError(f"data: column {name!r}: {error}") from None


def _converted(name: str, values: Any) -> Any:
    import numpy
    import pyarrow

    if hasattr(getattr(values, "array", values), "__arrow_array__"):  # pandas' types that have nulls of their own
        return pyarrow.array(values)
    if isinstance(values, (list, tuple)) and not _has_numbers(values):
        return pyarrow.array(values)  # numpy would make text of numbers among text, and cut off null characters
    array = numpy.asanyarray(values)
    if array.ndim == 0:
        raise ValueError(
            f"data: column {name!r} has no dimension for its rows: expected an array with a value a row; of a list of rows "
            "pyarrow.Table.from_pylist() makes a table"
        )
    return _nested(array)


def _has_numbers(values: Any) -> bool:
    """Whether numpy makes an array of numbers, or of other things of its own, of them."""
    import numpy

    try:
        return numpy.asarray(values).dtype.kind not in "OSU"
    except ValueError:  # lists of several lengths
        return False


def _nested(array: Any) -> Any:
    """An array's further dimensions as lists: of any length, as other batches may have others."""
    import numpy
    import pyarrow

    flat = array.reshape(-1)
    values = pyarrow.array(flat if flat.dtype.isnative else flat.astype(flat.dtype.newbyteorder("=")))
    for axis in range(array.ndim - 1, 0, -1):
        ends = numpy.arange(numpy.prod(array.shape[:axis], dtype=numpy.int64) + 1) * array.shape[axis]
        values = pyarrow.ListArray.from_arrays(pyarrow.array(ends).cast(pyarrow.int32()), values)
    return values


def _packed(items: Iterator[Any]) -> Iterator[Any]:
    """Batches of items that are bytes, some at a time, at least one; batches as they are."""
    import pyarrow

    packed: List[bytes] = []
    size, is_first = 0, True

    def pack() -> Any:
        return pyarrow.RecordBatch.from_arrays([pyarrow.array(packed, pyarrow.binary())], schema=plain_schema())

    for item in items:
        if not isinstance(item, (bytes, bytearray, memoryview)):
            yield item
            is_first = False
            continue
        packed.append(bytes(item))
        size += len(packed[-1])
        if len(packed) == _PACK_ROWS or size > _PACK_SIZE:
            yield pack()
            packed, size, is_first = [], 0, False
    if packed or is_first:
        yield pack()

# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of ``tf.train.Example`` and ``SequenceExample`` as batches of columns, without TensorFlow and without a protobuf object::

    for batch in tfrecord.read("data/part-*.tfrecord"):          # pyarrow.RecordBatch
        ...
    tfrecord.write("out.tfrecord.gz", table)

docs/tfrecord.md says what each type becomes and what is refused. All work on the bytes is done in C with the GIL released, so files may be
read and written in several threads, each with its own call. Files are named by paths, by URIs of what Hadoop (``hdfs://``, ``s3a://`` ...) or
``pyarrow.fs`` (``s3://``, ``gs://``) knows, or are binary file objects, which stay open and begin where they are.
"""

import os
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _tfos, files, record_batches
from .arguments import flag
from .files import Path
from .jar import add_to, why_not
from .jar import path as jar_path

__all__ = ["Damage", "PassedOver", "add_to", "infer_schema", "jar_path", "passed_over", "read", "write"]

_TYPES = {"Example": 0, "SequenceExample": 1, "ByteArray": 2}
_COMPRESSIONS = {None: 0, "none": 1, "gzip": 2, "zlib": 3}
_MODES = {"error": 0, "skip_record": 1, "skip_file": 2}
_INFERENCE_FILES = 16  # that a thread looks at before it asks for others
_COLUMNS_NAMED = 10  # in a warning
_FORMS = ("arrow", "numpy", "bytes")


class Damage(NamedTuple):
    """Damage that was skipped in a file."""

    path: str
    kind: str  #: "the checksum of a record is wrong" ...
    offset: int  #: bytes from the file's beginning, of a compressed one from that of what it holds
    size: int  #: bytes that were skipped; 0: all to the file's end
    message: str


class PassedOver(NamedTuple):
    """How much Spark's tasks skipped in a file."""

    places: int
    size: int  #: bytes, frames included; the rest of a file that ``skipFile`` leaves is not counted


def passed_over(spark: Any) -> Dict[str, PassedOver]:
    """What reads of the Spark source ``tfrecord`` with the option ``mode`` ``skipRecord`` or ``skipFile`` have skipped so far, in all of the
    application: by the file's URI, only files that are damaged. A file that is read twice counts twice, and only tasks that succeeded count.

    Args:
        spark: a SparkSession or SparkContext, not one of Spark Connect, where the server's log has the same.
    """
    context = spark if hasattr(spark, "applicationId") else getattr(spark, "_sc", None)
    reason = why_not(context) if context is not None else "a session of Spark Connect has no driver here; the server's log says what was passed over"
    if reason:
        raise _tfos.UnsupportedError(f"tfos.jar: {reason}")
    rows = (row.split(" ", 2) for row in context._jvm.org.tfos.DamageTotals.of(context._jsc.sc()).text().split("\0")[:-1])
    return {name: PassedOver(int(places), int(size)) for places, size, name in rows}


def read(
    paths: Union[Path, Sequence[Path]],
    schema: Any = None,
    columns: Optional[Sequence[str]] = None,
    record_type: str = "Example",
    form: str = "arrow",
    batch_rows: int = 4096,
    compression: Optional[str] = None,
    on_damage: str = "error",
    damages: Optional[List[Damage]] = None,
    max_record_size: int = 1 << 30,
) -> Iterator[Any]:
    """Iterates over the files' batches, file by file.

    ``paths``: a file, a folder or a pattern (both without what Spark skips, such as ``_SUCCESS``), a URI of these (docs/tfrecord.md, "Names of
    files"), a file object, or a list of these. ``schema``: a ``pyarrow.Schema`` (or anything with ``__arrow_c_schema__``); None: what
    ``infer_schema()`` makes of all records, which reads the files twice, so that a file object must seek.
    ``columns``: only these; others are skipped unread.
    ``record_type``: ``"Example"``, ``"SequenceExample"``, or ``"ByteArray"``: each record is a row of one binary column.
    ``form``: ``"arrow"`` gives a ``pyarrow.RecordBatch`` of at most ``batch_rows`` rows and some megabytes; ``"numpy"`` a
    dict of arrays, as ``DataFeed.next_arrays`` gives them;
    ``"bytes"`` each record as ``bytes``, whatever it holds.
    ``compression``: ``"none"``, ``"gzip"``, ``"zlib"``; None: as each file's first bytes say. ``UnsupportedError`` names another one: pass a
    file object that decompresses it (``bz2.open()``).
    ``on_damage``: ``"error"`` raises ``CorruptError`` with file, offset and kind; ``"skip_record"`` continues behind the damage,
    ``"skip_file"`` with the next file; what was skipped is appended to ``damages``.

    A file is open only while its batches are taken: it is closed at its end, when the loop is left, and by the iterator's ``close()``. Errors
    name the file; one that a file object raises is the cause of ``IoError``.
    """
    found = files.find(paths)
    if form == "bytes":
        record_type, schema, columns = "ByteArray", None, None
    options = _reading(record_type, compression, on_damage, max_record_size)
    if form not in _FORMS:
        raise ValueError(f"form: expected one of {', '.join(_FORMS)}, not {form!r}")
    if schema is None:
        schema = record_batches.plain_schema() if record_type == "ByteArray" else _infer(found, options, 0, is_read_again=True)
    schema = _select(schema, columns)
    return _read(found, schema, form, batch_rows, options, damages)


def dataset(
    paths: Union[Path, Sequence[Path]],
    schema: Any = None,
    batch_size: int = 1024,
    columns: Optional[Sequence[str]] = None,
    drop_remainder: bool = False,
    compression: Optional[str] = None,
    num_parallel_reads: Optional[int] = None,
    shuffle_files: bool = False,
    shuffle_buffer: int = 0,
    seed: Optional[int] = None,
    shard: Any = None,
    shapes: Any = None,
    ragged: Any = None,
    padded: Any = None,
    null_value: Any = None,
    dtypes: Any = None,
    record_type: str = "Example",
    on_damage: str = "error",
    max_record_size: int = 1 << 30,
    prefetch: int = 2,
    uneven: Optional[str] = None,
    timeout: float = 600,
) -> Any:
    """A ``tf.data.Dataset`` of batches of the files' rows, dictionaries of tensors: what ``tf.data.TFRecordDataset`` with ``batch`` and
    ``tf.io.parse_example`` gives, read and decoded at once in C.

    ``paths``, ``schema``, ``columns``, ``compression``, ``record_type`` and ``on_damage`` as for ``read()``; files are local ones or Hadoop's, listed
    when the dataset is made. What was skipped is counted: ``.counts()`` of what is returned (not of what is made of it).
    ``batch_size``: rows of a batch, over the ends of files; the last has fewer, unless ``drop_remainder``.
    ``num_parallel_reads``: files to read side by side, each by a thread of its own, a batch of each in turn; -1 (``tf.data.AUTOTUNE``): as many as
    there are cores. The order is the same for the same files. ``shuffle_files``: another order of files in each pass;
    ``shuffle_buffer``: rows to draw from at random; both by ``seed``; None: another each time, but one for all workers of a cluster (``TF_CONFIG``).
    ``shard``: the part of the rows to read: ``ctx``, that of this node among the chief, master and workers of its cluster; ``(index, count)``; or the
    ``tf.distribute.InputContext`` that ``distribute_datasets_from_function`` passes. None: all rows; a strategy with several workers then gives each
    row to one of them, and ``batch_size`` is for all of them.
    ``uneven``: with ``shard=ctx``, how workers that train in step take equally many batches in each pass, as for ``ctx.get_dataset``: "pad", "join" or
    "stop". All workers make such datasets, and passes over each, in the same order. ``timeout``: seconds to wait for the others in each agreement.
    Iterators are saved and restored by ``tf.train.Checkpoint`` (docs/tfrecord.md).
    ``shapes``, ``ragged``, ``padded``, ``null_value``, ``dtypes``, ``prefetch``: as for ``get_dataset``: what is asked of columns of lists and of nulls. Of
    lists of which nothing is asked, the first batch decides, which is read when the dataset is made: dense where all have one length, else
    ragged. A value that does not fit raises ``tf.errors.InvalidArgumentError``, damage ``tf.errors.DataLossError``, with file and row or offset.
    """
    found = files.find(paths)
    others = [source.name for source in found if not source.is_named]
    if others:
        raise ValueError(f"paths: {others[0]}: a dataset reads local files and those of Hadoop's file systems; read() takes others")
    reading = _reading(record_type, compression, on_damage, max_record_size)
    if schema is None:
        schema = record_batches.plain_schema() if record_type == "ByteArray" else _infer(found, reading, 0)
    from . import record_dataset

    return record_dataset.make(
        [source.name for source in found], _select(schema, columns), reading, batch_size, drop_remainder, num_parallel_reads, shuffle_files,
        shuffle_buffer, seed, shard, uneven, timeout, shapes, ragged, padded, null_value, dtypes, prefetch,
    )  # fmt: skip


def infer_schema(
    paths: Union[Path, Sequence[Path]],
    record_type: str = "Example",
    limit: int = 0,
    compression: Optional[str] = None,
    on_damage: str = "error",
    max_record_size: int = 1 << 30,
) -> Any:
    """The ``pyarrow.Schema`` that all records can be read with: columns in the order in which features are first seen, int64, float32, string
    (where all bytes are UTF-8) or binary, lists where a record has not exactly one value. ``limit``: only so many records of each file;
    0: all. Files are read side by side. ``CorruptError`` names a feature that is of one kind here and of another there.
    """
    options = _reading(record_type, compression, on_damage, max_record_size)
    return _infer(files.find(paths), options, limit)


def write(
    path: Path,
    data: Any,
    record_type: str = "Example",
    compression: Optional[str] = None,
    level: int = 6,
    allow_rounding: Optional[bool] = None,
    exact: bool = False,
) -> int:
    """Writes a record for each row and returns how many numbers were rounded.

    ``data``: a ``pyarrow.Table``, a ``RecordBatch``, a pandas DataFrame (whose NaN are nulls, and whose index is left out), whatever else has
    ``__arrow_c_stream__``, a dict of arrays or lists with a value a row (what is masked is null), or an iterable of batches or dicts, all of one
    schema; of ``bytes``, with ``record_type="ByteArray"``: what ``read()`` gives in each of its forms. The file appears under its name when it is
    whole; a file object is flushed, and stays open.
    ``compression``: ``"none"``, ``"gzip"`` or ``"zlib"``, at ``level`` 1 to 9; None: gzip for a name that ends in ``.gz``, else none, as for a file
    object that compresses (``gzip.open()``). ``UnsupportedError``: the name says another compression (``.bz2``), which TensorFlow cannot read.
    Doubles and decimals become the nearest float, which is what records hold, and a warning has the columns where that is another number, and how
    many. ``exact=True`` refuses them: ``InvalidError`` names row and column, as it does for nulls within lists. A field with the metadata
    ``{"tfos.encoding": "exact"}`` keeps them as they are. ``allow_rounding=True`` gives no warning, ``False`` is ``exact``.
    """
    exact = flag("exact", exact)
    allow_rounding = None if allow_rounding is None else flag("allow_rounding", allow_rounding)
    if exact and allow_rounding:
        raise ValueError("exact and allow_rounding do not go together")
    losses = _write(path, data, record_type, compression, level, exact or allow_rounding is False)
    if losses and allow_rounding is None:
        warnings.warn(_rounding(losses), stacklevel=2)
    return sum(count for _, count, _ in losses)


def _rounding(losses: List[Tuple[str, int, int]]) -> str:
    columns = ", ".join(f"{name} ({count})" for name, count, _ in losses[:_COLUMNS_NAMED]) + (", ..." if len(losses) > _COLUMNS_NAMED else "")
    infinite = sum(count for _, _, count in losses)
    beyond = f", and {infinite} of them, beyond its range, became infinite" if infinite else ""
    return (
        f"{sum(count for _, count, _ in losses)} numbers were rounded to float, which is what records hold{beyond}: column {columns}. exact=True refuses "
        "them; the metadata {'tfos.encoding': 'exact'} of a column's field keeps them as they are; allow_rounding=True rounds them without this warning"
    )


def _write(path: Path, data: Any, record_type: str, compression: Optional[str], level: int, exact: bool) -> List[Tuple[str, int, int]]:
    """What ``write()`` does. Name, numbers rounded and numbers that became infinite, of each column that has some."""
    batches = record_batches.batches_of(data, record_type == "ByteArray")
    first = next(batches, None)
    if first is None:
        raise ValueError("data: there is no batch, so that there is no schema either; an empty pyarrow.Table has one")
    record_batches.check_names(first.schema)
    with files.writing(path) as (name, file):
        chosen = _choice("compression", compression, _COMPRESSIONS)
        if compression is None and not files.is_compressing(file):
            chosen = _tfos.compression_of_name(name)
        writer = _tfos.ExampleWriter(
            name, first.schema, type=_choice("record_type", record_type, _TYPES), file=file,
            compression=chosen, level=level, exact=exact,
        )  # fmt: skip
        with writer:
            batch = first
            while batch is not None:
                if batch.schema != first.schema:
                    raise ValueError(f"data: a batch of another schema than the first: {batch.schema}, not {first.schema}")
                writer.append(batch)
                batch = next(batches, None)
            return writer.finish()


def _reading(record_type: str, compression: Optional[str], on_damage: str, max_record_size: int) -> Dict[str, Any]:
    return {
        "type": _choice("record_type", record_type, _TYPES),
        "compression": _choice("compression", compression, _COMPRESSIONS),
        "mode": _choice("on_damage", on_damage, _MODES),
        "max_record_size": max_record_size,
    }


def _read(found, schema, form, batch_rows, options, damages) -> Iterator[Any]:
    for source in found:
        with source.reading() as file, _tfos.ExampleReader(source.name, schema, batch_rows=batch_rows, file=file, **options) as reader:
            while True:
                batch = reader.next()
                if damages is not None:
                    damages.extend(Damage(source.name, *damage) for damage in reader.take_damages())
                if batch is None:
                    break
                yield from _shape(batch, form)


def _shape(batch: Any, form: str) -> Iterable[Any]:
    import pyarrow

    if form == "numpy":
        return [_tfos.unpack_arrays(batch)]
    batch = pyarrow.record_batch(batch)
    return [batch] if form == "arrow" else batch.column(0).to_pylist()


def _infer(found: List[files.File], options: dict, limit: int, is_read_again: bool = False) -> Any:
    import pyarrow

    for source in found:
        if is_read_again and source.is_read_once:
            raise ValueError(f"schema: {source.name} can be read only once, so its columns cannot be found first: give a schema")

    def read(run):
        if all(source.is_named for source in run):
            return [_tfos.infer_schema([source.name for source in run], limit=limit, **options)]
        inferences = []
        for source in run:
            with source.reading() as file:
                inferences.append(_tfos.infer_schema([source.name], limit=limit, file=file, **options))
        return inferences

    # To hand a file to a thread takes as long as to look at some dozens of records.
    threads = min(len(found), os.cpu_count() or 1)
    count = max(1, min(_INFERENCE_FILES, len(found) // (4 * threads)))
    runs = [found[i : i + count] for i in range(0, len(found), count)]
    with ThreadPoolExecutor(threads) as pool:
        capsule = _tfos.merge_schema_inferences([text for inferences in pool.map(read, runs) for text in inferences])
    return pyarrow.Schema._import_from_c_capsule(capsule)


def _select(schema: Any, columns: Optional[Sequence[str]]) -> Any:
    import pyarrow

    try:
        schema = schema if isinstance(schema, pyarrow.Schema) else pyarrow.schema(schema)
    except TypeError as error:
        raise TypeError(
            f"schema: expected a pyarrow.Schema, what has __arrow_c_schema__, or a dict of pyarrow's types, not {type(schema).__name__} ({error}); of a "
            "DataFrame's schema pyspark.sql.pandas.types.to_arrow_schema() makes one"
        ) from None
    record_batches.check_names(schema)
    if columns is None:
        return schema
    if isinstance(columns, str):
        raise TypeError(f"columns: expected a list of names, not the text {columns!r}")
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise ValueError(f"columns: there is no column {unknown[0]!r}; the records have {', '.join(map(repr, schema.names))}")
    counts = Counter(name.casefold() for name in schema.names)

    def chosen(field: Any) -> Any:
        # A feature whose name differs in letter case only is another column, and not this one misspelt.
        return field if counts[field.name.casefold()] == 1 else field.with_metadata({**(field.metadata or {}), "tfos.name": "exact"})

    return pyarrow.schema([chosen(schema.field(name)) for name in columns])


def _choice(name: str, value: Optional[str], choices: dict) -> int:
    """The compression that a word names, in upper or lower case: TensorFlow's are "GZIP" and "ZLIB"."""
    found = [number for choice, number in choices.items() if value == choice or (choice and isinstance(value, str) and value.lower() == choice.lower())]
    if not found:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}: expected one of {known}, not {value!r}")
    return found[0]

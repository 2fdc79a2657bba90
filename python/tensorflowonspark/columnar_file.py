# SPDX-License-Identifier: Apache-2.0
"""What ``tfos record convert`` becomes for Parquet and Arrow IPC (cli/columnar_conversion.c), which pyarrow reads and writes; records are decoded
and encoded in C by ``tfrecord``. A batch is held at a time, and of Parquet that is written a row group."""

import contextlib
import io
import json
import math
import os
import time
from typing import Any, Iterable, Iterator, List, Optional, Tuple

import pyarrow as pa
import pyarrow.parquet as pq

from . import _tfos, console, files, tfrecord
from .record_batches import is_list, plain_schema, plain_type

__all__ = ["main"]

_ROWS, _SIZE = 65536, 16 << 20  # of a batch that is read, about
_BUFFER_SIZE = 64 << 10  # of a column of Parquet
_GROUP_SIZE = 64 << 20  # of a row group, before it is encoded
_TYPES = {"bigint": pa.int64(), "float": pa.float32(), "string": pa.string(), "binary": pa.binary()}  # in --schema


class _Failure(Exception):
    """What went wrong, with the file's name."""


def main(source: str, target: str, text: str) -> int:
    """Converts a file; ``text``: what was asked of it, as JSON. The exit status of the command."""
    asked = json.loads(text)
    progress = _Progress(_shown(source, "input"))
    try:
        if asked["from"] == "tfrecord":
            schema, batches = _read_records(source, asked, progress)
            _write_table(target, asked["to"], schema, progress.follow(batches))
            progress.say(f"{progress.rows} records written")
        else:
            losses = _write_records(target, asked, progress.follow(_read_table(source, asked)))
            progress.say(f"{progress.rows} records written; {_rounding(losses, asked['allow_rounding'])}")
    except (_Failure, _tfos.Error) as error:
        progress.say(f"tfos: {error}")
        return 1
    return 0


class _Progress:
    """How far long work is, on a terminal: as cli/progress.c has it."""

    def __init__(self, path: str) -> None:
        self.rows = self._size = self._width = 0
        self._path = path
        self._next = time.monotonic() + 1 if console.is_terminal("stderr") else math.inf

    def follow(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            self.rows += batch.num_rows
            self._size += batch.nbytes
            if time.monotonic() >= self._next:
                line = f"converted: {self.rows} records, {self._size >> 20} MiB of {self._path}"
                console.show("stderr", f"\r{line:{self._width}}")
                self._width, self._next = len(line), time.monotonic() + 0.2
            yield batch

    def say(self, text: str) -> None:
        if self._width:
            console.show("stderr", f"\r{'':{self._width}}\r")
        self._width = 0
        console.show("stderr", f"{text}\n")


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Puts the name of the file into the message of a failure."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, _tfos.Error) and error.__cause__ is None:
            raise
        cause = error.__cause__ or error  # what a file object has raised in C
        raise _Failure(f"{name}: {getattr(cause, 'strerror', None) or cause}") from error


def _shown(path: str, stream: str) -> str:
    return f"the standard {stream}" if path == "-" else os.fsencode(path).decode(errors="replace")


def _open_input(path: str) -> Any:
    if path != "-" and _tfos.split_uri(path)[0]:
        return io.BufferedReader(files.RemoteReader(path), _BUFFER_SIZE)
    file = open(0 if path == "-" else path, "rb", closefd=path != "-")
    file.raw.name = _shown(path, "input")
    return file


class _Output(io.RawIOBase):
    """A file of the library's for pyarrow."""

    def __init__(self, writer: _tfos.FileWriter) -> None:
        super().__init__()
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._writer.write(bytes(data))
        return len(data)


@contextlib.contextmanager
def _open_output(path: str) -> Iterator[Any]:
    if path == "-":
        with open(1, "wb", closefd=False) as file:
            yield file
        return
    files.find_hadoop()
    with _tfos.FileWriter(path) as writer:
        file = io.BufferedWriter(_Output(writer), _BUFFER_SIZE)
        yield file
        file.flush()
        writer.finish()


def _read_records(path: str, asked: dict, progress: _Progress) -> Tuple[Any, Iterator[Any]]:
    with _naming(_shown(path, "input")):
        file = _open_input(path)
    options = {name: asked[name] for name in ("record_type", "on_damage", "max_record_size")}
    if asked["columns"] is not None:
        schema = pa.schema([(name, _type(words)) for name, words in asked["columns"]])
    elif asked["record_type"] == "ByteArray":
        schema = plain_schema()
    else:
        schema = tfrecord.infer_schema(file, **options)
        file.seek(0)
    damages: List[tfrecord.Damage] = []

    def batches() -> Iterator[Any]:
        for batch in tfrecord.read(file, schema, batch_rows=_ROWS, damages=damages, **options):
            tell()
            yield batch
        tell()

    def tell() -> None:
        for damage in damages:
            progress.say(f"tfos: {damage.message}")
        damages.clear()

    return schema, batches()


def _write_table(path: str, form: str, schema: Any, batches: Iterator[Any]) -> None:
    with _naming(_shown(path, "output")), _open_output(path) as file:
        if form == "parquet":
            writer, batches = pq.ParquetWriter(file, schema, write_page_checksum=True), _row_groups(batches)
        else:
            writer = pa.ipc.new_stream(file, schema) if path == "-" else pa.ipc.new_file(file, schema)
        try:
            for batch in batches:
                writer.write(batch)
            writer.close()
        finally:
            writer.is_open = False  # a writer of Parquet would write on when it is collected


def _row_groups(batches: Iterator[Any]) -> Iterator[Any]:
    held, size = [], 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= _GROUP_SIZE:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _read_table(path: str, asked: dict) -> Iterator[Any]:
    """Batches of what a record can hold, at least one."""
    names = asked["columns"] and [name for name, _ in asked["columns"]]
    with _naming(_shown(path, "input")), _open_input(path) as file:
        schema, batches = _open_parquet(file, names) if asked["from"] == "parquet" else _open_arrow(file)
        wanted = _choose(schema, asked["columns"])
        keys = names or range(len(schema))
        batch = None
        for batch in batches:
            if not wanted:
                raise pa.ArrowInvalid("there are rows without a column")
            yield pa.RecordBatch.from_arrays([batch.column(key).cast(field.type) for key, field in zip(keys, wanted)], schema=wanted)
        if batch is None:
            yield pa.RecordBatch.from_pylist([], schema=wanted)


def _open_parquet(file: Any, names: Optional[List[str]]) -> Tuple[Any, Iterator[Any]]:
    parquet = pq.ParquetFile(file, buffer_size=_BUFFER_SIZE, pre_buffer=False, page_checksum_verification=True)

    def batches() -> Iterator[Any]:
        for number in range(parquet.num_row_groups):
            group = parquet.metadata.row_group(number)
            rows = max(1, min(_ROWS, _SIZE * group.num_rows // max(1, group.total_byte_size)))
            yield from parquet.iter_batches(rows, [number], names)

    return parquet.schema_arrow, batches()


def _open_arrow(file: Any) -> Tuple[Any, Iterator[Any]]:
    if file.peek(1)[:1] != b"A":  # as "ARROW1", with which a file begins, and no stream
        stream = pa.ipc.open_stream(file)
        return stream.schema, iter(stream)
    if not file.seekable():
        raise pa.ArrowInvalid("through a pipe comes an Arrow stream; this is an Arrow file, which is read from its end: name it")
    whole = pa.ipc.open_file(file)
    return whole.schema, map(whole.get_batch, range(whole.num_record_batches))


def _choose(schema: Any, columns: Optional[List[Tuple[str, str]]]) -> Any:
    """The columns that are to be written, as what they are written."""
    fields = list(schema)
    if columns is not None:
        for name, _ in columns:
            if schema.names.count(name) != 1:
                raise pa.ArrowInvalid(f"there is no column {name}, which --schema has" if name not in schema.names else f"two columns have the name {name}")
        fields = [schema.field(name) for name, _ in columns]
    said = [words for _, words in columns or ()] or [None] * len(fields)
    return pa.schema([field.with_type(_plain_of(field, words)) for field, words in zip(fields, said)])


def _plain_of(field: Any, said: Optional[str]) -> Any:
    if pa.types.is_null(field.type):  # no feature is written, as of an empty column of CSV
        return _type(said or "string")
    plain = plain_type(field.type)
    if said and _kind(plain) != said:
        raise pa.ArrowInvalid(f"column {field.name} is {field.type}, and --schema says {said}")
    return plain


def _kind(type: Any) -> str:
    """A type in the words of --schema."""
    types = pa.types
    if is_list(type):
        return f"array<{_kind(type.value_type)}>"
    if types.is_boolean(type) or types.is_integer(type) or types.is_temporal(type):
        return "bigint"
    if types.is_floating(type) or types.is_decimal(type):
        return "float"
    return str(type).replace("large_", "")


def _type(words: str) -> Any:
    return pa.list_(_type(words[6:-1])) if words.startswith("array<") else _TYPES[words]


def _write_records(path: str, asked: dict, batches: Iterator[Any]) -> List[Tuple[str, int, int]]:
    options = (asked["record_type"], asked["compression"], 6, asked["exact"])
    with _naming(_shown(path, "output")):
        if path != "-":
            return tfrecord._write(path, batches, *options)
        with _open_output(path) as file:
            return tfrecord._write(file, batches, *options)


def _rounding(losses: List[Tuple[str, int, int]], is_brief: bool) -> str:
    """What was rounded: as cli/record_convert.c has it."""
    text = f"{sum(count for _, count, _ in losses)} numbers rounded"
    if is_brief or not losses:
        return text
    infinite = sum(count for _, _, count in losses)
    columns = ", ".join(f"{name}: {count}" for name, count, _ in losses)
    return f"{text} (column {columns}{f'; {infinite} became infinite' if infinite else ''}); --exact refuses them"

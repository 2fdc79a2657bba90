# SPDX-License-Identifier: Apache-2.0
"""Files to read and write records in: by path, by URI through Hadoop's own client or ``pyarrow.fs``, or open already."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import posixpath
import re
from typing import Any, Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union

from . import _tfos

__all__ = ["File", "Path", "RemoteReader", "before_slash", "find", "find_hadoop", "for_tensorflow", "is_compressing", "writing"]

Path = Union[str, bytes, "os.PathLike[str]", Any]  # or a binary file object
_ARROWS = ("gcs", "gs", "mock", "s3")  # schemes that pyarrow has, and Hadoop, as it comes, has not
_HADOOPS = ("hdfs", "viewfs")  # schemes that pyarrow leaves to Hadoop
_OPTIONS = re.compile(r"\?\w+=[^?]*$")  # of pyarrow's, for S3 and similar


class File(NamedTuple):
    """Something that can be read: more than once, unless it is a file object that cannot seek."""

    name: str
    system: Any = None  #: a pyarrow.fs.FileSystem that has ``name`` without its scheme; None: the library opens it by its name
    path: str = ""  #: in the system
    object: Any = None  #: an open file, which stays open
    begin: int = 0  #: where that was

    @property
    def is_named(self) -> bool:
        """Whether the library itself opens it."""
        return self.system is None and self.object is None

    @property
    def is_read_once(self) -> bool:
        return self.object is not None and not _can_seek(self.object)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """A file object to read from, at its beginning; None for a file that the library opens itself by its name."""
        if self.system is not None:
            with _naming(self.name), self.system.open_input_file(self.path) as file:
                yield file
            return
        if self.object is not None and not self.is_read_once:
            self.object.seek(self.begin)
        yield self.object if self.object is None or self.begin == 0 or self.is_read_once else _Tail(self.object, self.begin)


class _Tail(io.RawIOBase):
    """What lies behind some place of a file object, which need not begin where the file does."""

    def __init__(self, file: Any, begin: int) -> None:
        super().__init__()
        self._file, self._begin = file, begin

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence != 0:
            raise io.UnsupportedOperation("only from the beginning")
        return self._file.seek(self._begin + offset) - self._begin


class RemoteReader(io.RawIOBase):
    """A file of Hadoop's, by its URI, as a file object."""

    def __init__(self, name: str) -> None:
        super().__init__()
        find_hadoop()
        self._reader = _tfos.FileReader(name)
        self._size = _tfos.look_at(name)[1]
        self._offset = 0
        self.name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        data = self._reader.read(len(view)) if len(view) else b""
        view[: len(data)] = data
        self._offset += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        place = offset + (0, self._offset, self._size)[whence]
        self._reader.seek(place)
        self._offset = place
        return place

    def tell(self) -> int:
        return self._offset

    def close(self) -> None:
        if not self.closed:
            self._reader.close()
        super().close()


@functools.lru_cache(maxsize=None)
def find_hadoop() -> None:
    """Before Hadoop's file systems are used: its jars are those of pyspark where the environment names none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin:
        _tfos.set_hadoop_jars(os.path.join(os.path.dirname(spec.origin), "jars"))


def find(paths: Union[Path, Sequence[Path]]) -> List[File]:
    """The files that paths, patterns, folders, URIs and file objects name, as ``<tfos/file_list.h>`` says. FileNotFoundError names one that
    matches none."""
    paths = _plain(paths)
    if isinstance(paths, (str, bytes, os.PathLike)) or _is_file(paths):
        paths = [paths]
    if not isinstance(paths, Iterable):
        raise TypeError(f"paths: expected a path, a pattern, a URI, a binary file object, or a list of these, not {paths!r}")
    files = [file for path in paths for file in _find_one(_plain(path))]
    if not files:
        raise ValueError("paths: expected one path at least")
    return files


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Tuple[str, Any]]:
    """The name of a file to be written, and a file object for it; None for one that the library opens itself, also in Hadoop's file systems. What is
    written through ``pyarrow.fs`` appears under its name at the end, and not when that fails."""
    if _is_file(path):
        yield _name(path), path
        return
    name = os.fsdecode(path)
    own = _tfos.new_file(name)
    if own is not None or _is_hadoops(name):
        yield own or name, None
        return
    remote = _Remote(name)
    place = remote.place(remote.name)
    folder, base = posixpath.split(place)
    part = posixpath.join(folder, f".{base}.part{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with _naming(name), remote.system.open_output_stream(part, compression=None) as file:
            yield remote.name, file
        with _naming(name):
            remote.system.move(part, place)
    except BaseException:
        with contextlib.suppress(OSError):
            remote.system.delete_file(part)
        raise


def is_compressing(file: Any) -> bool:
    """Whether a file object compresses what is written to it, so that the name of its file says nothing about that."""
    return type(file).__module__.partition(".")[0] in ("bz2", "compression", "gzip", "lz4", "lzma", "zstandard")


def for_tensorflow(path: Union[str, "os.PathLike[str]"]) -> str:
    """A path or URI as TensorFlow takes it, to which ``file:/a`` is a path."""
    head, place = _tfos.split_uri(os.fspath(path))
    return f"{head}//{place}" if head and "//" not in head else os.fspath(path)


def before_slash(name: str) -> str:
    """The name of a file system as what a path with a slash can follow."""
    head, path = _tfos.split_uri(for_tensorflow(name))
    return f"{head}{path.rstrip('/')}" if head else name


def _plain(paths: Any) -> Any:
    """A tensor or an array, as ``tf.data.Dataset.list_files()`` gives them, as bytes and lists."""
    if hasattr(paths, "shape") and hasattr(paths, "__array__"):
        import numpy

        return numpy.asarray(paths).tolist()
    return paths


def _find_one(path: Path) -> List[File]:
    if _is_file(path):
        return [File(_name(path), object=path, begin=path.tell() if _can_seek(path) else 0)]
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"paths: expected paths or binary file objects, not {path!r}")
    name = os.fsdecode(path)
    if _scheme(name) in ("", "file") or _is_hadoops(name):
        return [File(found) for found in _tfos.find_files(name)]
    remote = _Remote(name)
    with _naming(name):
        return [File(found, remote.system, remote.place(found)) for found in _tfos.find_files(remote.name, remote)]


def _scheme(name: str) -> str:
    return _tfos.split_uri(name)[0].partition(":")[0].lower()


def _is_hadoops(name: str) -> bool:
    """Whether Hadoop serves the scheme of a URI; where neither does nor pyarrow, it is Hadoop's failure that is raised.

    Raises:
        tensorflowonspark.errors.UnsupportedError: Hadoop's client, which alone has the scheme, cannot be used here; it says why.
    """
    scheme = _scheme(name)
    if scheme in _ARROWS:
        return False
    find_hadoop()
    try:
        _tfos.look_at(name)
    except _tfos.UnsupportedError:
        if scheme in _HADOOPS or not _is_arrows(name):
            raise
        return False
    return True


def _is_arrows(uri: str) -> bool:
    try:
        _Remote(uri)
    except ValueError:
        return False
    return True


class _Remote:
    """A file system of ``pyarrow.fs``, by the names that its files have in URIs; ``_tfos.find_files()`` looks there."""

    def __init__(self, uri: str) -> None:
        self._head, path = _tfos.split_uri(uri)
        scheme, _, host = self._head.partition(":")
        options = _OPTIONS.search(path)
        self.name = self._head + (path[: options.start()] if options else path)
        self.system, base = _system(f"{scheme.lower()}:{host or '//'}", options.group() if options else "", uri)
        self._root = f"{base.rstrip('/')}/" if base else ""

    def place(self, name: str) -> str:
        """In the file system. pyarrow gets no URI that has it: it would cut it at ``#`` and ``?``, and decode the rest."""
        return (self._root + name[len(self._head) + 1 :]).rstrip("/") or self._root

    def look(self, name: str) -> int:
        return self._kind(self.system.get_file_info(self.place(name)))

    def list(self, folder: str) -> List[Tuple[str, int]]:
        from pyarrow import fs

        entries = self.system.get_file_info(fs.FileSelector(self.place(folder), allow_not_found=True))
        return [(entry.base_name, self._kind(entry)) for entry in entries]

    @staticmethod
    def _kind(info: Any) -> int:
        return {"File": 1, "Directory": 2}.get(info.type.name, 0)


def _system(head: str, options: str, uri: str) -> Tuple[Any, str]:
    """The file system of a URI and the name of its root there."""
    try:
        from pyarrow import fs
    except ImportError:
        raise ValueError(f"{uri}: URIs are read through pyarrow, which is not installed here") from None
    try:
        with _naming(uri):
            return fs.FileSystem.from_uri(f"{head}/{options}")
    except ValueError as error:
        if not options:
            raise
        advice = "open a file that has ? in its name yourself, and give the file object"
        raise ValueError(f"{error}; what is behind ? is taken for options of pyarrow's: {advice}") from None


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Puts the name of the file into the message of a failure of pyarrow's."""
    try:
        yield
    except (OSError, ValueError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error


def _is_file(path: Any) -> bool:
    return not isinstance(path, (str, bytes, os.PathLike)) and (hasattr(path, "read") or hasattr(path, "write"))


def _can_seek(file: Any) -> bool:
    return bool(getattr(file, "seekable", lambda: False)())


def _name(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"<{type(file).__name__}>"

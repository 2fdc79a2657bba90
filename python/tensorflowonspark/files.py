# SPDX-License-Identifier: Apache-2.0
"""Files to read and write records in: by path, by URI through ``pyarrow.fs``, or open already."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import io
import os
import posixpath
import re
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple, Union

__all__ = ["File", "Path", "find", "writing"]

Path = Union[str, "os.PathLike[str]", Any]  # or a binary file object
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HDFS = re.compile(r"(hdfs|viewfs)://", re.IGNORECASE)
_NO_HADOOP = re.compile("Unable to load lib|attempt to load lib")  # what pyarrow says the first time, and after that


class File(NamedTuple):
    """Something that can be read: more than once, unless it is a file object that cannot seek."""

    name: str
    system: Any = None  #: a pyarrow.fs.FileSystem that has ``name`` without its scheme; None: the local one
    path: str = ""  #: in the system
    object: Any = None  #: an open file, which stays open
    begin: int = 0  #: where that was

    @property
    def is_local(self) -> bool:
        return self.system is None and self.object is None

    @property
    def is_read_once(self) -> bool:
        return self.object is not None and not _can_seek(self.object)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """A file object to read from, at its beginning; None for a file that the library opens itself by its name."""
        if self.system is not None:
            with _said(self.name), self.system.open_input_file(self.path) as file:
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


def find(paths: Union[Path, Sequence[Path]]) -> List[File]:
    """The files that paths, patterns, folders, URIs and file objects stand for. FileNotFoundError names what stands for none."""
    if isinstance(paths, (str, os.PathLike)) or _is_file(paths):
        paths = [paths]
    files: List[File] = []
    for path in paths:
        found = _find_one(path)
        if not found:
            raise FileNotFoundError(f"paths: there is no file in or for {os.fspath(path)!r}")
        files.extend(found)
    if not files:
        raise ValueError("paths: expected one path at least")
    return files


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Tuple[str, Any]]:
    """The name of a file to be written, and a file object for it; None for one that the library opens itself. What is written through
    ``pyarrow.fs`` appears under its name at the end, and not when that fails."""
    if _is_file(path):
        yield _name(path), path
        return
    path = os.fspath(path)
    if not _URI.match(path):
        yield path, None
        return
    system, place = _system(path)
    part = f"{place}.part{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with _said(path), system.open_output_stream(part, compression=None) as file:
            yield path, file
        with _said(path):
            system.move(part, place)
    except BaseException:
        with contextlib.suppress(OSError):
            system.delete_file(part)
        raise


def _find_one(path: Path) -> List[File]:
    if _is_file(path):
        return [File(_name(path), object=path, begin=path.tell() if _can_seek(path) else 0)]
    path = os.fspath(path)
    if _URI.match(path):
        return _find_remote(path)
    found = [path]
    if os.path.isdir(path):
        found = sorted(entry.path for entry in os.scandir(path) if entry.is_file() and entry.name[0] not in "_.")
    elif not os.path.exists(path) and glob.has_magic(path):
        found = sorted(file for file in glob.glob(path) if os.path.isfile(file))
    return [File(name) for name in found]


def _find_remote(uri: str) -> List[File]:
    from pyarrow import fs

    system, place = _system(uri)
    prefix = uri[: len(uri) - len(place)] if uri.endswith(place) else f"{uri.split('://')[0]}://"
    with _said(uri):
        info = system.get_file_info(place)
        if info.type == fs.FileType.File:
            return [File(uri, system, place)]
        if info.type == fs.FileType.Directory:
            folder, pattern = place, "[!_.]*"
        elif glob.has_magic(posixpath.basename(place)):
            folder, pattern = posixpath.dirname(place), posixpath.basename(place)
        else:
            return []
        entries = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    names = sorted(entry.path for entry in entries if entry.type == fs.FileType.File and fnmatch.fnmatchcase(entry.base_name, pattern))
    return [File(prefix + name, system, name) for name in names]


def _system(uri: str) -> Tuple[Any, str]:
    try:
        from pyarrow import fs
    except ImportError:
        raise ValueError(f"{uri}: URIs are read through pyarrow, which is not installed here") from None
    try:
        with _said(uri):
            return fs.FileSystem.from_uri(uri)
    except OSError as error:
        if not _HDFS.match(uri) or not _NO_HADOOP.search(str(error)):
            raise
    # pyarrow's needs the libhdfs.so of an installed Hadoop. Its words are the hundred places where it has looked for it.
    try:
        from . import hdfs
    except ImportError as error:
        raise OSError(
            f"{uri}: pyarrow has found no libhdfs.so of a Hadoop installation (it looks in HADOOP_HOME, and needs JAVA_HOME and CLASSPATH), and "
            f"hdfs-native, which needs none, cannot be imported ({error}): pip install hdfs-native"
        ) from None
    with _said(uri):
        return hdfs.open_system(uri)


@contextlib.contextmanager
def _said(name: str) -> Iterator[None]:
    """Says which file it was that pyarrow has failed with."""
    try:
        yield
    except (OSError, ValueError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error


def _is_file(path: Any) -> bool:
    return not isinstance(path, (str, os.PathLike)) and (hasattr(path, "read") or hasattr(path, "write"))


def _can_seek(file: Any) -> bool:
    return bool(getattr(file, "seekable", lambda: False)())


def _name(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"<{type(file).__name__}>"

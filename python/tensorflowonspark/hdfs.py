# SPDX-License-Identifier: Apache-2.0
"""HDFS for ``pyarrow.fs`` through the package ``hdfs-native``, which needs neither Java nor an installed Hadoop; importing this needs it."""

from __future__ import annotations

import re

from hdfs_native import fsspec as clients
from pyarrow import fs

__all__ = ["open_system"]

_HEAD = re.compile(r"(hdfs|viewfs)://(?:([^/:]+)(?::([0-9]+))?)?")


class _Handler(fs.FSSpecHandler):
    def move(self, src: str, dest: str) -> None:
        """A file that is there already is replaced, as on a local disk."""
        self.fs.mv(src, dest, overwrite=True)


class _Paths:
    """What hdfs-native takes for URIs are paths, in which ``#``, ``?`` and ``;`` are characters like others."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path or "/"


class _Hdfs(_Paths, clients.HdfsFileSystem):
    pass


class _Viewfs(_Paths, clients.ViewfsFileSystem):
    pass


def open_system(head: str) -> fs.FileSystem:
    """The file system of a scheme and a host, in whose paths nothing is escaped. Name services are those of ``HADOOP_CONF_DIR``, the user is
    that of ``HADOOP_USER_NAME``, and Kerberos' ticket that of its cache."""
    found = _HEAD.fullmatch(head)
    if found is None or "@" in (found[2] or ""):
        raise ValueError(f"{head}: expected hdfs://HOST:PORT/PATH or hdfs://SERVICE/PATH; the user is that of HADOOP_USER_NAME")
    scheme, host, port = found.groups()
    return fs.PyFileSystem(_Handler((_Hdfs if scheme == "hdfs" else _Viewfs)(host, int(port) if port else None)))

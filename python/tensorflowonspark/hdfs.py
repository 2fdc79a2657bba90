# SPDX-License-Identifier: Apache-2.0
"""HDFS for ``pyarrow.fs`` through the package ``hdfs-native``, which needs neither Java nor an installed Hadoop; importing this needs it."""

from __future__ import annotations

import re
from typing import Tuple

from hdfs_native import fsspec as clients
from pyarrow import fs

__all__ = ["open_system"]

_URI = re.compile(r"(hdfs|viewfs)://(?:([^/:]+)(?::([0-9]+))?)?(/.*)?", re.IGNORECASE)


class _Handler(fs.FSSpecHandler):
    def move(self, src: str, dest: str) -> None:
        """A file that is there already is replaced, as on a local disk."""
        self.fs.mv(src, dest, overwrite=True)


def open_system(uri: str) -> Tuple[fs.FileSystem, str]:
    """The file system of a URI, and the path in it, in which nothing is escaped. Name services are those of ``HADOOP_CONF_DIR``, the user is
    that of ``HADOOP_USER_NAME``, and Kerberos' ticket that of its cache."""
    found = _URI.fullmatch(uri)
    if found is None or "@" in (found[2] or ""):
        raise ValueError(f"{uri}: expected hdfs://HOST:PORT/PATH or hdfs://SERVICE/PATH; the user is that of HADOOP_USER_NAME")
    scheme, host, port, path = found.groups()
    client = clients.HdfsFileSystem if scheme.lower() == "hdfs" else clients.ViewfsFileSystem
    return fs.PyFileSystem(_Handler(client(host, int(port) if port else None))), path or "/"

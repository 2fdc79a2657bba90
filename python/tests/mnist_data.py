# SPDX-License-Identifier: Apache-2.0
"""The examples' MNIST, cut."""

import gzip
import struct
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "examples" / "mnist" / "data"


def first_digits(folder, training=640):
    """``folder``, made, with the first digits, so many for training and 200, as gzipped idx files."""
    folder.mkdir()
    for name, count in (("train", training), ("t10k", 200)):
        for kind, shape in (("images-idx3", (28, 28)), ("labels-idx1", ())):
            size = count * 784 if shape else count
            content = gzip.decompress((DATA / f"{name}-{kind}-ubyte.gz").read_bytes())
            head = bytes([0, 0, 8, 1 + len(shape)]) + struct.pack(f">{1 + len(shape)}I", count, *shape)
            (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + content[len(head) :][:size], mtime=0))
    return folder

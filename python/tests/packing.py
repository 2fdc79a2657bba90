# SPDX-License-Identifier: Apache-2.0
"""Rows to batches and back without a feed between them."""

from tensorflowonspark import _tfos


def pack(rows, columns=False):
    """The rows, packed into batches and unpacked again; ``columns``: as results for a DataFrame are."""
    return [row for batch in _tfos.pack(rows, columns) for row in _tfos.unpack(batch)]


def pack_columns(rows):
    return pack(rows, columns=True)


def pack_arrays(rows):
    """The arrays of the rows' batches."""
    return _tfos.unpack_arrays(_tfos.pack(rows))

# SPDX-License-Identifier: Apache-2.0
"""Columns of results by the extension alone, without Spark."""

import pytest

from tensorflowonspark import _tfos

pa = pytest.importorskip("pyarrow")

GIVE_BACK = """
import numpy as np
feed, errors = link.open_feed(), []
while True:
    arrays = feed.next_arrays(7, True)
    if arrays is None:
        break
    n = len(arrays["x"])
    for wrong in ({"x": arrays["x"], "y": np.zeros(n + 1)}, {"x": np.float32(1)}, np.array(1), {"x": np.zeros(n, "m8[s]")}, {"x\\0": arrays["x"]},
                  (arrays["x"], [1])):
        try:
            feed.put_arrays(wrong)
        except ValueError as error:
            errors.append(str(error))
    feed.put_arrays({"x": arrays["x"][::1], "y": arrays["x"][:, None] * np.ones((1, 3))})
save(errors)
"""


@pytest.mark.parametrize("remote", [False, True])
def test_columns_both_ways(start, remote):
    cluster = start(GIVE_BACK)
    batches = [pa.RecordBatch.from_pydict({"x": list(map(float, range(first, first + 10)))}) for first in range(0, 100, 10)]
    with cluster.writer(results=True, remote=remote, ahead_rows=25) as writer:
        kept = [pa.record_batch(result) for result in writer.result_batches(batches)]
    table = pa.Table.from_batches(kept)
    assert table["x"].to_pylist() == list(map(float, range(100)))
    assert table["y"].to_pylist() == [[float(i)] * 3 for i in range(100)]
    assert kept[0].schema.metadata[b"tfos.row"] == b"dict"
    errors = cluster.saved()
    for words in ("column 'y': has 8 rows, the column before it 7", "column 'x': expected a numpy array", "array: has no dimension for its rows",
                  r"timedelta64[s] with 1 dimensions cannot be sent", "cannot be a column's name",
                  "column 1: expected a numpy array"):
        assert any(words in error for error in errors), (words, errors[:7])


def test_a_batch_is_given_out_once(start):
    cluster = start(GIVE_BACK)
    with cluster.writer(results=True) as writer:
        results = list(writer.result_batches([pa.RecordBatch.from_pydict({"x": [1.0]})]))
        with pytest.raises(_tfos.InvalidError, match="open one for each attempt"):
            writer.result_batches([])
    assert pa.record_batch(results[0]).to_pydict() == {"x": [1.0], "y": [[1.0, 1.0, 1.0]]}
    with pytest.raises(_tfos.InvalidError, match="given out before"):
        pa.record_batch(results[0])
    cluster.end()

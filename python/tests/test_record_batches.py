# SPDX-License-Identifier: Apache-2.0
"""What people give to ``tfrecord.write`` beside Arrow's tables and numpy's arrays."""

import numpy as np
import pytest

from tensorflowonspark import _tfos

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from tensorflowonspark import tfrecord  # noqa: E402

NUMBERS = pa.table({"n": [1, 2, 3], "x": pa.array([0.5, 1, 2], pa.float32())})


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def test_data_as_people_have_it(tmp_path):
    def back(data, **options):
        tfrecord.write(tmp_path / "a", data, **options)
        return rows(tfrecord.read(tmp_path / "a"))

    frame = pd.DataFrame({"n": pd.array([1, None], "Int64"), "c": pd.Categorical(["u", "v"]), "x": [0.5, float("nan")], "b": pd.array([None, True], "boolean"),
                          "none": [None, None]}, index=["r", "s"])  # fmt: skip
    wanted = [{"n": 1, "c": "u", "x": 0.5, "b": None}, {"n": None, "c": "v", "x": None, "b": 1}]
    assert back(frame) == back([frame[:1], frame[1:]]) == back(pa.Table.from_pandas(frame, preserve_index=False)) == wanted
    columns = {name: frame[name] for name in ("n", "c", "b")}
    assert back(columns) == [{name: row[name] for name in columns} for row in wanted]
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [0, 0]])
    assert back({"x": np.ma.array([1, 2], mask=[False, True]), "y": masked}) == [{"x": 1, "y": [1, 2]}, {"x": None, "y": [3, 4]}]
    masked[1, 0] = np.ma.masked
    with pytest.raises(_tfos.InvalidError, match="row 1: column y: a null within a list"):
        back({"y": masked})
    for dtype in (">f4", ">f8", "<f8", "f2", ">f2"):
        assert back({"x": np.array([1.5, 2], dtype)}) == [{"x": 1.5}, {"x": 2}]
    for dtype in (">i8", ">u2", "i1"):
        assert back({"x": np.array([[1], [2]], dtype)}) == [{"x": 1}, {"x": 2}]
    assert back({"x": [[1], [2, 3]], "y": ["a\0", "b"], "z": (b"\0", None), "w": [np.zeros(1), np.zeros(2)], "v": [1, 2.5], "u": [1, None]}) == [
        {"x": [1], "y": "a\0", "z": "\0", "w": [0], "v": 1, "u": 1}, {"x": [2, 3], "y": "b", "z": None, "w": [0, 0], "v": 2.5, "u": None}]  # fmt: skip
    assert back(pa.RecordBatchReader.from_batches(NUMBERS.schema, NUMBERS.to_batches()), compression="GZIP", record_type="example") == NUMBERS.to_pylist()
    assert back(pa.RecordBatchReader.from_batches(NUMBERS.schema, [])) == []


@pytest.mark.parametrize("data, words", [
    ({"x": [1, "a"]}, "data: column 'x': "),
    ({"x": [[1], "a"]}, "data: column 'x': "),
    ({"x": ["\udcff"]}, "data: column 'x': "),
    ({"x": np.array([1j])}, "data: column 'x': "),
    ({"x": 1}, r"data: column 'x' has no dimension for its rows: .*from_pylist\(\)"),
    ({1: [1]}, "data: the name of a column is text, not 1"),
    ({"x\0y": [1]}, r"column 'x\\x00y' has a null character in its name"),
    (pa.table({"a": [[{"b\0": 1}]]}), r"column 'b\\x00' has a null character in its name"),
    (pa.chunked_array([[1]]), "data: expected a pyarrow.Table"),
])
def test_data_that_would_be_changed_is_refused(tmp_path, data, words):
    with pytest.raises((TypeError, ValueError), match=words):
        tfrecord.write(tmp_path / "a", data)
    assert not (tmp_path / "a").exists()


def test_schemas_that_are_none_are_refused(tmp_path):
    tfrecord.write(tmp_path / "a", NUMBERS)
    for schema in ("x bigint", 3, ["x"]):
        with pytest.raises(TypeError, match=f"schema: expected a pyarrow.Schema, .* not {type(schema).__name__} "):
            tfrecord.read(tmp_path / "a", schema)
    with pytest.raises(ValueError, match="null character in its name"):
        tfrecord.read(tmp_path / "a", pa.schema({"x\0": pa.int64()}))

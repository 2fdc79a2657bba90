# SPDX-License-Identifier: Apache-2.0
"""DataFrames of random types and data into ctx.get_dataset, both ways: every tensor is what docs/types.md says of the value that Spark has."""

import datetime
import decimal
import itertools
import math
import os
import pickle

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import our_processes, wait_until
from tensorflowonspark import TFCluster
from test_cluster import local
from test_frames import spark, tables  # noqa: F401

pytestmark = pytest.mark.long
pytest.importorskip("pyarrow")
pytest.importorskip("tensorflow")

# A run by hand may ask for more.
EXAMPLES = int(os.environ.get("TFOS_TEST_EXAMPLES", "2"))


def save_batches(args, ctx):
    """For each file of options: writes the batches of the dataset that is opened with them."""
    import itertools
    import os
    import pickle
    import time

    import tensorflow as tf

    def plain(value):
        if isinstance(value, dict):
            return {name: plain(member) for name, member in value.items()}
        return value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()

    for number in itertools.count():
        while not os.path.exists(f"{args}/options-{number}"):
            if os.path.exists(f"{args}/end"):
                return
            time.sleep(0.01)
        with open(f"{args}/options-{number}", "rb") as file:
            dataset = ctx.get_dataset(**pickle.load(file))
        batches = [plain(batch) for batch in dataset]
        with open(f"{args}/new", "wb") as file:
            pickle.dump(batches, file)
        os.rename(f"{args}/new", f"{args}/batches-{number}")


class Reader:
    """A trainer for all examples."""

    def __init__(self, sc, folder):
        self._folder = folder
        self._numbers = itertools.count()
        self._cluster = TFCluster.run(sc, local(save_batches), str(folder), 1, 0, input_mode=TFCluster.InputMode.SPARK)

    def batches(self, frame, via, **options):
        number = next(self._numbers)
        new = self._folder / "new-options"
        new.write_bytes(pickle.dumps(options))
        new.rename(self._folder / f"options-{number}")
        path = self._folder / f"batches-{number}"
        self._cluster.train(frame, 1, via=via)
        wait_until(path.exists, 60, "the batches")
        return pickle.loads(path.read_bytes())

    def close(self):
        (self._folder / "end").touch()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def reader(sc, tmp_path_factory):
    reader = Reader(sc, tmp_path_factory.mktemp("tensors"))
    yield reader
    reader.close()
    wait_until(lambda: not our_processes(), what="the end of the nodes")


@pytest.fixture
def nothing_left():
    """The trainer outlives a test."""


# -- what the tensors must be


def leaves(type_):
    """What becomes of a column: for each of its tensors the path in it, and what makes a row's value of one that pyarrow has."""
    kind = type_.typeName()
    if kind == "array":
        return [(path, lambda value, make=make: [make(item) for item in value or []]) for path, make in leaves(type_.elementType)]
    if kind == "map":  # a list of pairs
        return [((side, *path), lambda value, make=make, i=i: [make(pair[i]) for pair in value or []])
                for i, (side, inner) in enumerate((("key", type_.keyType), ("value", type_.valueType))) for path, make in leaves(inner)]
    if kind == "struct":
        return [((field.name, *path), lambda value, make=make, name=field.name: make(None if value is None else value[name]))
                for field in type_.fields for path, make in leaves(field.dataType)]
    return [((), lambda value: scalar(kind, value))]


def scalar(kind, value):
    if kind in ("string", "binary"):
        return b"0" if value is None else value.encode() if kind == "string" else value
    if value is None:
        return {"boolean": False, "decimal": 0.0, "float": 0.0, "double": 0.0}.get(kind, 0)
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo and datetime.timezone.utc)) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return float(value) if isinstance(value, decimal.Decimal) else value


def same(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-15)
    return type(a) is type(b) and a == b


def at(tree, path):
    for name in path:
        tree = tree[name]
    return tree


@st.composite
def readings(draw):
    return *draw(tables()), draw(st.integers(1, 9))


@settings(max_examples=EXAMPLES, deadline=None, derandomize="TFOS_TEST_EXAMPLES" not in os.environ, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))
@given(table=readings())
def test_any_schema_and_data(spark, reader, table):  # noqa: F811
    schema, rows, batch_size = table
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    # A map's order is Spark's, which dictionaries of collect() do not have.
    rows = frame.toArrow().to_pylist()
    tensors = [((field.name, *path), [make(row[field.name]) for row in rows]) for field in frame.schema for path, make in leaves(field.dataType)]
    lists = [".".join(path) for path, values in tensors if isinstance(values[0], list)]
    for via in ("jvm", "arrow"):
        batches = reader.batches(frame, via, batch_size=batch_size, null_value=0, ragged=lists)
        assert len(batches) == -(-len(rows) // batch_size)
        for path, values in tensors:
            got = [value for batch in batches for value in at(batch, path)]
            for row, (one, wanted) in enumerate(zip(got, values)):
                assert same(one, wanted), (via, schema, path, row, one, wanted)
            assert len(got) == len(values)


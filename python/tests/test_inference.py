# SPDX-License-Identifier: Apache-2.0
"""Inference on DataFrames: columns to the trainers and back, in order, whatever sizes, types and fates."""

import collections
import dataclasses
import datetime
import decimal
import enum
import itertools

import numpy as np
import pytest

from conftest import our_processes, wait_until
from local_cluster import starting
from tensorflowonspark import TFCluster, _tfos, answers, frames, inference
from test_cluster import local
from test_frames import FLAT, NESTED, same, with_nulls
from test_row_kinds import of_main

pa = pytest.importorskip("pyarrow")

FEED = TFCluster.InputMode.SPARK


def answer(args, ctx):
    """A model that is a Python expression in a file: it may be another for each inference."""
    import collections
    import dataclasses
    import datetime
    import decimal
    import enum

    import numpy
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import Row

    from tensorflowonspark import TFNode

    names = {"Vectors": Vectors, "np": numpy, "Row": Row, "datetime": datetime, "decimal": decimal, "collections": collections,
             "dataclasses": dataclasses, "enum": enum}
    feed = TFNode.DataFeed(ctx.mgr, False)
    read = feed.next_arrays if args["how"] == "arrays" else feed.next_batch
    while not feed.should_stop():
        batch = read(args["count"])
        if batch is not None and len(batch):
            with open(args["model"]) as file:
                feed.batch_results(eval(file.read(), names)(batch))


class Models:
    """Two clusters of one trainer each, of which one reads arrays and the other rows. Spark has an executor more than either, which feeds by TCP."""

    def __init__(self, sc, folder):
        self._sc, self._folder, self._running = sc, folder, {}

    def cluster(self, how, model):
        """The cluster that reads so, with this model."""
        (self._folder / how).write_text(model)
        if how not in self._running:
            args = {"how": how, "model": str(self._folder / how), "count": 5}
            self._running[how] = TFCluster.run(self._sc, local(answer), args, 1, 0, input_mode=FEED)
        return self._running[how]

    def close(self):
        for cluster in self._running.values():
            cluster.shutdown()


class One:
    """A cluster whose DataFrames go one way."""

    def __init__(self, cluster, via):
        self._cluster, self._via = cluster, via

    def inference(self, data, *args, **options):
        if frames.is_frame(data):
            options.setdefault("via", self._via)
        return self._cluster.inference(data, *args, **options)


@pytest.fixture(scope="module")
def running(sc, tmp_path_factory):
    models = Models(sc, tmp_path_factory.mktemp("models"))
    yield models
    models.close()
    wait_until(lambda: not our_processes(), what="the end of the nodes")


@pytest.fixture(params=["jvm", pytest.param("arrow", marks=pytest.mark.long)])
def via(request):
    return request.param


@pytest.fixture
def models(running, via):
    return lambda how, model: One(running.cluster(how, model), via)


def answer_rows(folder, ctx):
    answer({"how": "rows", "model": f"{folder}/model", "count": 5}, ctx)


@pytest.fixture(scope="module")
def alone(sc, tmp_path_factory):
    """A function that makes columns of a model's results for three rows, as a task of the Arrow way does; no job runs."""
    from pyspark.sql import types

    folder, feeds = tmp_path_factory.mktemp("alone"), itertools.count(1)

    def columns(model, schema):
        (folder / "model").write_text(f"lambda b: (lambda ids: {model})([row.id for row in b])")
        fields = [inference._arrow_field(field, "output_schema") for field in types._parse_datatype_string(schema).fields]
        with cluster.writer(feed=next(feeds), results=True) as writer:
            return [answers.columns_of(pa.record_batch(result), fields) for result in writer.result_batches([pa.RecordBatch.from_pydict({"id": [0, 1, 2]})])]

    with starting(folder) as start:
        cluster = start(local(answer_rows))
        yield columns
        cluster.end()


@pytest.fixture
def nothing_left():
    """The trainers outlive a test: what is left is looked for at the end of them all."""


@pytest.fixture(scope="module")
def spark(sc):
    from pyspark.sql import SparkSession

    return SparkSession(sc)


@pytest.fixture(params=["arrays", "rows"])
def how(request):
    return request.param


def equal(rows, others):
    return len(rows) == len(others) and all(map(same, map(tuple, rows), map(tuple, others)))


# -- order and completeness


def test_s16_partitions_of_all_sizes(spark, models, how):
    sizes = [0, 1, 7, 10, 11]
    rows = spark.sparkContext.parallelize(sizes, len(sizes)).mapPartitionsWithIndex(
        lambda index, counts: ((1000 * index + i,) for i in range(next(counts))))
    frame = spark.createDataFrame(rows, "id int")
    cluster = models(how, "lambda b: b['id'] ** 2" if how == "arrays" else "lambda b: [row.id ** 2 for row in b]")
    result = cluster.inference(frame, "square long", keep="id")
    assert result.columns == ["id", "square"]
    want = [[(1000 * p + i, (1000 * p + i) ** 2) for i in range(size)] for p, size in enumerate(sizes)]
    assert result.rdd.glom().collect() == want
    assert result.rdd.glom().collect() == want  # each action anew
    assert cluster.inference(frame, "square long").collect() == [(square,) for part in want for _, square in part]


def test_batches_beyond_the_ring(spark, models):
    """80 MB in one batch of Arrow, and as much back."""
    frame = spark.range(0, 10_000, 1, 1).selectExpr("id", "array_repeat(double(id), 1000) as x")
    result = models("arrays", "lambda b: {'y': b['x'], 'n': b['id']}").inference(frame, "n long, y array<double>", keep=["id", "x"])
    wrong = result.where("id <> n or x <> y or size(y) <> 1000")
    assert result.selectExpr("count(*)", "sum(y[999])").collect() == [(10_000, float(sum(range(10_000))))]
    assert wrong.count() == 0


def test_a_result_beyond_the_ring(spark, models):
    cluster = models("arrays", "lambda b: b['id'][:, None] + np.zeros((1, 3_000_000))")
    result = cluster.inference(spark.range(0, 4, 1, 2), "big array<double>", keep="id")
    assert result.selectExpr("id", "size(big)", "big[0]", "big[2999999]").collect() == [(i, 3_000_000, i, i) for i in range(4)]


@pytest.mark.long
def test_a_plan_may_compute_it_several_times(spark, models):
    """In one task, in one stage, and in several at once."""
    result = models("arrays", "lambda b: b['id'] * 2").inference(spark.range(0, 40, 1, 4), "twice long", keep="id")
    assert result.coalesce(1).count() == 40
    assert sorted(result.union(result).coalesce(2).collect()) == sorted([(i, i * 2) for i in range(40)] * 2)
    few, many = result.where("id < 10").hint("merge"), result.where("id >= 0")
    assert sorted(few.join(many, "id").collect()) == [(i, i * 2, i * 2) for i in range(10)]
    assert result.cache().count() == 40
    result.unpersist()


def test_rdds_too(spark, running):
    rdd = spark.sparkContext.parallelize(range(20), 4)
    assert running.cluster("rows", "lambda b: [x + 1 for x in b]").inference(rdd, 300, "input").coalesce(1).collect() == list(range(1, 21))


def test_lazy(spark, models):
    frame = spark.range(3).selectExpr("id", "if(id >= 0, raise_error('computed'), id) as x")
    result = models("arrays", "lambda b: b['id']").inference(frame, "y long", keep="x")
    assert result.schema.names == ["x", "y"]
    with pytest.raises(Exception, match="computed"):
        result.collect()


def test_a_retry_gives_the_whole_partition(spark, models):
    def fail_once(batches):
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            if number == 1 and TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("once")
            yield batch

    result = models("arrays", "lambda b: b['id'] + 1").inference(spark.range(0, 100, 1, 2), "next long", keep="id")
    assert result.mapInArrow(fail_once, result.schema).collect() == [(i, i + 1) for i in range(100)]


def test_a_consumer_that_fails_in_the_middle(spark, models):
    """Rows are still on their way to a Python worker, from another thread of Spark 3.5, when their task ends."""
    def fail_once(batches):
        from pyspark import TaskContext

        for batch in batches:
            if TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("once")
            yield batch

    frame = spark.range(0, 40_000, 1, 2).selectExpr("id", "repeat('x', 1000) as text")
    result = models("arrays", "lambda b: b['id']").inference(frame, "same long", keep="text", columns="id")
    assert result.mapInArrow(fail_once, result.schema).selectExpr("count(*)", "sum(same)").collect() == [(40_000, sum(range(40_000)))]


def test_a_limit_leaves_partitions_unread(spark, models):
    cluster = models("arrays", "lambda b: b['id'] + 1")
    assert cluster.inference(spark.range(0, 100_000, 1, 1), "next long").limit(3).collect() == [(1,), (2,), (3,)]
    assert cluster.inference(spark.range(0, 3, 1, 1), "next long").collect() == [(1,), (2,), (3,)]


@pytest.mark.long
def test_two_inferences_at_a_time(spark, models, how):
    cluster = models(how, "lambda b: b['id'] * 10" if how == "arrays" else "lambda b: [row.id * 10 for row in b]")
    first = cluster.inference(spark.range(0, 30, 1, 3), "a long").toLocalIterator()
    second = cluster.inference(spark.range(100, 130, 1, 3), "b long").toLocalIterator()
    assert [(a.a, b.b) for a, b in zip(first, second)] == [(10 * i, 10 * i + 1000) for i in range(30)]


# -- types

KEPT = {**FLAT, **NESTED, "nothing": "cast(null as int)"}


def test_keep_every_type(spark, models):
    frame = spark.range(0, 23, 1, 3).withColumnRenamed("id", "i").selectExpr("i", *with_nulls(KEPT), "i as `a.b`", "i + 1 as `c``d`")
    result = models("arrays", "lambda b: -b['i']").inference(frame, "`x.y` long", keep=frame.columns, columns=["i"])
    assert result.schema.fields[:-1] == frame.schema.fields
    rows = frame.collect()
    assert equal(result.collect(), [(*row, -row.i) for row in rows])
    assert result.columns[-1] == "x.y"


def test_keep_what_arrow_cannot_carry(spark, running):
    frame = spark.range(3).selectExpr("id", "make_interval(0, id) as span")
    result = running.cluster("arrays", "lambda b: b['id']").inference(frame, "x long", keep="span", columns="id")
    assert result.selectExpr("cast(span as string)", "x").collect() == [("0 seconds", 0), ("1 months", 1), ("2 months", 2)]


SAME = {
    **{name: text for name, text in FLAT.items()},
    **{f"list_{name}": f"array({FLAT[name]}, {FLAT[name]})" for name in FLAT},
    "struct": "named_struct('a', i, 'b', named_struct('c', array(i / 2), 'd', 'x'))",
    "map": "map(cast(i as string), i / 2, 'k', null)",
    "matrix": "array(array(i, 1L), array(2L, i))",
    "ragged": "sequence(0, i % 4)",
}


@pytest.mark.long
def test_an_identity_model(spark, running, how):
    """What a trainer gives back as it got it is what went in, of whatever type."""
    columns = with_nulls(SAME) if how == "rows" else [f"{text} as {name}" for name, text in SAME.items()]
    frame = spark.range(0, 23, 1, 3).withColumnRenamed("id", "i").selectExpr("i", *columns)
    result = running.cluster(how, "lambda b: b").inference(frame, frame.schema)
    for row, wanted in itertools.zip_longest(result.collect(), frame.collect()):
        for name in frame.columns:
            assert same(row[name], wanted[name]), (name, row[name], wanted[name])


@pytest.mark.parametrize(
    ("model", "schema", "wanted"),
    [
        ("[i for i in ids]", "x int", [(0,), (1,), (2,)]),
        ("[(i, str(i)) for i in ids]", "x long, y string", [(i, str(i)) for i in range(3)]),
        ("[[i, i / 2] for i in ids]", "x short, y double", [(i, i / 2) for i in range(3)]),
        ("[[i, i + 1] for i in ids]", "x array<int>", [([i, i + 1],) for i in range(3)]),
        ("[{'y': i, 'x': bytes(i)} for i in ids]", "x binary, y byte", [(bytes(i), i) for i in range(3)]),
        ("[None if i else 'a' for i in ids]", "x string", [("a",), (None,), (None,)]),
        ("{'x': np.array([None if i else [True, False] for i in ids] + [None], object)[:-1]}", "x array<boolean>", [([True, False],), (None,), (None,)]),
        ("np.array(ids)", "x double", [(0.0,), (1.0,), (2.0,)]),
        ("np.array(ids) > 0", "x boolean", [(False,), (True,), (True,)]),
        ("(np.array(ids), np.array(ids, '>i2')[::1].astype('i2'))", "x long, y int", [(i, i) for i in range(3)]),
        ("{'y': np.array([str(i) for i in ids]), 'x': np.array([b'%d' % i for i in ids])}", "x string, y string", [(str(i),) * 2 for i in range(3)]),
        ("np.arange(18.).reshape(6, 3)[:len(ids) * 2:2] * 0 + np.array(ids)[:, None]", "x array<float>", [([i] * 3,) for i in range(3)]),
        ("np.zeros((len(ids), 2, 2, 1), bool)", "x array<array<array<boolean>>>", [([[[False]] * 2] * 2,)] * 3),
        ("np.zeros((len(ids), 0))", "x array<float>", [([],)] * 3),
        ("np.zeros((len(ids), 2, 0))", "x array<array<float>>", [([[], []],)] * 3),
        ("[None if i else [True, False] for i in ids]", "x array<boolean>", [([True, False],), (None,), (None,)]),
        ("[[i] * i for i in ids]", "x array<float>", [([i] * i,) for i in range(3)]),
        ("[tuple('ab'[:i]) for i in ids]", "x array<string>", [([],), (["a"],), (["a", "b"],)]),
        ("[i if i else 0.5 for i in ids]", "x double", [(0.5,), (1.0,), (2.0,)]),
        ("[(i, 1.0 if i else i) for i in ids]", "x int, y long", [(0, 0), (1, 1), (2, 1)]),
        ("[{'x': [i, 0.5, None], 'y': None if i else 'a'} for i in ids]", "y string, x array<double>",
         [(None if i else "a", [i, 0.5, None]) for i in range(3)]),
        ("[{'x': [[i] * i, None]} for i in ids]", "x array<array<int>>", [([[i] * i, None],) for i in range(3)]),
        ("[{'x': [None]} for i in ids]", "x array<string>", [([None],)] * 3),
        ("[{'x': np.ones((i, 2 - i))} for i in ids]", "x array<array<float>>", [([[1.0] * (2 - i)] * i,) for i in range(3)]),
        ("{'x': np.array([[0], None, [1, 2.5]], object)[ids]}", "x array<double>", [([0.0],), (None,), ([1.0, 2.5],)]),
        ("[[np.float32(i), 0.5, np.int8(2)] for i in ids]", "x array<double>", [([i, 0.5, 2.0],) for i in range(3)]),
        ("[np.matrix([[i, 1]]) for i in ids]", "x array<array<int>>", [([[i, 1]],) for i in range(3)]),
        ("np.array(ids, '>i8')", "x long", [(i,) for i in range(3)]),
        ("np.ma.masked_array(np.array(ids) / 2, [i == 1 for i in ids])", "x double", [(0.0,), (None,), (1.0,)]),
        ("[Level(i + 1) for Level in [enum.IntEnum('Level', 'A B C')] for i in ids]", "x int", [(i + 1,) for i in range(3)]),
        ("[Odd(str(i), i) for Odd in [collections.namedtuple('Odd', 'y x')] for i in ids]", "x int, y string", [(i, str(i)) for i in range(3)]),
        ("[Odd(str(i), [i]) for Odd in [dataclasses.make_dataclass('Odd', ['y', 'x'])] for i in ids]", "x array<int>, y string",
         [([i], str(i)) for i in range(3)]),
    ],
)
def test_forms_of_results(spark, models, model, schema, wanted):
    cluster = models("rows", f"lambda b: (lambda ids: {model})([row.id for row in b])")
    assert cluster.inference(spark.range(0, 3, 1, 1), schema).collect() == wanted


@pytest.mark.parametrize(
    ("model", "schema", "wanted"),
    [
        ("[Row(x=i, y=None) for i in ids]", "x long, y date", [(i, None) for i in range(3)]),
        ("[decimal.Decimal(i) / 4 for i in ids]", "x decimal(5,2)", [(decimal.Decimal(i) / 4,) for i in range(3)]),
        ("[{'x': {'a': i}, 'y': (i, 'b')} if i else {'y': (0, 'b'), 'x': {}} for i in ids]", "x map<string,int>, y struct<n: int, s: string>",
         [({"a": i} if i else {}, (i, "b")) for i in range(3)]),
        ("[datetime.datetime(2024, 7, 1, i) for i in ids]", "x timestamp", [(datetime.datetime(2024, 7, 1, i),) for i in range(3)]),
        ("np.array([None, 'a', b'c'], object)[ids]", "x string", [(None,), ("a",), ("c",)]),
        ("np.array(ids).astype('M8[D]')", "x date", [(datetime.date(1970, 1, 1 + i),) for i in range(3)]),
        ("np.array(ids).astype('M8[D]')[:, None].repeat(2, 1)", "x array<date>", [([datetime.date(1970, 1, 1 + i)] * 2,) for i in range(3)]),
        ("np.array(['NaT', '2024-01-01', '2024-01-02'], 'M8[ms]')[ids]", "x timestamp_ntz", [(None,)] + [(datetime.datetime(2024, 1, i),) for i in (1, 2)]),
        ("[{'x': i, 'y': 1} if i else (0, 1) for i in ids]", "x long, y long", [(i, 1) for i in range(3)]),
        ("[dataclasses.make_dataclass('Odd', ['y', 'x'])(1, i) for i in ids]", "x long, y long", [(i, 1) for i in range(3)]),
        ("[{'x': Pair(i, 'b')} for Pair in [collections.namedtuple('Pair', 'n s')] for i in ids]", "x struct<s: string, n: int>",
         [(("b", i),) for i in range(3)]),
        ("np.array(ids).astype('>M8[D]')", "x date", [(datetime.date(1970, 1, 1 + i),) for i in range(3)]),
    ],
)
def test_forms_that_only_python_reads(spark, running, model, schema, wanted):
    cluster = running.cluster("rows", f"lambda b: (lambda ids: {model})([row.id for row in b])")
    assert cluster.inference(spark.range(0, 3, 1, 1), schema, via="arrow").collect() == wanted
    with pytest.raises(Exception, match='via="arrow"'):
        cluster.inference(spark.range(0, 3, 1, 1), schema, via="jvm").collect()


MISFITS = pytest.mark.parametrize(
    ("model", "schema", "words"),
    [
        ("[i / 2 for i in ids]", "half int", "result column 'half': double cannot be cast to int without loss: .*truncated"),
        ("[i + 2**40 for i in ids]", "big int", "result column 'big': bigint cannot be cast to int without"),
        ("['a' for i in ids]", "number double", "result column 'number': string cannot be cast to double"),
        ("np.zeros((len(ids), 2))", "x double", "result column 'x': array<double> cannot be cast to double"),
        ("np.zeros((len(ids), 2, 2))", "x array<double>", "result column 'x': array<array<double>> cannot be cast to array<double>"),
        ("np.zeros(len(ids), 'c8')", "x double", "result column 'x': complex numbers cannot be cast"),
        ("[(i, i) for i in ids]", "x long", "a result has 2 columns, output_schema 1: 'x'"),
        ("[i for i in ids]", "x long, y long", "a result has 1 columns, output_schema 2: 'x', 'y'"),
        ("[{'x': i} for i in ids]", "x long, y long", "a result has no column 'y', which output_schema has; it has 'x'"),
        ("{'x': np.array(ids), 'z': np.array(ids)}", "x long", "a result has a column 'z', which output_schema has not; that has 'x'"),
        ("[None for i in ids]", "x long not null", "result column 'x' has a null, though output_schema says NOT NULL"),
    ],
)


@MISFITS
def test_results_that_do_not_fit(spark, running, model, schema, words):
    cluster = running.cluster("rows", f"lambda b: (lambda ids: {model})([row.id for row in b])")
    with pytest.raises(Exception, match=words):
        cluster.inference(spark.range(0, 3, 1, 1), schema, via="jvm").collect()


def test_a_result_that_does_not_fit(spark, models):
    cluster = models("rows", "lambda b: [row.id / 2 for row in b]")
    with pytest.raises(Exception, match="result column 'half': double cannot be cast to int without loss: .*truncated"):
        cluster.inference(spark.range(0, 3, 1, 1), "half int").collect()


@MISFITS
def test_results_that_do_not_fit_a_column_of_arrow(alone, model, schema, words):
    with pytest.raises(_tfos.Error, match=words):
        alone(model, schema)


@pytest.mark.parametrize(
    ("model", "schema", "words"),
    [
        ("[decimal.Decimal('1.23')] * len(ids)", "x decimal(4,1)", "result column 'x': Python objects of type Decimal cannot be cast"),
        ("[object()] * len(ids)", "x long", "result column 'x': Python objects of type object"),
        ("[object()] * len(ids)", "x struct<a: int>", "result column 'x': Python objects of type object.*a struct is a dictionary, a Row"),
    ],
)
def test_objects_that_do_not_fit(alone, model, schema, words):
    with pytest.raises(_tfos.Error, match=words):
        alone(model, schema)


@pytest.mark.parametrize("model", [
    "[Vectors.dense([i, 0.5]) if i else Vectors.sparse(2, {1: 0.5}) for i in ids]",
    "[{'w': Vectors.dense([i, 0.5])} for i in ids]",
    "np.array([[i, 0.5] for i in ids], 'f4')",
])
def test_vectors(spark, running, model):
    """Dense and sparse ones, kept and as results; arrays become dense ones."""
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql.types import LongType, StructField, StructType

    fed = StructType([StructField("id", LongType()), StructField("v", VectorUDT())])
    result = StructType([StructField("w", VectorUDT())])
    kept = [Vectors.sparse(4, {1: 3.0, 3: -1.0}), None, Vectors.dense([1.5])]
    frame = spark.createDataFrame(list(enumerate(kept)), fed).coalesce(1)
    cluster = running.cluster("rows", f"lambda b: (lambda ids: {model})([row.id for row in b])")
    rows = cluster.inference(frame, result, keep="v", columns="id").collect()
    assert [row.v for row in rows] == kept and [type(row.v) for row in rows] == [type(vector) for vector in kept]
    assert [row.w.toArray().tolist() for row in rows] == [[i, 0.5] for i in range(3)]


def test_arrays_in_an_rdd(spark, running):
    def infer(model):
        return running.cluster("rows", f"lambda b: {model}").inference(spark.sparkContext.parallelize(range(3), 1)).collect()

    assert same(infer("np.array(b) / 2"), [np.float64(i / 2) for i in range(3)])
    assert same(infer("np.stack([b, b], 1)"), [np.array([i, i]) for i in range(3)])
    assert same(infer("(np.array(b, 'f4'), np.array(list(map(str, b))))"), [(np.float32(i), str(i)) for i in range(3)])
    assert same(infer("{'x': np.array(b) > 1}"), [{"x": np.bool_(i > 1)} for i in range(3)])
    assert infer("(1, 2, 3)") == [1, 2, 3]  # a tuple of no arrays has results


@pytest.mark.long
def test_s72_arrays_that_spark_has_pickled(spark, running):
    context = spark.sparkContext
    arrays = [np.arange(6, dtype="f4").reshape(2, 3) + i for i in range(4)]
    shared = context.broadcast(arrays)
    ways = [context.parallelize(arrays, 1), context.parallelize(arrays, 1).cache(), context.parallelize(arrays, 2).repartition(1),
            context.range(4, numSlices=1).map(lambda i: shared.value[i])]
    for rows in ways:
        found = running.cluster("arrays", "lambda b: [(b.dtype.name, b.shape[1:])] * len(b)").inference(rows).collect()
        assert found == [("float32", (2, 3))] * 4
        doubled = running.cluster("arrays", "lambda b: b * 2").inference(rows).collect()
        assert sorted(array.sum() for array in doubled) == [30.0, 42.0, 54.0, 66.0] and {array.dtype.name for array in doubled} == {"float32"}


def test_s83_classes_of_the_drivers_main(spark, running):
    """What only the driver's program has is carried both ways, and is the same class there again."""
    made = of_main({"Odd": collections.namedtuple("Odd", "y x"), "Data": dataclasses.make_dataclass("Data", ["y", "x"]),
                    "Mood": enum.Enum("Mood", "GOOD BAD"), "Level": enum.IntEnum("Level", "LOW HIGH")})
    Odd, Data, Mood, Level = (made[name] for name in ("Odd", "Data", "Mood", "Level"))
    for rows in ([Odd(Mood.GOOD, i) for i in range(7)], [Data(Level.HIGH, [i, 0.5]) for i in range(7)], [Mood.BAD, Level.LOW] * 3,
                 [(Odd(1, 2), Data(Odd(3, 4), Mood.GOOD))] * 3):
        found = running.cluster("rows", "lambda b: b").inference(spark.sparkContext.parallelize(rows, 1)).collect()
        assert found == rows and [type(row) for row in found] == [type(row) for row in rows]
    summed = running.cluster("arrays", "lambda b: b['x'].sum(1) + b['y']").inference(
        spark.sparkContext.parallelize([Data(Level.HIGH, [i, 0.5]) for i in range(3)], 1)).collect()
    assert summed == [2.5, 3.5, 4.5]


# -- what is refused before any task starts


def test_what_is_refused(spark, models, via):
    cluster = models("rows", "lambda b: [1 for _ in b]")
    frame = spark.range(3).selectExpr("id", "make_interval(1) as span", "id as Other", "null as nothing")
    wrong = [
        (dict(output_schema=None), ValueError, "needs output_schema"),
        (dict(output_schema="array<int>"), ValueError, "output_schema must be a StructType"),
        (dict(output_schema="id long", keep="id"), ValueError, "keep and output_schema both have a column 'id'"),
        (dict(output_schema="other long", keep="Other"), ValueError, "keep and output_schema both have a column 'other'"),
        (dict(output_schema="x long, X long"), ValueError, "output_schema has twice a column 'X'"),
        (dict(keep=["no"]), ValueError, "keep: there is no column 'no'; the DataFrame has 'id', 'span', 'Other', 'nothing'"),
        (dict(keep=["id", "id"]), ValueError, "keep: 'id' is there twice"),
        (dict(columns=["no"]), ValueError, "columns: there is no column 'no'"),
        (dict(columns=[]), ValueError, "columns: there is no column"),
        (dict(columns=["nothing"]), _tfos.UnsupportedError, "column nothing: the type void cannot be fed"),
        (dict(qname="nothing"), ValueError, "unknown queue .nothing."),
    ]
    wrong += [
        (dict(columns=["span"]), ValueError, "columns: column 'span': the type interval cannot go through Arrow"),
        (dict(keep="span"), ValueError, "keep: column 'span': the type interval cannot go through Arrow"),
        (dict(output_schema="x interval"), ValueError, "output_schema: column 'x': the type interval cannot go through Arrow"),
        (dict(via="wire"), ValueError, "via must be None, 'jvm' or 'arrow', not 'wire'"),
    ] if via == "arrow" else [
        (dict(output_schema="x interval"), _tfos.UnsupportedError, "column 'x': results of its type, interval, are made by Python: inference.via=.arrow"),
    ]
    for options, error, words in wrong:
        with pytest.raises(error, match=words):
            cluster.inference(frame, **{"output_schema": "x long", "columns": ["id"], **options})
    with pytest.raises(ValueError, match="no streaming DataFrame"):
        cluster.inference(spark.readStream.format("rate").load(), "x long")
    assert cluster.inference(frame, "x long", columns="id").collect() == [(1,)] * 3


def test_what_an_rdd_cannot_have(spark, running):
    with pytest.raises(ValueError, match="are for DataFrames"):
        running.cluster("rows", "lambda b: [1 for _ in b]").inference(spark.sparkContext.parallelize([1]), keep="x")


# -- failures, each with a cluster of its own


@pytest.mark.long
def test_s17_a_result_too_few(sc, spark, via):
    def short(args, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            arrays = feed.next_arrays(100)
            if arrays:
                feed.batch_results(arrays["id"][min(1, len(arrays["id"]) - 1):])

    with pytest.raises(Exception) as caught:
        with TFCluster.run(sc, short, None, 1, 0, input_mode=FEED) as cluster:
            assert cluster.inference(spark.range(0, 1, 1, 1), "x long", via=via).collect() == [(0,)]  # the trainer runs
            cluster.inference(spark.range(0, 10, 1, 1), "x long", feed_timeout=2, via=via).collect()
    words = str(caught.value)
    assert "partition 0" in words and "10 rows" in words and "9 results" in words


def test_a_trainer_that_dies(sc, spark, via):
    def die(args, ctx):
        import os

        feed = ctx.get_data_feed(train_mode=False)
        feed.batch_results(feed.next_arrays(5)["id"])
        os._exit(3)

    with pytest.raises(Exception, match="exit status 3"):
        with TFCluster.run(sc, die, None, 1, 0, input_mode=FEED) as cluster:
            cluster.inference(spark.range(0, 100_000, 1, 2), "x long", feed_timeout=60, via=via).collect()


def test_training_and_inference_in_turn(sc, spark):
    def learn(args, ctx):
        from tensorflowonspark import TFNode

        feed, total = TFNode.DataFeed(ctx.mgr, False), 0
        for _ in range(2):
            for _ in range(4):
                total += int(feed.next_arrays(25)["id"].sum())
            for _ in range(4):
                ids = feed.next_arrays(5)["id"]
                feed.batch_results({"x": ids + total})

    with TFCluster.run(sc, learn, None, 1, 0, input_mode=FEED) as cluster:
        total = 0
        for _ in range(2):
            cluster.train(spark.range(0, 100, 1, 1), 1)
            total += sum(range(100))
            assert cluster.inference(spark.range(0, 20, 1, 1), "x long").collect() == [(i + total,) for i in range(20)]


def test_a_tensorflow_model(sc, spark):
    pytest.importorskip("tensorflow")

    def predict(args, ctx):
        import tensorflow as tf

        weights = tf.constant([[1.0], [2.0], [3.0]])
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            arrays = feed.next_arrays(64)
            if arrays:
                scores = tf.constant(arrays["x"]) @ weights
                feed.batch_results({"score": scores[:, 0], "pair": tf.concat([scores, -scores], 1), "name": tf.strings.as_string(arrays["id"])})

    frame = spark.range(0, 1000, 1, 4).selectExpr("id", "array_repeat(float(id), 3) as x")
    with TFCluster.run(sc, predict, None, 2, 0, input_mode=FEED) as cluster:
        rows = cluster.inference(frame, "score double, pair array<float>, name string", keep="id").collect()
    assert rows == [(i, 6.0 * i, [6.0 * i, -6.0 * i], str(i)) for i in range(1000)]

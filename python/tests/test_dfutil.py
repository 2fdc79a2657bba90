# SPDX-License-Identifier: Apache-2.0
"""dfutil: DataFrames to Examples and back by TensorFlowOnSpark's names, checked against TensorFlow."""

import gc
import glob

import pytest

from test_frame_tasks import spark  # noqa: F401

tf = pytest.importorskip("tensorflow")
pytest.importorskip("pyarrow")

from tensorflowonspark import dfutil  # noqa: E402

SCHEMA = ("yes boolean, small int, large bigint, single float, wide double, text string, raw binary, "
          "ints array<int>, longs array<bigint>, floats array<float>, doubles array<double>, nothing bigint")
ROWS = [
    (True, 1, 2**40, 1.5, 2.25, "eins", bytearray(b"\x00\xff"), [1, 2], [2**40, -1], [0.5, 1.5], [0.25, 3.0], None),
    (False, -1, -2**40, -1.5, 0.1, "zwei ä", bytearray(b"ab"), [3, 4], [5, 6], [2.5, 3.5], [1.0, 2.0], 7),
]


def examples_in(folder):
    records = tf.data.TFRecordDataset(sorted(glob.glob(f"{folder}/part-*")))
    return [tf.train.Example.FromString(record.numpy()) for record in records]


def values_of(example):
    kinds = {name: feature.WhichOneof("kind") for name, feature in example.features.feature.items()}
    return {name: list(getattr(example.features.feature[name], kind).value) for name, kind in kinds.items()}


@pytest.fixture(scope="module")
def frame(spark):  # noqa: F811
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1)


@pytest.mark.long
def test_s81_several_paths_in_one_text(spark, tmp_path):  # noqa: F811
    """As Hadoop's formats take them, by which TensorFlowOnSpark has read; what is there under exactly that name is meant."""
    names = ["a", "b", "a,b", "c[1]", "c1", "d,e,f", "{x,y}", "x", "y", "p-1", "p-2", "_SUCCESS"]
    for number, name in enumerate(names):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"id": feature})).SerializeToString())
    expected = {
        "DIR/a": [0], "DIR/a,DIR/b": [0, 1], "DIR/a,b": [2], "DIR/a,DIR/c[1]": [0, 3], "DIR/c[1]": [3], "DIR/c[12]": [4], "DIR/{x,y}": [6],
        "DIR/x,DIR/d,e,f,DIR/y": [5, 7, 8], "DIR/{a,b}": [0, 1], "DIR/{p-1,x},file://DIR/p-*": [7, 9, 9, 10], "DIR/a,DIR/_SUCCESS,DIR/b": [0, 1],
    }
    for text, numbers in expected.items():
        loaded = dfutil.loadTFRecords(spark.sparkContext, text.replace("DIR", str(tmp_path)))
        assert sorted(row.id for row in loaded.collect()) == numbers, text
    assert dfutil.loadedDF[loaded] == text.replace("DIR", str(tmp_path))
    with pytest.raises(Exception, match="Path does not exist.*nothing"):
        dfutil.loadTFRecords(spark.sparkContext, f"{tmp_path}/a,{tmp_path}/nothing")


@pytest.mark.long
def test_s78_that_very_folder(spark, tmp_path):  # noqa: F811
    for number, name in enumerate(["a[1]", "a1", "a,b", "a", "{c,d}", "a%20b", "a#b"]):
        dfutil.saveAsTFRecords(spark.range(number, number + 1, 1, 1), f"{tmp_path}/{name}")
        assert dfutil.loadTFRecords(spark, f"{tmp_path}/{name}").first() == (number,)
        assert dfutil.loadTFRecords(spark, f"file://{tmp_path}/{name}").first() == (number,)
    dfutil.saveAsTFRecords(spark.range(7, 8, 1, 1), tmp_path / "path")
    frame = dfutil.loadTFRecords(spark, tmp_path / "path")
    assert frame.first() == (7,) and dfutil.loadedDF[frame] == f"{tmp_path}/path"


def test_save_and_load(spark, frame, tmp_path):  # noqa: F811
    dfutil.saveAsTFRecords(frame, f"{tmp_path}/out")
    first, second = map(values_of, examples_in(f"{tmp_path}/out"))
    assert first["large"] == [2**40] and first["text"] == [b"eins"] and first["raw"] == [b"\x00\xff"] and first["yes"] == [1]
    assert first["doubles"] == [0.25, 3.0] and "nothing" not in first and second["nothing"] == [7]
    loaded = dfutil.loadTFRecords(spark.sparkContext, f"{tmp_path}/out", binary_features=["raw"])
    assert dfutil.isLoadedDF(loaded) and not dfutil.isLoadedDF(frame) and not dfutil.isLoadedDF(loaded.select("text"))
    assert loaded.columns == sorted(frame.columns)
    assert dict(loaded.dtypes) == {
        "yes": "bigint", "small": "bigint", "large": "bigint", "single": "double", "wide": "double", "text": "string", "raw": "binary",
        "ints": "array<bigint>", "longs": "array<bigint>", "floats": "array<double>", "doubles": "array<double>", "nothing": "bigint"}
    for row, (want, _) in zip(loaded.collect(), ((dict(zip(frame.columns, values)), None) for values in ROWS)):
        found = row.asDict()
        assert found.pop("wide") == pytest.approx(want.pop("wide"), rel=1e-7)  # rounded to float
        assert found == want
    assert dfutil.loadTFRecords(spark, f"{tmp_path}/out").schema["raw"].dataType.typeName() == "binary"  # its bytes are no UTF-8
    with pytest.raises(Exception, match="already exists|PATH_ALREADY_EXISTS"):
        dfutil.saveAsTFRecords(frame, f"{tmp_path}/out")


def test_loaded_frames_are_not_kept(spark, frame, tmp_path):  # noqa: F811
    dfutil.saveAsTFRecords(frame.select("small"), f"{tmp_path}/out")
    loaded = dfutil.loadTFRecords(spark.sparkContext, f"{tmp_path}/out")
    assert dfutil.loadedDF[loaded] == f"{tmp_path}/out"
    del loaded
    gc.collect()
    assert not dfutil.loadedDF


def test_a_type_that_no_example_holds_is_refused_by_name(spark, tmp_path):  # noqa: F811
    frame = spark.sql("select map('a', 1) as pairs, 1 as one")  # noqa: F811
    with pytest.raises(Exception, match="pairs"):
        dfutil.saveAsTFRecords(frame, f"{tmp_path}/out")
    with pytest.raises(ValueError, match="'pairs': the type map<string,int>"):
        dfutil.toTFExample(frame.dtypes)
    with pytest.raises(ValueError, match="'m': the type array<array<int>> is not for Examples; .*recordType=SequenceExample"):  # S95
        dfutil.toTFExample([("m", "array<array<int>>")])


def test_rows_to_examples_and_back(frame):
    pairs = frame.rdd.mapPartitions(dfutil.toTFExample(frame.dtypes)).collect()
    assert all(isinstance(record, bytearray) and key is None for record, key in pairs)
    examples = [tf.train.Example.FromString(bytes(record)) for record, _ in pairs]
    assert values_of(examples[0])["longs"] == [2**40, -1] and values_of(examples[1])["text"] == ["zwei ä".encode()]
    first, second = dfutil.fromTFExample(iter(pairs), ["raw"])
    assert list(first.asDict()) == sorted(frame.columns)
    assert first.raw == bytearray(b"\x00\xff") and first.nothing is None and second.nothing == 7 and second.text == "zwei ä"
    assert second.ints == [3, 4] and second.single == -1.5 and first.yes == 1


def test_s94_rows_with_doubles_to_examples_warn_once():
    from pyspark.sql import Row

    encode = dfutil.toTFExample([("x", "double"), ("f", "float"), ("many", "array<double>")])
    with pytest.warns(UserWarning, match="doubles were rounded to float, .*: column x, many\\. .*schemaMode=sidecar") as told:
        pairs = list(encode(Row(x=1.1 * i, f=1.1, many=[2.2]) for i in range(3000)))
    assert len(pairs) == 3000 and len({str(one.message) for one in told}) == 1
    assert values_of(tf.train.Example.FromString(bytes(pairs[1][0])))["x"] == [pytest.approx(1.1)]


def test_a_feature_is_a_list_in_all_rows_or_in_none():
    def record(*values):
        feature = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        return tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString(), None

    rows = dfutil.fromTFExample([record(1), record(2, 3), record()])
    assert [row.n for row in rows] == [[1], [2, 3], []]
    assert dfutil.fromTFExample([]) == []


def test_schema_of_one_example():
    example = tf.train.Example()
    feature = example.features.feature
    feature["b"].int64_list.value.append(1)
    feature["a"].float_list.value.extend([1.0, 2.0])
    feature["c"].bytes_list.value.append(b"text")
    feature["d"].bytes_list.value.append(b"raw")
    feature["e"].int64_list.SetInParent()
    schema = dfutil.infer_schema(example, ["d"])
    assert schema.simpleString() == "struct<a:array<double>,b:bigint,c:string,d:binary,e:string>"

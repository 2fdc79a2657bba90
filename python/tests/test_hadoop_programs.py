# SPDX-License-Identifier: Apache-2.0
"""Programs of the TensorFlow ecosystem's Hadoop and Spark libraries, with tfos.jar in place of theirs: their example of MapReduce, their classes, the functions
for DataFrames, and the import of YouTube-8M as the connector's README has it."""

import os

import pytest

from test_spark_source import features, source_spark, spark  # noqa: F401

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.long


def test_the_example_of_mapreduce(spark, tmp_path):  # noqa: F811
    """Lines, also empty and long ones, become Examples, and are lines again."""
    lines = ["one", "", "zwei drei", "日本", "x" * 40_000, "last"]
    (tmp_path / "input.txt").write_text("".join(f"{line}\n" for line in lines))
    jvm = spark._jvm
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    arguments[0] = str(tmp_path)
    for _ in range(2):  # what is there is replaced
        jvm.org.tensorflow.hadoop.example.TFRecordFileMRExample.main(arguments)
    [part] = [path for path in (tmp_path / "output.tfr").iterdir() if path.name.startswith("part-m-")]
    records = [features(record.numpy()) for record in tf.data.TFRecordDataset(str(part))]
    assert [record["text"] for record in records] == [("bytes_list", [line.encode()]) for line in lines]
    assert [record["offset"][1][0] for record in records][:3] == [0, 4, 5]
    assert (tmp_path / "output.txt" / "part-m-00000").read_text() == (tmp_path / "input.txt").read_text()


def test_checksums_and_readers_of_streams(spark, tmp_path):  # noqa: F811
    """As programs call them that were compiled with any version of tensorflow-hadoop."""
    jvm = spark._jvm
    util, io = jvm.org.tensorflow.hadoop.util, jvm.java.io
    check = util.Crc32C()
    check.update(bytearray(b"x123456789"), 1, 8)
    check.update(ord("9"))
    assert check.getValue() == 0xE3069283 and check.getIntValue() & 0xFFFFFFFF == 0xE3069283  # the check value of CRC-32C
    masked = util.Crc32C.maskedCrc32c(bytearray(b"123456789"))
    assert check.getMaskedValue() == masked == util.Crc32C.mask(check.getIntValue()) and util.Crc32C.unmask(masked) == check.getIntValue()
    check.reset()
    assert check.getValue() == 0
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        writer.write(b"record")
    size, head = (6).to_bytes(8, "little"), (tmp_path / "a").read_bytes()[:12]
    assert int.from_bytes(head[8:], "little", signed=True) == util.Crc32C.maskedCrc32c(bytearray(size))
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "a"))
    hadoops = path.getFileSystem(jvm.org.apache.hadoop.conf.Configuration()).open(path)  # an InputStream and a DataInput
    for stream in (io.FileInputStream(str(tmp_path / "a")), io.DataInputStream(io.FileInputStream(str(tmp_path / "a"))), hadoops):
        reader = util.TFRecordReader(stream, True)
        assert bytes(reader.read()) == b"record" and reader.read() is None
    kinds = {constructor.getParameterTypes()[0].getName() for constructor in reader.getClass().getConstructors()}
    assert kinds == {"java.io.DataInput", "java.io.InputStream", "java.io.DataInputStream"}


def test_functions_that_make_records(spark, tmp_path):  # noqa: F811
    """As TensorFlow parses them, also of nulls and vectors, and the same bytes that the source writes."""
    from pyspark.ml.linalg import Vectors

    converter = spark._jvm.org.tensorflow.spark.datasources.tfrecords.udf.DataFrameTfrConverter
    functions = spark._jsparkSession.udf()
    functions.register("to_example", converter.getRowToTFRecordExampleUdf())
    functions.register("to_sequence", converter.getRowToTFRecordSequenceExampleUdf())
    rows = [(number, float(number) / 2, f"r{number}", [1.5, 2.0], Vectors.sparse(3, {1: 2.0}), bytearray(b"\xde\xad"), None if number % 2 else ["a", "b"])
            for number in range(500)]
    frame = spark.createDataFrame(rows, _schema())
    made = [bytes(row.record) for row in frame.repartition(2).selectExpr("i", "to_example(struct(*)) AS record").orderBy("i").collect()]
    found = [features(record) for record in made]
    assert found[0] == {"i": ("int64_list", [0]), "d": ("float_list", [0.0]), "s": ("bytes_list", [b"r0"]), "a": ("float_list", [1.5, 2.0]),
                        "v": ("float_list", [0.0, 2.0, 0.0]), "b": ("bytes_list", [b"\xde\xad"]), "n": ("bytes_list", [b"a", b"b"])}
    assert "n" not in found[1] and [record["i"][1] for record in found] == [[number] for number in range(500)]
    frame.coalesce(1).write.format("tfrecord").save(str(tmp_path / "written"))
    [part] = [path for path in (tmp_path / "written").iterdir() if path.name.startswith("part-")]
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(part))] == made
    column = spark._jvm.org.apache.spark.sql.functions.expr("struct(*)")  # as a program in Scala applies it
    [applied] = frame.limit(1)._jdf.select(spark._jvm.PythonUtils.toSeq([converter.getRowToTFRecordExampleUdf(column)])).collect()
    assert bytes(applied.get(0)) == made[0]
    [row] = spark.sql("SELECT to_sequence(named_struct('id', 10, 'l', array(array(3L, 5L), array(-8L)))) AS record, to_example(NULL) AS none").collect()
    sequence = tf.train.SequenceExample.FromString(bytes(row.record))
    assert sequence.context.feature["id"].int64_list.value[:] == [10] and row.none is None
    assert [list(one.int64_list.value) for one in sequence.feature_lists.feature_list["l"].feature] == [[3, 5], [-8]]
    with pytest.raises(Exception, match="column m: .*map"):
        spark.sql("SELECT to_example(struct(map('a', id) AS m)) FROM range(1)").collect()


def _schema():
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import ArrayType, DoubleType, StringType, StructType

    schema = StructType().add("i", "integer").add("d", "double").add("s", "string").add("a", ArrayType(DoubleType()))
    return schema.add("v", VectorUDT()).add("b", "binary").add("n", ArrayType(StringType()))


def test_youtube_8m(spark, tmp_path):  # noqa: F811
    """The connector's README: files of its two kinds, read by the schemas given there, written, and read again. Frames are bytes that are no text."""
    generator = tf.random.Generator.from_seed(1)
    frames = [os.urandom(1024) + b"\xff" for _ in range(5)]

    def numbers(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def data(*values):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    def floats(count):
        return tf.train.Feature(float_list=tf.train.FloatList(value=generator.normal([count]).numpy()))

    with tf.io.TFRecordWriter(str(tmp_path / "video.tfrecord")) as writer:
        for number in range(20):
            video = {"video_id": data(b"v%d" % number), "labels": numbers(*range(number + 1)), "mean_rgb": floats(1024), "mean_audio": floats(128)}
            writer.write(tf.train.Example(features=tf.train.Features(feature=video)).SerializeToString())
    with tf.io.TFRecordWriter(str(tmp_path / "frame.tfrecord")) as writer:
        lists = {name: tf.train.FeatureList(feature=[data(frame[:size]) for frame in frames]) for name, size in (("rgb", 1025), ("audio", 128))}
        context = tf.train.Features(feature={"video_id": data(b"v0"), "labels": numbers(3, 5)})
        writer.write(tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists)).SerializeToString())

    schema = "video_id string, labels array<int>, mean_rgb array<float>, mean_audio array<float>"
    videos = spark.read.format("tfrecords").schema(schema).option("recordType", "Example").load(f"file://{tmp_path}/video.tfrecord")
    videos.write.format("tfrecords").option("recordType", "Example").save(str(tmp_path / "youtube-8m-video.tfrecord"))
    again = spark.read.format("tfrecords").option("recordType", "Example").schema(schema).load(str(tmp_path / "youtube-8m-video.tfrecord"))
    assert sorted(again.collect()) == sorted(videos.collect()) and videos.count() == 20 and len(videos.first().mean_rgb) == 1024

    schema = "video_id string, labels array<int>, rgb array<array<binary>>, audio array<array<binary>>"
    source = spark.read.format("tfrecords").option("recordType", "SequenceExample")
    found = source.schema(schema).load(f"file://{tmp_path}/frame.tfrecord")
    found.write.format("tfrecords").option("recordType", "SequenceExample").save(str(tmp_path / "youtube-8m-frame.tfrecord"))
    [row] = source.schema(schema).load(str(tmp_path / "youtube-8m-frame.tfrecord")).collect()
    assert row.video_id == "v0" and row.labels == [3, 5]
    assert [[bytes(one) for one in frame] for frame in row.rgb] == [[frame] for frame in frames] and len(row.audio) == 5
    with pytest.raises(Exception, match="column rgb: bytes that are no UTF-8: read it as array<array<binary>>"):
        source.schema(schema.replace("binary", "string")).load(f"file://{tmp_path}/frame.tfrecord").collect()

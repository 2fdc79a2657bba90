# SPDX-License-Identifier: Apache-2.0
"""TFRecord files on an HDFS: by the data source, Hadoop's formats and the package's own functions."""

import os
import subprocess
import sys

import pytest

import test_hadoop_formats as formats
from hadoop_cluster import shared_server  # noqa: F401
from spark_tensorflow_distributor import MirroredStrategyRunner
from tensorflowonspark import TFCluster
from test_cluster import local
from test_spark_source import features, load, source_spark, spark  # noqa: F401

tf = pytest.importorskip("tensorflow")
pa = pytest.importorskip("pyarrow")

from tensorflowonspark import tfrecord  # noqa: E402
from tensorflowonspark.pipeline import TFModel  # noqa: E402

pytestmark = pytest.mark.long

BLOCK = 1 << 20  # the smallest that a name node takes


@pytest.fixture
def folder(server, request):
    """A folder of a test's own, which is not there yet."""
    return f"{server}/{request.node.name.replace('[', '-').rstrip(']')}"


@pytest.fixture
def disk(spark):  # noqa: F811
    return Disk(spark)


class Disk:
    """HDFS as Hadoop's own client has it."""

    def __init__(self, spark):  # noqa: F811
        self._jvm, self._conf = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()

    def _open(self, name):
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path.getFileSystem(self._conf), path

    def names(self, folder):
        """Paths below the folder, of all files, sorted."""
        system, path = self._open(folder)
        found, left = [], system.listFiles(path, True)
        while left.hasNext():
            found.append(left.next().getPath().toString())
        return sorted(found)

    def parts(self, folder):
        return [name for name in self.names(folder) if os.path.basename(name).startswith("part-")]

    def size(self, name):
        system, path = self._open(name)
        return system.getFileStatus(path).getLen()

    def get(self, name, path):
        system, source = self._open(name)
        system.copyToLocalFile(False, source, self._jvm.org.apache.hadoop.fs.Path(str(path)), True)
        return path

    def put(self, path, name):
        system, target = self._open(name)
        system.copyFromLocalFile(False, True, self._jvm.org.apache.hadoop.fs.Path(str(path)), target)


def save(frame, folder):
    frame.write.format("tfrecord").option("dfs.blocksize", BLOCK).save(folder)


def test_a_frame_and_back_in_parts(spark, disk, folder, tmp_path):  # noqa: F811
    """Each file has several blocks, and several tasks that begin in the middle of one; TensorFlow reads what is copied from there."""
    frame = spark.range(0, 40000, 1, 2).selectExpr("id", "repeat(cast(id AS string), 40) AS s", "array(id, -id) AS l")
    save(frame, folder)
    parts = disk.parts(folder)
    assert len(parts) == 2 and disk.names(folder) == sorted([f"{folder}/_SUCCESS", *parts])
    assert all(disk.size(name) > 4 * BLOCK for name in parts)
    records = tf.data.TFRecordDataset(str(disk.get(parts[0], tmp_path / "copy")))
    assert [features(record.numpy())["id"][1] for record in records.take(3)] == [[0], [1], [2]]
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(BLOCK + 12345))
    try:
        back = load(spark, folder)
        assert back.rdd.getNumPartitions() >= 8
        sums = "count(*)", "count(DISTINCT id)", "sum(id)", "sum(length(s))", "sum(l[1])", "sum(if(s = repeat(cast(id AS string), 40), 1, 0))"
        assert back.selectExpr(*sums).first() == frame.selectExpr(*sums).first()
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_partitions_codecs_and_the_schema_beside_the_data(spark, disk, folder):  # noqa: F811
    frame = spark.range(100).selectExpr("id", "id / 3D AS third", "cast(id % 2 AS int) AS k")
    for mode in ("errorifexists", "overwrite", "append"):
        frame.write.format("tfrecord").partitionBy("k").options(codec="gzip", schemaMode="sidecar").mode(mode).save(folder)
    assert f"{folder}/_tfos_schema.json" in disk.names(folder) and all(name.endswith(".gz") for name in disk.parts(folder))
    back = load(spark, folder)
    assert back.dtypes == frame.dtypes and sorted(back.collect()) == sorted(frame.collect() * 2)
    with pytest.raises(Exception, match="no such row"):
        save(frame.selectExpr("IF(id = 99, raise_error('no such row'), id) AS id"), f"{folder}-failed")
    assert not disk.parts(f"{folder}-failed")


def test_damage_is_told_by_its_uri(spark, disk, folder, tmp_path):  # noqa: F811
    save(spark.range(0, 100, 1, 1), folder)
    [part] = disk.parts(folder)
    data = bytearray(disk.get(part, tmp_path / "a").read_bytes())
    size = len(data) // 100
    data[50 * size + 14] ^= 1
    (tmp_path / "a").write_bytes(data)
    disk.put(tmp_path / "a", part)
    with pytest.raises(Exception, match=f"{part}: offset {50 * size}: the checksum of a record is wrong"):
        load(spark, folder).collect()
    assert load(spark, folder, mode="skipRecord").count() == 99


@pytest.mark.parametrize("api", ["new", "V1"])
def test_hadoop_formats(spark, disk, folder, tmp_path, api):  # noqa: F811
    records = formats.records_of(20000, sizes=(0, 1, 300))
    formats.write(spark.sparkContext.parallelize(records, 2), folder, api)
    parts = disk.parts(folder)
    copies = [disk.get(part, tmp_path / str(i)) for i, part in enumerate(parts)]
    assert len(parts) == 2 and formats.read_by_tensorflow(copies) == records
    found = formats.read(spark.sparkContext, folder, api, {formats.MAX_SPLIT: 100_000} if api == "new" else {})
    assert formats.flatten(found) == records and (len(found) > 10 or api == "V1")


def test_files_by_uri(spark, disk, folder, tmp_path):  # noqa: F811
    """By Hadoop's client in this process, whose jars are pyspark's."""
    table = pa.table({"x": list(range(50000)), "s": [f"text {i}" for i in range(50000)]})
    for name in ("a.tfrecord", "b.tfrecord.gz", "_hidden", "a.tfrecord"):  # the last time in place of the first
        tfrecord.write(f"{folder}/{name}", table)
    assert disk.names(folder) == [f"{folder}/{name}" for name in ("_hidden", "a.tfrecord", "b.tfrecord.gz")]
    assert load(spark, folder).selectExpr("count(*)", "sum(x)", "max(s)").first() == (100000, 2 * sum(range(50000)), "text 9999")
    for paths, count in ((folder, 2), (f"{folder}/*.gz", 1), (f"{folder}/a.tfrecord", 1), ([f"{folder}/a.tfrecord", f"{folder}/_hidden"], 2)):
        assert pa.Table.from_batches(tfrecord.read(paths)) == pa.concat_tables([table] * count)
    assert tfrecord.infer_schema(folder).names == ["x", "s"]
    with pytest.raises(ValueError, match="column x"):
        tfrecord.write(f"{folder}/c.tfrecord", pa.table({"x": [[1, None]]}))
    assert len(disk.names(folder)) == 3
    (tmp_path / "cut").write_bytes(disk.get(f"{folder}/a.tfrecord", tmp_path / "a").read_bytes()[:-3])
    disk.put(tmp_path / "cut", f"{folder}/a.tfrecord")
    with pytest.raises(Exception, match=f"{folder}/a.tfrecord: offset [0-9]+: the file ends within a record"):
        list(tfrecord.read(f"{folder}/a.tfrecord", table.schema))
    for missing in ("nothing", "*.none", "nothing/at/all"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            tfrecord.read(f"{folder}/{missing}")
    batches = list(tfrecord.dataset(f"{folder}/b.tfrecord.gz", table.schema, batch_size=20000))
    assert [len(batch["x"]) for batch in batches] == [20000, 20000, 10000] and batches[2]["x"][-1] == 49999


def write_a_line(name, ctx=None):
    import tensorflow

    with tensorflow.io.gfile.GFile(name, "w") as file:
        file.write("a line")


def test_functions_have_it_without_a_call(spark, disk, folder):  # noqa: F811
    TFCluster.run(spark, local(write_a_line), f"{folder}/cluster", 1, 0).shutdown()
    MirroredStrategyRunner(num_slots=1, use_gpu=False, use_custom_strategy=True).run(local(write_a_line), name=f"{folder}/distributor")
    assert disk.names(folder) == [f"{folder}/cluster", f"{folder}/distributor"]


def test_models_there(spark, disk, folder, tmp_path):  # noqa: F811
    """A SavedModel, which runs in the JVM, and a Keras file, which runs in Python."""
    subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "pipeline_models.py"), str(tmp_path)], check=True)
    for name in ("good", "scaled.keras"):
        disk.put(tmp_path / name, f"{folder}/{name}")
    frame = spark.range(100).selectExpr("id", "array(double(id), 1.0d) AS pair", "2.0d AS gain")
    result = TFModel({}).setExportDir(f"{folder}/good").setInputMapping({"pair": "x"}).setOutputMapping({"y": "y"}).setKeep(["id"]).transform(frame)
    assert "MapInArrow" not in result._jdf.queryExecution().toString()
    assert sorted(tuple(row) for row in result.collect()) == [(i, 3.0 * i + 0.5) for i in range(100)]
    keras = TFModel({}).setExportDir(f"{folder}/scaled.keras").setInputMapping({"pair": "pair", "gain": "gain"}).setOutputMapping({"scaled": "y"})
    assert sorted(row[0] for row in keras.transform(frame).collect()) == [[2.0 * i, 2.0] for i in range(100)]


def test_s78_that_very_file(disk, folder, tmp_path):
    """Where names that are cut or decoded are there too. Hadoop's own client has put them there."""
    names = ["a b", "a#b", "a?b", "a%20b", "a%b", "a[1]b", "a*b", "{a,b}", "a;b", "a,b", "a&b=c@d+e", "日本", "'\"`|^<>", "a", "ab", "axb", "a1b"]
    for number, name in enumerate(names):
        tfrecord.write(tmp_path / "a", pa.table({"x": [number]}))
        disk.put(tmp_path / "a", f"{folder}/{name}")
    for number, name in enumerate(names):
        if name == "a%20b":
            with pytest.raises(ValueError, match="give the file object"):
                tfrecord.read(f"{folder}/{name}")
            continue
        [batch] = tfrecord.read(f"{folder}/{name}")
        assert batch.column("x").to_pylist() == [number], name
        tfrecord.write(f"{folder}/{name}", pa.table({"x": [number + 100]}))
        [batch] = tfrecord.read(disk.get(f"{folder}/{name}", tmp_path / "b"))
        assert batch.column("x").to_pylist() == [number + 100], name
    assert sorted(map(os.path.basename, disk.names(folder))) == sorted(names)
    assert len(list(tfrecord.read(f"{folder}/[ab]"))) == 1


def test_uris_without_a_java_say_what_to_install():
    code = "from tensorflowonspark import tfrecord; tfrecord.read('hdfs://localhost:1/a')"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "JAVA_HOME": "/nowhere"}, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and b"UnsupportedError: hadoop: no libjvm.so is in JAVA_HOME, /nowhere" in done.stderr

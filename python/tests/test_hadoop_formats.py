# SPDX-License-Identifier: Apache-2.0
"""The Hadoop formats of tfos.jar, with Spark's RDDs and a job of MapReduce, against files of TensorFlow's and for TensorFlow."""

import bz2
import os
import random
import signal
import struct
import threading

import pytest

from conftest import wait_until
from tensorflowonspark import tfrecord

IO = "org.tensorflow.hadoop.io.TFRecordFile"
CLASSES = {"keyClass": "org.apache.hadoop.io.BytesWritable", "valueClass": "org.apache.hadoop.io.NullWritable"}
GZIP = "org.apache.hadoop.io.compress.GzipCodec"
DEFLATE = "org.apache.hadoop.io.compress.DefaultCodec"
MAX_SPLIT = "mapreduce.input.fileinputformat.split.maxsize"
SIZES = (0, 1, 100, 5000, 300_000, 3_000_000)  # below and above all buffers


@pytest.fixture(scope="module")
def hadoop(sc):
    tfrecord.add_to(sc)
    return sc


@pytest.fixture(params=["new", "V1"])
def api(request):
    return request.param


def records_of(count, seed=0, sizes=(0, 1, 17, 300)):
    """Records of every size, which hold their number where they have room for it."""
    generator = random.Random(seed)
    return [str(i).encode() + generator.randbytes(generator.choice(sizes)) for i in range(count)]


def write_by_tensorflow(path, records, compression=""):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)


def read_by_tensorflow(paths, compression=""):
    import tensorflow as tf

    return [record.numpy() for record in tf.data.TFRecordDataset([str(path) for path in paths], compression)]


def read(sc, path, api, conf=None):
    """The records of each partition."""
    conf = {key: str(value) for key, value in (conf or {}).items()}
    if api == "new":
        rdd = sc.newAPIHadoopFile(str(path), IO + "InputFormat", conf=conf, **CLASSES)
    elif not conf:
        rdd = sc.hadoopFile(str(path), IO + "InputFormatV1", **CLASSES)
    else:  # hadoopFile() forgets its conf
        rdd = sc.hadoopRDD(IO + "InputFormatV1", conf={"mapreduce.input.fileinputformat.inputdir": str(path), **conf}, **CLASSES)
    return [[bytes(key) for key, _ in part] for part in rdd.glom().collect()]


def write(rdd, path, api, codec=None):
    pairs = rdd.map(lambda record: (bytearray(record), None))
    if api == "V1":
        pairs.saveAsHadoopFile(str(path), IO + "OutputFormatV1", compressionCodecClass=codec, **CLASSES)
    else:
        key = "mapreduce.output.fileoutputformat.compress"
        conf = {key: "true", key + ".codec": codec} if codec else {}
        pairs.saveAsNewAPIHadoopFile(str(path), IO + "OutputFormat", conf=conf, **CLASSES)


def parts_of(folder):
    """The files of records in a folder of output, in order."""
    return sorted(path for path in folder.iterdir() if path.name.startswith("part-"))


def names_in(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def flatten(parts):
    return [record for part in parts for record in part]


def frame_size(record):
    return 16 + len(record)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_reads_what_tensorflow_writes(hadoop, tmp_path, api, compression):
    """Detected by the first bytes, whatever the name. Empty files have no record, and hidden ones are ignored."""
    records = records_of(3000) + [os.urandom(size) for size in SIZES]
    write_by_tensorflow(tmp_path / "a", records[:2000], compression)
    write_by_tensorflow(tmp_path / "b", [], compression)
    write_by_tensorflow(tmp_path / "c", records[2000:], compression)
    (tmp_path / "_log").write_bytes(b"no record")
    assert sorted(flatten(read(hadoop, tmp_path, api))) == sorted(records)


@pytest.mark.parametrize("codec, compression, ending", [(None, "", ""), (GZIP, "GZIP", ".gz"), (DEFLATE, "ZLIB", ".deflate")])
def test_tensorflow_reads_what_is_written(hadoop, tmp_path, api, codec, compression, ending):
    records = records_of(2000) + [os.urandom(size) for size in SIZES]
    write(hadoop.parallelize(records, 3), tmp_path / "out", api, codec)
    parts = parts_of(tmp_path / "out")
    assert len(parts) == 3 and all(path.name.endswith(f"0000{i}{ending}") for i, path in enumerate(parts))
    assert read_by_tensorflow(parts, compression) == records
    assert sorted(flatten(read(hadoop, tmp_path / "out", api))) == sorted(records)


def test_partitions_without_rows(hadoop, tmp_path, api):
    write(hadoop.parallelize([b"only"], 2), tmp_path / "out", api)
    assert read_by_tensorflow(parts_of(tmp_path / "out")) == [b"only"]
    assert flatten(read(hadoop, tmp_path / "out", api)) == [b"only"]


@pytest.mark.parametrize("split_size", [150_000, 333_333])
def test_splits_give_each_record_once_and_in_order(hadoop, tmp_path, split_size):
    """Some records are larger than a split, and leave splits without any."""
    records = records_of(5000, seed=split_size, sizes=(0, 1, 300, 2500)) + records_of(20, sizes=(200_000,)) + records_of(500)
    path = tmp_path / "large"
    write_by_tensorflow(path, records)
    parts = read(hadoop, path, "new", {MAX_SPLIT: split_size})
    assert len(parts) == -(-path.stat().st_size // split_size) or len(parts) == path.stat().st_size // split_size
    assert flatten(parts) == records
    whole = read(hadoop, path, "new", {MAX_SPLIT: split_size, "tfos.tfrecord.splittable": "false"})
    assert whole == [records]


def test_splits_of_the_older_interface(hadoop, tmp_path):
    records = records_of(5000, sizes=(0, 1, 300, 2500))
    write_by_tensorflow(tmp_path / "large", records)
    parts = read(hadoop, tmp_path / "large", "V1")
    assert len(parts) == 2 and all(parts) and flatten(parts) == records
    assert read(hadoop, tmp_path / "large", "V1", {"tfos.tfrecord.splittable": "false"}) == [records]


@pytest.mark.parametrize("flaw", ["missing", "damaged"])
def test_s77_missing_files_are_skipped_by_one_setting_and_damaged_ones_by_the_other(hadoop, tmp_path, api, flaw):
    conf = hadoop._jsc.sc().conf()
    form = IO + ("InputFormat" if api == "new" else "InputFormatV1")
    for i, (missing, corrupt) in enumerate([(False, False), (False, True), (True, False), (True, True)]):
        for j in range(3):
            write_by_tensorflow(tmp_path / f"{i}-{j}", [b"%d" % j])
        conf.set("spark.files.ignoreMissingFiles", str(missing).lower())
        conf.set("spark.files.ignoreCorruptFiles", str(corrupt).lower())
        try:
            make = hadoop.newAPIHadoopFile if api == "new" else hadoop.hadoopFile
            rdd = make(f"{tmp_path}/{i}-*", form, **CLASSES)
            assert rdd.getNumPartitions() >= 3  # which are planned now
        finally:
            conf.remove("spark.files.ignoreMissingFiles").remove("spark.files.ignoreCorruptFiles")
        if flaw == "missing":
            os.remove(tmp_path / f"{i}-1")
        else:
            (tmp_path / f"{i}-1").write_bytes(b"garbage! and more of it")
        if missing if flaw == "missing" else corrupt:
            assert sorted(bytes(key) for key, _ in rdd.collect()) == [b"0", b"2"]
        else:
            with pytest.raises(Exception, match="does not exist" if flaw == "missing" else "the checksum of a record's size is wrong"):
                rdd.collect()


def test_compressed_files_are_not_split(hadoop, tmp_path):
    """Where their names show it; all records of the others belong to the first split."""
    records = [os.urandom(1000) for _ in range(500)]
    for name in ("named.gz", "unnamed"):
        write_by_tensorflow(tmp_path / name, records, "GZIP")
    assert read(hadoop, tmp_path / "named.gz", "new", {MAX_SPLIT: 100_000}) == [records]
    parts = read(hadoop, tmp_path / "unnamed", "new", {MAX_SPLIT: 100_000})
    assert len(parts) > 4 and parts[0] == records and not any(parts[1:])


def test_other_codecs(hadoop, tmp_path, api):
    """What others have written with one of Hadoop's is read; what TensorFlow cannot read is not written."""
    records = records_of(100)
    write_by_tensorflow(tmp_path / "plain", records)
    (tmp_path / "in.bz2").write_bytes(bz2.compress((tmp_path / "plain").read_bytes()))
    assert flatten(read(hadoop, tmp_path / "in.bz2", api)) == records
    with pytest.raises(Exception, match="TensorFlow reads no TFRecord files of .*BZip2Codec; it reads those of .*GzipCodec"):
        write(hadoop.parallelize(records, 1), tmp_path / "out", api, "org.apache.hadoop.io.compress.BZip2Codec")
    assert not names_in(tmp_path / "out")


def test_s81_several_paths_in_one_text(hadoop, tmp_path, api):
    for name in ("a", "b", "c-1", "c-2", "c[1]", "c1", "_hidden", ".a.crc"):
        write_by_tensorflow(tmp_path / name, [name.encode()])
    for paths, expected in (("DIR/a,DIR/c-*", [b"a", b"c-1", b"c-2"]), ("DIR/{a,b},DIR/c1", [b"a", b"b", b"c1"]), ("DIR/c\\[1\\]", [b"c[1]"]),
                            ("DIR", [b"a", b"b", b"c-1", b"c-2", b"c1", b"c[1]"])):
        assert sorted(flatten(read(hadoop, paths.replace("DIR", str(tmp_path)), api))) == expected
    with pytest.raises(Exception, match=r"c\[1\] is there, but Hadoop takes its name for a pattern, and would read file:.*c1: put a backslash"):
        read(hadoop, f"{tmp_path}/a,{tmp_path}/c[1]", api)


def compress_by_hadoop(spark, codec, path, data):
    """Writes data by one of Hadoop's codecs."""
    jvm = spark._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    made = jvm.org.apache.hadoop.util.ReflectionUtils.newInstance(jvm.java.lang.Class.forName(f"org.apache.hadoop.io.compress.{codec}"), conf)
    out = made.createOutputStream(jvm.java.io.FileOutputStream(str(path)))
    out.write(data)
    out.close()


def test_s85_files_of_other_codecs_that_are_none(hadoop, tmp_path, api):
    """What is inside counts more than the name; what Hadoop's codecs take for an empty file is damage."""
    records = records_of(100)
    write_by_tensorflow(tmp_path / "plain", records)
    data = (tmp_path / "plain").read_bytes()
    for name in ("a.bz2", "b.lz4", "c.snappy", "d.zst", "e.xz"):
        (tmp_path / name).write_bytes(data)
    assert flatten(read(hadoop, f"{tmp_path}/?.*", api)) == 5 * records
    (tmp_path / "f.bz2").write_bytes(b"no compressed data at all")
    with pytest.raises(Exception, match="f.bz2: its name says bzip2, and it is neither that nor a TFRecord file"):
        read(hadoop, tmp_path / "f.bz2", api)
    (tmp_path / "f.lz4").write_bytes(b"no compressed data at all")
    with pytest.raises(Exception, match="f.lz4: Lz4Codec, which is for its name, cannot read it: its first block is not whole"):
        read(hadoop, tmp_path / "f.lz4", api)


def test_folders_within_folders(hadoop, tmp_path, api):
    (tmp_path / "x" / "y").mkdir(parents=True)
    write_by_tensorflow(tmp_path / "x" / "y" / "file", [b"deep"])
    write_by_tensorflow(tmp_path / "file", [b"flat"])
    parts = read(hadoop, tmp_path, api, {"mapreduce.input.fileinputformat.input.dir.recursive": "true"})
    assert sorted(flatten(parts)) == [b"deep", b"flat"]


def test_damage(hadoop, tmp_path, api):
    """By default an error with file and offset; else the records around it."""
    records = records_of(100, sizes=(50,))
    path = tmp_path / "damaged"
    write_by_tensorflow(path, records)
    offset = sum(map(frame_size, records[:40]))
    data = bytearray(path.read_bytes())
    data[offset + 15] ^= 1
    path.write_bytes(data)
    key = "tfos.tfrecord.onDamage"
    with pytest.raises(Exception, match=f"damaged: offset {offset}: the checksum of a record is wrong"):
        read(hadoop, path, api)
    assert flatten(read(hadoop, path, api, {key: "skip_record"})) == records[:40] + records[41:]
    assert flatten(read(hadoop, path, api, {key: "skip_file", MAX_SPLIT: 1000})) == records[:40]
    with pytest.raises(Exception, match="tfos.tfrecord.onDamage: expected one of error, skip_record, skip_file, not \"ignore\""):
        read(hadoop, path, api, {key: "ignore"})
    with pytest.raises(Exception, match="a record is too large: 5[12] bytes, where max_record_size is 40"):
        read(hadoop, path, api, {"tfos.tfrecord.maxRecordSize": 40})


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_file_that_was_cut(hadoop, tmp_path, api, compression):
    path = tmp_path / "cut"
    write_by_tensorflow(path, [os.urandom(1000) for _ in range(10)], compression)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(Exception, match="cut: .*(the file ends within a record|it is cut|damaged)"):
        read(hadoop, path, api)


def test_a_local_file_with_checksums_of_hadoop(hadoop, tmp_path, api):
    """Damage is reported by its offset, and can be skipped, though Hadoop's own checksum file detects it, too."""
    write(hadoop.parallelize([b"first", b"second"], 1), tmp_path / "out", api)
    [part] = parts_of(tmp_path / "out")
    assert (part.parent / f".{part.name}.crc").exists()
    data = bytearray(part.read_bytes())
    data[14] ^= 1
    part.write_bytes(data)
    with pytest.raises(Exception, match=f"{part.name}: offset 0: the checksum of a record is wrong"):
        read(hadoop, part, api)
    assert flatten(read(hadoop, part, api, {"tfos.tfrecord.onDamage": "skip_record"})) == [b"second"]


def test_keys_are_objects_of_their_own(hadoop, tmp_path):
    """A user who collects keys until all have been read, as with the original, has each record, not one of them many times."""
    write_by_tensorflow(tmp_path / "file", [b"one", b"two", b"three"])
    jvm = hadoop._jvm
    job = jvm.org.apache.hadoop.mapreduce.Job.getInstance(hadoop._jsc.hadoopConfiguration())
    jvm.org.apache.hadoop.mapreduce.lib.input.FileInputFormat.setInputPaths(job, str(tmp_path / "file"))
    form = jvm.org.tensorflow.hadoop.io.TFRecordFileInputFormat()
    context = jvm.org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl(
        job.getConfiguration(), jvm.org.apache.hadoop.mapreduce.TaskAttemptID())
    [split] = form.getSplits(job)
    reader = form.createRecordReader(split, context)
    reader.initialize(split, context)
    keys = []
    while reader.nextKeyValue():
        keys.append(reader.getCurrentKey())
        assert 0 < reader.getProgress() <= 1
    reader.close()
    reader.close()
    assert [bytes(key.copyBytes()) for key in keys] == [b"one", b"two", b"three"]


@pytest.mark.long
def test_mapreduce_without_spark(hadoop, tmp_path):
    """A job of Hadoop's own, whose counters have what was skipped."""
    jvm = hadoop._jvm
    records = records_of(1000, sizes=(50,))
    write_by_tensorflow(tmp_path / "in", records)
    data = bytearray((tmp_path / "in").read_bytes())
    data[13] ^= 1
    (tmp_path / "in").write_bytes(data)
    conf = jvm.org.apache.hadoop.conf.Configuration(hadoop._jsc.hadoopConfiguration())
    settings = {"mapreduce.framework.name": "local", "tfos.tfrecord.onDamage": "skip_record", MAX_SPLIT: "30000",
                "hadoop.tmp.dir": str(tmp_path / "tmp"), "mapreduce.output.fileoutputformat.compress": "true"}
    for key, value in settings.items():
        conf.set(key, value)
    job = jvm.org.apache.hadoop.mapreduce.Job.getInstance(conf)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    job.setInputFormatClass(loader.loadClass(IO + "InputFormat"))
    job.setOutputFormatClass(loader.loadClass(IO + "OutputFormat"))
    job.setOutputKeyClass(loader.loadClass(CLASSES["keyClass"]))
    job.setOutputValueClass(loader.loadClass(CLASSES["valueClass"]))
    job.setNumReduceTasks(0)
    jvm.org.apache.hadoop.mapreduce.lib.input.FileInputFormat.setInputPaths(job, str(tmp_path / "in"))
    jvm.org.apache.hadoop.mapreduce.lib.output.FileOutputFormat.setOutputPath(job, jvm.org.apache.hadoop.fs.Path(str(tmp_path / "out")))
    assert job.waitForCompletion(False)
    counters = job.getCounters()
    assert counters.findCounter("TFRecord", "damages").getValue() == 1
    assert counters.findCounter("TFRecord", "skipped bytes").getValue() == frame_size(records[0])
    assert len(parts_of(tmp_path / "out")) == 3
    assert read_by_tensorflow(parts_of(tmp_path / "out"), "ZLIB") == records[1:]  # the codec of mapred-default.xml


def test_a_cancelled_job_leaves_no_part(hadoop, tmp_path, api):
    """Tasks that are killed in the middle of their files."""
    flag = str(tmp_path / "begun")

    def endless(_):
        yield from [b"x" * 1000] * 3000
        open(flag, "w").close()
        while True:
            yield b"x" * 1000

    def cancel():
        wait_until(lambda: os.path.exists(flag) and names_in(tmp_path / "out"), 60, "a file that is being written")
        hadoop.cancelJobGroup("endless")

    thread = threading.Thread(target=cancel)
    thread.start()
    hadoop.setJobGroup("endless", "writes without an end", True)
    try:
        with pytest.raises(Exception, match="cancelled"):
            write(hadoop.parallelize([0], 1).mapPartitions(endless), tmp_path / "out", api)
    finally:
        thread.join()
        hadoop._jsc.clearJobGroup()
    wait_until(lambda: not names_in(tmp_path / "out"), 30, "the removal of what was written")


@pytest.mark.long
def test_an_executor_that_dies_while_it_writes(hadoop, tmp_path, api):
    """Its partition is written again by another, and nothing twice."""
    flag = str(tmp_path / "died")

    def write_and_die(numbers):
        for number in numbers:
            if number == 2500 and not os.path.exists(flag):
                open(flag, "w").close()
                with open(f"/proc/{os.getppid()}/stat") as stat:  # the workers' parent, and its parent: the executor
                    os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield struct.pack("<q", number) * 100

    rdd = hadoop.parallelize(range(4000), 2).mapPartitions(write_and_die)
    write(rdd, tmp_path / "out", api)
    assert os.path.exists(flag)
    parts = parts_of(tmp_path / "out")
    assert len(parts) == 2 and not (tmp_path / "out" / "_temporary").exists()
    assert read_by_tensorflow(parts) == [struct.pack("<q", number) * 100 for number in range(4000)]


def test_records_of_any_stream(hadoop, tmp_path):
    """TFRecordReader and TFRecordWriter read and write no byte beyond the record."""
    jvm = hadoop._jvm
    util = jvm.org.tensorflow.hadoop.util
    stream = jvm.java.io.ByteArrayOutputStream()
    writer = util.TFRecordWriter(jvm.java.io.DataOutputStream(stream))
    records = [b"", b"one", bytes(range(256)) * 40]
    for record in records:
        writer.write(bytearray(record))
    data = bytes(stream.toByteArray())
    (tmp_path / "file").write_bytes(data)
    assert read_by_tensorflow([tmp_path / "file"]) == records

    def open_reader(content, check=True):
        source = jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(bytearray(content)))
        return source, util.TFRecordReader(source, check)

    source, reader = open_reader(data + b"!")
    assert [bytes(reader.read()) for _ in records] == records
    assert source.readByte() == ord("!") and reader.read() is None
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    for check in (False, True):
        _, reader = open_reader(damaged, check)
        assert [bytes(reader.read()) for _ in records[:2]] == records[:2]
        if check:
            with pytest.raises(Exception, match="the checksum of a record is wrong"):
                reader.read()
        else:
            assert bytes(reader.read()) == records[2]
    with pytest.raises(Exception, match="EOFException"):
        open_reader(data[:5])[1].read()

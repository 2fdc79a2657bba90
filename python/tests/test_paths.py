# SPDX-License-Identifier: Apache-2.0
"""Names of files: the very file that is named is read and written, and of folders and patterns what Spark would read."""

import bz2
import gzip
import lzma
import os
import pathlib
import stat
import subprocess
import sys
import types

import numpy as np
import pytest

from tensorflowonspark import TFNode, TFSparkNode, _tfos, compat, files, launch
from tensorflowonspark.launch import node_executable

pa = pytest.importorskip("pyarrow")

from tensorflowonspark import tfrecord  # noqa: E402

NAMES = ["a b", "a#b", "a?b", "a%20b", "a%b", "a[1]b", "a*b", "{a,b}", "a\\*b", "a;b", "a:b", "a,b", "a&b=c@d+e", "日本", "é", "a\nb", "'\"`|^<>", " a ",
         "http:", b"a\xffb".decode(errors="surrogateescape")]
DECOYS = ["a", "b", "ab", "axb", "a1b", "a+b", "a\\", "http"]
PARTS = ["part-0", "part-1"]
HIDDEN = ["_SUCCESS", ".part-0.crc", "_tfos_schema.json", "part-2._COPYING_", ".part-3.part0123"]


def put(path, number):
    """A file of one record, written by nothing that knows about names."""
    with open(path, "wb") as file:
        tfrecord.write(file, pa.table({"x": [number]}))


def numbers(paths, **options):
    return [number for batch in tfrecord.read(paths, **options) for number in batch.column("x").to_pylist()]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """In each of two folders a file of each name, with its number in all of them."""
    found = {}
    for name in ("plain", "[a] #%20?"):
        folder = tmp_path_factory.mktemp("names") / name
        folder.mkdir()
        found.update({folder / file: number for number, file in enumerate(NAMES + DECOYS, len(found))})
    for path, number in found.items():
        put(path, number)
    return found


@pytest.fixture
def spark_folder(tmp_path):
    """What Spark leaves behind, and what it has there while it writes."""
    for number, name in enumerate(PARTS):
        put(tmp_path / name, number)
    for name in HIDDEN:
        (tmp_path / name).write_bytes(b"" if name == "_SUCCESS" else b"no records at all")
    for folder in ("_temporary/0/task", ".spark-staging-1/k=1"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part-9").write_bytes(b"half a record")
    return tmp_path


def test_s78_that_very_file_is_read(folders):
    for path, number in folders.items():
        assert numbers(path) == numbers(os.fsencode(path)) == [number], path
        for uri in (f"file://{path}", f"file:{path}", path.as_uri()):
            try:
                assert numbers(uri) == [number], uri
            except ValueError as error:
                assert "give the path without \"file:\"" in str(error) and "%20" in uri
    assert numbers(list(folders)) == list(folders.values())


def test_s78_that_very_file_is_written(tmp_path):
    for number, name in enumerate(NAMES):
        for form in ("{}", "file://{}", "file:{}"):
            place = form.format(tmp_path / name)
            if form != "{}" and "%20" in name:
                with pytest.raises(ValueError, match="/a b if it is percent-encoded, .*: give the path without \"file:\""):
                    tfrecord.write(place, pa.table({"x": [number]}))
                continue
            tfrecord.write(place, pa.table({"x": [number]}))
            assert os.listdir(tmp_path) == [name]
            assert numbers(tmp_path / name) == [number]
            os.remove(tmp_path / name)
    with pytest.raises(ValueError, match="names the host elsewhere"):
        tfrecord.write("file://elsewhere/a", pa.table({"x": [1]}))


def test_s78_by_tensorflow(folders):
    pytest.importorskip("tensorflow")
    dataset = tfrecord.dataset(list(folders), batch_size=1000)
    assert list(next(iter(dataset))["x"].numpy()) == list(folders.values())
    path = next(path for path in folders if path.name == "a#b")
    assert [list(batch["x"].numpy()) for batch in tfrecord.dataset(f"file://{path}")] == [[folders[path]]]


def test_s78_by_the_command(folders, tmp_path):
    """Its own formats, and those that it becomes Python for."""
    for path, number in list(folders.items())[: len(NAMES)]:
        shown = subprocess.run([node_executable(), "record", "cat", os.fsencode(path)], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert shown == f'{{"x":{number}}}\n', path
    counted = subprocess.run([node_executable(), "record", "count", "--json", *map(os.fsencode, folders)], check=True, stdout=subprocess.PIPE, text=True)
    assert counted.stdout.count('"records":1,') == len(folders) and "a\ufffdb" in counted.stdout
    command = os.path.join(os.path.dirname(sys.executable), "tfos")
    source, target = next(path for path in folders if path.name == "a%20b"), tmp_path / "a [1]#?%20\udcff"
    for form in ("parquet", "csv"):
        for words in ([source, f"{target}.{form}"], [f"{target}.{form}", f"{target}.tfrecord"]):
            subprocess.run([command, "record", "convert", *map(os.fsencode, words)], check=True, stderr=subprocess.PIPE)
        assert numbers(f"{target}.tfrecord") == [folders[source]]
    assert sorted(os.listdir(tmp_path)) == sorted(f"{target.name}.{end}" for end in ("csv", "parquet", "tfrecord"))


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """A bucket "b" of which pyarrow is told no name."""
    from pyarrow import fs

    heads = []

    def system(head, options, uri):
        heads.append((head, options))
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "b"

    monkeypatch.setattr(files, "_system", system)
    (tmp_path / "b").mkdir()
    return tmp_path / "b", heads


def test_s78_in_other_file_systems(remote):
    folder, heads = remote
    names = [name for name in NAMES if "\udcff" not in name]  # pyarrow's are text
    for number, name in enumerate(names):
        if "%20" in name:
            with pytest.raises(ValueError, match="give the file object"):
                tfrecord.write(f"s3://b/{name}", pa.table({"x": [number]}))
            put(folder / name, number)
        else:
            tfrecord.write(f"s3://b/{name}", pa.table({"x": [number]}))
    assert sorted(os.listdir(folder)) == sorted(names)
    for number, name in enumerate(DECOYS, len(names)):
        put(folder / name, number)
    for number, name in enumerate(names):
        if name == "a%20b":
            with pytest.raises(ValueError, match="both s3://b/a%20b and, if it is percent-encoded, s3://b/a b are there: open the one that you mean"):
                tfrecord.read(f"s3://b/{name}")
        else:
            assert numbers(f"s3://b/{name}") == [number], name
    assert set(heads) == {("s3://b", "")}
    assert [file.name for file in files.find("s3://b/[ab]")] == ["s3://b/a", "s3://b/b"]
    assert [(file.name, file.path) for file in files.find("s3://b/日*?region=x&scheme=http")] == [("s3://b/日本", "b/日本")]
    assert heads[-1] == ("s3://b", "?region=x&scheme=http")


def test_s78_options_that_pyarrow_does_not_know():
    with pytest.raises(ValueError, match=r"s3://b/a\?x=1: .*a file that has \? in its name yourself, and give the file object"):
        tfrecord.read("s3://b/a?x=1")


@pytest.mark.parametrize("default_fs, path, expected", [
    ("file:///", "/a b#c?d%20[1]", "file:///a b#c?d%20[1]"), ("file:///", "a#b", "file:///home/me/a#b"), ("file:/", "/a", "file:///a"),
    ("hdfs://n:8020/", "/a%20b", "hdfs://n:8020/a%20b"), ("s3a://bucket/", "/a", "s3a://bucket/a"), ("viewfs:///", "/a", "viewfs:///a"),
    ("hdfs://n", "gcs://b/a#b", "gcs://b/a#b"), ("hdfs://n", "file:/a", "file:///a"), ("hdfs://n", "dbfs:/a", "dbfs:///a"),
    ("hdfs://n", pathlib.Path("/a"), "hdfs://n/a"), ("file:///", "12:30/a", "file:///home/me/12:30/a"),
])  # fmt: skip
def test_s78_absolute_paths(default_fs, path, expected):
    context = TFSparkNode.TFNodeContext(defaultFS=files.before_slash(default_fs), working_dir="/home/me")
    assert context.absolute_path(path) == TFNode.hdfs_path(context, path) == expected


def test_s78_tensorboards_folder():
    for name in NAMES + ["{port}"]:
        for log_dir in (f"/logs/{name}", f"file:///logs/{name}", f"file:/logs/{name}"):
            config = launch._tensorboard_config(types.SimpleNamespace(tensorboard=True, log_dir=log_dir), 0)
            assert config["log_directory"] == config["argv"][config["argv"].index("--logdir") + 1] == f"/logs/{name}"


@pytest.mark.parametrize("name", ["a*", "a?b", "a[1]", "a\\b"])
def test_s78_folders_of_models_that_tensorflow_would_not_find(name):
    with pytest.raises(ValueError, match="TensorFlow takes . in .* for a pattern"):
        compat.export_saved_model(None, f"/tmp/{name}")


def test_s79_what_spark_leaves_is_no_data(spark_folder):
    for paths in (spark_folder, f"{spark_folder}/*", f"file://{spark_folder}/*", f"{spark_folder}/{{part,_temporary,.spark}}*", f"{spark_folder}/part*"):
        assert numbers(paths) == [0, 1], paths
    assert tfrecord.infer_schema(f"{spark_folder}/*").names == ["x"]
    with pytest.raises(FileNotFoundError, match="but hidden ones, whose names begin with _ or .: name one exactly to read it"):
        tfrecord.read(f"{spark_folder}/_*")
    put(spark_folder / "_SUCCESS", 7)  # it is read if it is named
    assert numbers(spark_folder / "_SUCCESS") == [7]
    assert numbers([spark_folder / "_SUCCESS", spark_folder]) == [7, 0, 1]
    (spark_folder / "k=1").mkdir()
    put(spark_folder / "k=1" / "part-0", 2)  # as Spark reads a folder that a pattern matches
    assert numbers(f"{spark_folder}/*") == [2, 0, 1] and numbers(spark_folder) == [0, 1] and numbers(f"{spark_folder}/*/*") == [2]
    with pytest.raises(FileNotFoundError, match="only folders: a pattern reads what is in them"):
        (spark_folder / "up").mkdir()
        (spark_folder / "k=1").rename(spark_folder / "up" / "k=1")
        (spark_folder / "up" / "_SUCCESS").touch()
        tfrecord.read(spark_folder / "up")


def test_a_file_that_is_not_there_is_python_s_error(tmp_path):
    for read in (lambda path: list(tfrecord.read(path)), tfrecord.infer_schema, lambda path: list(tfrecord.read(path, form="bytes"))):
        for path in (tmp_path / "none", f"{tmp_path}/none/", f"{tmp_path}/none*", f"file://{tmp_path}/none"):
            with pytest.raises(FileNotFoundError, match="none"):
                read(path)


def test_paths_as_people_have_them(tmp_path):
    put(tmp_path / "a", 5)
    name = str(tmp_path / "a")
    for paths in (np.str_(name), np.array(name), np.array([name]), np.array([name], object), {name}, iter([name]), [np.str_(name)], os.fsencode(name)):
        assert numbers(paths) == [5], paths
    for paths in (None, 3, [None], [3], True):
        with pytest.raises(TypeError, match=r"^paths: expected .* not \[?(None|3|True)"):
            tfrecord.read(paths)


def test_paths_as_tensorflow_has_them(tmp_path):
    tf = pytest.importorskip("tensorflow")
    put(tmp_path / "a", 5)
    name = str(tmp_path / "a")
    for paths in (tf.constant(name), tf.constant([name]), tf.data.Dataset.list_files(name), tf.io.gfile.glob(name)):
        assert numbers(paths) == [5] and [batch["x"].numpy().tolist() for batch in tfrecord.dataset(paths)] == [[5]]


def test_s79_by_tensorflow(spark_folder):
    pytest.importorskip("tensorflow")
    for paths in (str(spark_folder), f"{spark_folder}/*"):
        assert [list(batch["x"].numpy()) for batch in tfrecord.dataset(paths)] == [[0, 1]]


def test_s79_in_other_file_systems(spark_folder, remote):
    folder, _ = remote
    for name in os.listdir(spark_folder):
        if name != "b":
            os.rename(spark_folder / name, folder / name)
    assert numbers("s3://b") == numbers("s3://b/") == numbers("s3://b/*") == numbers("s3://*/part*") == [0, 1]
    with pytest.raises(FileNotFoundError, match="s3://b/_[*] but hidden ones"):
        tfrecord.read("s3://b/_*")


@pytest.mark.parametrize("words", [["FOLDER"], ["FOLDER/*"], ["*"], ["PATTERN"], ["FOLDER/part-0", "FOLDER/part-1"]])
def test_s79_by_the_command(spark_folder, words):
    """What a shell makes of FOLDER/* has each entry but those that begin with a dot; in quotes it comes as it is."""
    expanded = sorted(name for name in os.listdir(spark_folder) if name[0] != ".")
    arguments = {"FOLDER": [spark_folder], "FOLDER/*": [spark_folder / name for name in expanded], "*": expanded, "PATTERN": [f"{spark_folder}/*"]}
    arguments = [argument for word in words for argument in arguments.get(word, [word.replace("FOLDER", str(spark_folder))])]
    counted = subprocess.run([node_executable(), "record", "count", *arguments], check=True, stdout=subprocess.PIPE, text=True, cwd=spark_folder).stdout
    assert [line.partition("\t")[0] for line in counted.splitlines()] == ["1", "1", "2"], counted
    merged = subprocess.run([node_executable(), "record", "merge", *arguments, "merged"], stderr=subprocess.PIPE, text=True, cwd=spark_folder)
    assert merged.returncode == 0 and "2 records written" in merged.stderr
    is_told = "FOLDER/*" in words or "*" in words
    assert ("_SUCCESS is passed over, as Spark does: name it alone to read it" in merged.stderr) == is_told


def test_s79_the_command_reads_what_is_named(spark_folder):
    put(spark_folder / "_SUCCESS", 7)
    for words, count in ((["_SUCCESS"], 1), (["_SUCCESS", "part-0"], 2), (["./.part-0.crc"], None)):
        done = subprocess.run([node_executable(), "record", "count", *words], cwd=spark_folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == (count is None) and done.stdout.count("1\t") == (count or 0), done


@pytest.mark.parametrize("module, name", [(bz2, "bzip2"), (lzma, "xz")])
def test_s85_other_compressions(tmp_path, module, name):
    """Named by whoever reads them, and read and written through a file object that knows them."""
    path, table = tmp_path / "a", pa.table({"x": [1, 2]})
    with module.open(path, "wb") as file:
        tfrecord.write(file, table)
    for on_damage in ("error", "skip_record", "skip_file"):
        with pytest.raises(_tfos.UnsupportedError, match=f"{path}: it is compressed by {name}, and what can be read is gzip, zlib and no compression"):
            tfrecord.read(path, on_damage=on_damage)
    with module.open(path) as file:
        assert numbers(file) == [1, 2]
    done = subprocess.run([node_executable(), "record", "check", path], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and f"it is compressed by {name}" in done.stderr


def test_s85_by_tensorflow(tmp_path):
    tf = pytest.importorskip("tensorflow")
    (tmp_path / "a").write_bytes(bz2.compress(b"something"))
    with pytest.raises(tf.errors.UnimplementedError, match="/a: it is compressed by bzip2"):
        list(tfrecord.dataset(str(tmp_path / "a"), pa.schema({"x": pa.int64()})))


@pytest.mark.parametrize("ending", ["bz2", "zst", "lz4", "snappy", "xz"])
def test_s85_names_that_nobody_could_read_by(tmp_path, ending):
    """Hadoop's formats and Spark's source would take what is written for what the name says."""
    path, table = tmp_path / f"a.tfrecord.{ending}", pa.table({"x": [1]})
    with pytest.raises(_tfos.UnsupportedError, match=f"{path}: TensorFlow cannot read what its name says"):
        tfrecord.write(path, table)
    put(tmp_path / "a", 1)
    done = subprocess.run([node_executable(), "record", "merge", "a", path.name], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and f"{path.name}: TensorFlow cannot read what its name says" in done.stderr and os.listdir(tmp_path) == ["a"]
    tfrecord.write(path, table, compression="none")
    assert numbers(path) == [1]


def test_s85_a_file_object_that_compresses(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        tfrecord.write(file, pa.table({"x": [1]}))
    assert numbers(tmp_path / "a.gz") == [1]
    with open(tmp_path / "b.gz", "wb") as file:
        tfrecord.write(file, pa.table({"x": [1]}))
    assert numbers(tmp_path / "b.gz") == [1] and (tmp_path / "b.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_s89_links_and_permissions_stay(tmp_path):
    """By the package, and by the command with what it becomes Python for."""
    command = os.path.join(os.path.dirname(sys.executable), "tfos")
    source = tmp_path / "source"
    put(source, 1)
    for name in ("a.tfrecord", "a.parquet", "a.csv"):
        place, link = tmp_path / name, tmp_path / f"link-{name}"
        place.touch(0o600)
        link.symlink_to(name)
        if name == "a.tfrecord":
            tfrecord.write(link, pa.table({"x": [1]}))
            tfrecord.write(f"file://{link}", pa.table({"x": [1]}))
            assert numbers(place) == [1]
        else:
            subprocess.run([command, "record", "convert", source, link], check=True, stderr=subprocess.PIPE)
        assert link.is_symlink() and place.stat().st_size > 0 and stat.S_IMODE(place.stat().st_mode) == 0o600
    assert len(os.listdir(tmp_path)) == 7

# SPDX-License-Identifier: Apache-2.0
"""Files of this machine and of an HDFS: the same calls of TensorFlow, of the package and of ``tfos fs`` do the same on both."""

import os
import subprocess
import sys
import threading

import pytest

from hadoop_cluster import shared_server  # noqa: F401

tf = pytest.importorskip("tensorflow")
pa = pytest.importorskip("pyarrow")

from tensorflowonspark import _tfos, files, fs, tfrecord  # noqa: E402

pytestmark = pytest.mark.long
gfile = tf.io.gfile
ODD_NAMES = ["a b", "a%20b", "a#b", "a?b", "日本", "a;b"]


@pytest.fixture(params=["local", "hdfs"])
def place(request, tmp_path):
    """A folder that is there and empty."""
    if request.param == "local":
        return str(tmp_path)
    fs.register()
    folder = f"{request.getfixturevalue('server')}/{request.node.name.partition('[')[0]}"
    gfile.makedirs(folder)
    return folder


def write(name, text, mode="w"):
    with gfile.GFile(name, mode) as file:
        file.write(text)


def read(name):
    with gfile.GFile(name, "rb") as file:
        return file.read()


def test_files_and_folders(place):
    assert gfile.isdir(place) and not gfile.exists(f"{place}/a") and gfile.listdir(place) == []
    write(f"{place}/a", "one\n")
    write(f"{place}/a", "two\n", "a")
    write(f"{place}/new", "three", "a")
    assert read(f"{place}/a") == b"one\ntwo\n" and read(f"{place}/new") == b"three"
    assert gfile.stat(f"{place}/a").length == 8 and not gfile.isdir(f"{place}/a")
    gfile.mkdir(f"{place}/d")
    gfile.makedirs(f"{place}/e/f/g")
    gfile.makedirs(f"{place}/e/f")
    assert sorted(gfile.listdir(place)) == ["a", "d", "e", "new"] and gfile.listdir(f"{place}/d") == []
    assert sorted(gfile.glob(f"{place}/*e*")) == [f"{place}/e", f"{place}/new"]
    assert [(top, sorted(folders), sorted(names)) for top, folders, names in gfile.walk(place)][0] == (place, ["d", "e"], ["a", "new"])
    gfile.copy(f"{place}/a", f"{place}/d/copy")
    gfile.rename(f"{place}/a", f"{place}/d/moved")
    write(f"{place}/b", "last")
    gfile.rename(f"{place}/b", f"{place}/d/copy", overwrite=True)
    assert read(f"{place}/d/copy") == b"last" and read(f"{place}/d/moved") == b"one\ntwo\n" and not gfile.exists(f"{place}/a")
    gfile.rename(f"{place}/d", f"{place}/other")
    gfile.remove(f"{place}/other/copy")
    gfile.rmtree(f"{place}/other")
    gfile.rmtree(f"{place}/e")
    assert gfile.listdir(place) == ["new"] and gfile.exists(f"{place}/./x/..//new")


def test_what_is_refused(place):
    errors = tf.errors
    write(f"{place}/a", "a")
    gfile.makedirs(f"{place}/d/e")
    for error, call in (
        (errors.NotFoundError, lambda: read(f"{place}/none")),
        (errors.NotFoundError, lambda: gfile.stat(f"{place}/none")),
        (errors.NotFoundError, lambda: gfile.listdir(f"{place}/none")),
        (errors.NotFoundError, lambda: gfile.remove(f"{place}/none")),
        (errors.NotFoundError, lambda: gfile.rename(f"{place}/none", f"{place}/b")),
        (errors.NotFoundError, lambda: gfile.rmtree(f"{place}/none")),
        (errors.NotFoundError, lambda: gfile.mkdir(f"{place}/none/a")),
        (errors.AlreadyExistsError, lambda: gfile.rename(f"{place}/a", f"{place}/a")),
        (errors.FailedPreconditionError, lambda: read(f"{place}/d")),
        (errors.FailedPreconditionError, lambda: write(f"{place}/d", "")),
        ((errors.FailedPreconditionError, errors.NotFoundError), lambda: gfile.makedirs(f"{place}/a/b")),
    ):
        with pytest.raises(error) as info:
            call()
        # TensorFlow looks itself whether there is one to rename to, and does not name it.
        assert place in str(info.value) or place.startswith("/") or error is errors.AlreadyExistsError
    assert read(f"{place}/a") == b"a"


def test_bytes_at_places(place):
    data = os.urandom(3 << 20)
    write(f"{place}/a", data, "wb")
    with gfile.GFile(f"{place}/a", "rb") as file:
        for offset, size in ((0, 10), (1 << 20, 1 << 20), (5, 100_000), ((3 << 20) - 7, 100), (3 << 20, 1), (12, 12)):
            file.seek(offset)
            assert file.read(size) == data[offset : offset + size]
        assert file.size() == 3 << 20
    with gfile.GFile(f"{place}/b", "wb") as file:
        for begin in range(0, len(data), 300_001):
            file.write(data[begin : begin + 300_001])
        file.flush()
        assert read(f"{place}/b") == data  # while it is open
        file.write(b"end")
    assert read(f"{place}/b") == data + b"end"


def test_odd_names(place):
    for number, name in enumerate(ODD_NAMES):
        write(f"{place}/{name}", str(number))
    assert sorted(gfile.listdir(place)) == sorted(ODD_NAMES)
    assert [read(f"{place}/{name}") for name in ODD_NAMES] == [str(number).encode() for number in range(len(ODD_NAMES))]


def test_records(place):
    rows = [b"record %d" % number for number in range(5000)]
    with tf.io.TFRecordWriter(f"{place}/a.tfrecord") as writer:
        for row in rows:
            writer.write(row)
    assert [row.numpy() for row in tf.data.TFRecordDataset(gfile.glob(f"{place}/*.tfrecord"))] == rows
    table = pa.table({"x": list(range(3000))})
    tfrecord.write(f"{place}/b.tfrecord", table)
    assert pa.Table.from_batches(tfrecord.read(f"{place}/b*")) == table
    assert sum(len(batch["x"]) for batch in tfrecord.dataset(f"{place}/b.tfrecord")) == 3000
    assert sum(1 for _ in tf.data.TextLineDataset(f"{place}/a.tfrecord")) >= 1
    assert sorted(gfile.listdir(place)) == ["a.tfrecord", "b.tfrecord"]


def test_models(place):
    variable = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=variable)
    manager = tf.train.CheckpointManager(checkpoint, f"{place}/checkpoints", max_to_keep=2)
    for _ in range(3):
        manager.save()
    variable.assign([0.0, 0.0])
    checkpoint.restore(tf.train.latest_checkpoint(f"{place}/checkpoints")).assert_consumed()
    assert variable.numpy().tolist() == [1, 2] and len(gfile.glob(f"{place}/checkpoints/*.index")) == 2
    module = tf.Module()
    module.weight = tf.Variable(3.0)
    module.run = tf.function(lambda x: x * module.weight, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, f"{place}/saved")
    loaded = tf.saved_model.load(f"{place}/saved")
    assert loaded.run(tf.constant(2.0)).numpy() == 6
    with tf.summary.create_file_writer(f"{place}/events").as_default():
        tf.summary.scalar("loss", 0.5, step=1)
        tf.summary.flush()
    [events] = gfile.glob(f"{place}/events/*")
    assert len(list(tf.data.TFRecordDataset(events))) == 2


def test_keras(place):
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.save(f"{place}/m.keras")
    model.save_weights(f"{place}/m.weights.h5")
    back = keras.models.load_model(f"{place}/m.keras")
    back.load_weights(f"{place}/m.weights.h5")
    assert all((one == other).all() for one, other in zip(model.get_weights(), back.get_weights()))


def test_threads(place):
    """Each with files of its own, and all with one."""
    write(f"{place}/all", bytes(range(256)) * 1000, "wb")
    shared, wrong = gfile.GFile(f"{place}/all", "rb"), []
    assert shared.read(1) == b"\0"

    def work(number):
        write(f"{place}/{number}", str(number) * 1000)
        if read(f"{place}/{number}") != (str(number) * 1000).encode() or read(f"{place}/all")[255 + number] != (255 + number) % 256:
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(gfile.listdir(place)) == 9


def test_a_file_appears_when_it_is_whole(place):
    with _tfos.FileWriter(f"{place}/a") as writer:
        writer.write(b"some")
        assert not gfile.exists(f"{place}/a")
        writer.finish()
    assert read(f"{place}/a") == b"some"
    with _tfos.FileWriter(f"{place}/a") as writer:
        writer.write(b"other" * 1_000_000)
    assert read(f"{place}/a") == b"some" and gfile.listdir(place) == ["a"]


def test_tensorflows_files_appear_when_they_are_flushed_or_closed(server):
    fs.register()
    folder, data = f"{server}/appear", os.urandom(1 << 20)
    gfile.makedirs(folder)
    for mode in ("wb", "ab"):
        with gfile.GFile(f"{folder}/copy{mode}", mode) as file:
            file.write(data)
            assert gfile.listdir(folder) == [] == gfile.glob(f"{folder}/*")
            for pattern in (folder, f"{folder}/*", f"{folder}/.*"):
                with pytest.raises(_tfos.NotFoundError, match="but hidden ones"):
                    _tfos.find_files(pattern)
            assert f"{folder}/.copy{mode}.part" in run("fs", "ls", folder)
        assert read(f"{folder}/copy{mode}") == data
        gfile.remove(f"{folder}/copy{mode}")
    file = gfile.GFile(f"{folder}/dropped", "wb")
    file.write(data)
    del file
    assert read(f"{folder}/dropped") == data and gfile.listdir(folder) == ["dropped"]


def run(*words, status=0, **options):
    beside = os.path.join(os.path.dirname(sys.executable), "tfos")
    done = subprocess.run([beside, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def test_tfos_record(place):
    tfrecord.write(f"{place}/a.tfrecord", pa.table({"x": [1, 2, 3]}))
    assert run("record", "count", f"{place}/*.tfrecord").startswith("3\t")
    for source, target in (("a.tfrecord", "a.csv"), ("a.csv", "b.tfrecord"), ("b.tfrecord", "b.parquet"), ("b.parquet", "c.tfrecord")):
        run("record", "convert", f"{place}/{source}", f"{place}/{target}")
    assert read(f"{place}/a.csv") == b"x\n1\n2\n3\n" and read(f"{place}/c.tfrecord") == read(f"{place}/a.tfrecord")


def test_tfos_fs(place, tmp_path):
    """What tests/cli/fs.sh does not ask: it knows files of this machine only."""
    run("fs", "mkdir", "-p", f"{place}/d/e")
    run("fs", "put", "-", f"{place}/d/one", input=b"one\n")
    assert "it exists already; -f replaces it" in run("fs", "put", "-", f"{place}/d/one", input=b"", status=1)
    assert run("fs", "cat", f"{place}/d/o*") == "one\n"
    found, *lines = run("fs", "ls", f"{place}/d").splitlines()
    assert found == "Found 2 items" and [line.split()[-1] for line in lines] == [f"{place}/d/e", f"{place}/d/one"]
    assert lines[0][0] == "d" and " 4 " in lines[1]
    assert "regular file, 4 bytes" in run("fs", "stat", f"{place}/d/one")
    run("fs", "mv", f"{place}/d/one", f"{place}/d/e")
    assert run("fs", "du", "-s", place).split() == ["4", place]
    run("fs", "get", f"{place}/d", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "e" / "one").read_text() == "one\n"
    run("fs", "put", str(tmp_path / "copy"), f"{place}/back")
    assert run("fs", "cat", f"{place}/back/e/one") == "one\n"
    run("fs", "test", "-d", f"{place}/back")
    run("fs", "rm", "-r", f"{place}/back", f"{place}/d")
    run("fs", "test", "-e", f"{place}/back", status=1)
    assert f"there is nothing at {place}/none" in run("fs", "ls", f"{place}/none", status=1)


def test_a_forked_process_is_refused(server):
    files.find_hadoop()
    assert _tfos.look_at(server)[0] == 2
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _tfos.look_at(server)
            text = "none"
        except ValueError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert "this process was forked from one that has used Hadoop's files" in file.read()
    assert os.waitpid(pid, 0)[1] == 0


def test_what_a_name_node_refuses(server):
    fs.register()
    folder = f"{server}/refused"
    gfile.makedirs(folder)
    system, constants = server.cluster.getFileSystem(), server.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants
    system.setSafeMode(constants.SafeModeAction.SAFEMODE_ENTER)
    try:
        with pytest.raises(tf.errors.UnavailableError, match=f"{folder}/a: the name node is in safe mode"):
            write(f"{folder}/a", "a")
        with pytest.raises(_tfos.BusyError, match="safe mode"):
            tfrecord.write(f"{folder}/a", pa.table({"x": [1]}))
    finally:
        system.setSafeMode(constants.SafeModeAction.SAFEMODE_LEAVE)
    system.setQuota(server.jvm.org.apache.hadoop.fs.Path(folder), 2, constants.QUOTA_DONT_SET)
    write(f"{folder}/a", "a")
    with pytest.raises(tf.errors.ResourceExhaustedError, match=f"{folder}/b: the quota of names is exceeded"):
        write(f"{folder}/b", "b")
    with pytest.raises(tf.errors.UnavailableError, match="hdfs://localhost:1/a: the server does not answer"):
        read("hdfs://localhost:1/a")
    assert gfile.listdir(folder) == ["a"]


def test_signals_stay_the_programs(server):
    code = """if True:
        import faulthandler, os, signal, sys
        from tensorflowonspark import _tfos, files
        faulthandler.register(signal.SIGUSR2)
        files.find_hadoop()
        print(_tfos.look_at(sys.argv[1]))
        os.kill(os.getpid(), signal.SIGUSR2)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", code, server], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    assert done.stdout == b"(2, 0)\ninterrupted\n" and b"most recent call first" in done.stderr


def test_a_trainer_has_it_without_a_call(server):
    code = (
        "import importlib.util, sys; from tensorflowonspark import fs; fs.register_on_import(); importlib.util.find_spec('tensorflow')\n"
        "import tensorflow as tf; print(tf.io.gfile.isdir(sys.argv[1]))"
    )
    assert subprocess.run([sys.executable, "-c", code, server], stdout=subprocess.PIPE, check=True).stdout == b"True\n"

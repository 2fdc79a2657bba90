# SPDX-License-Identifier: Apache-2.0
"""An HDFS in which things fail: either nobody notices, or the error has file, host, cause and remedy; and nothing half written has a file's name.

What is tested runs in a process of its own, whose JVM reads this cluster's configuration.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import wait_until
from hadoop_cluster import Unavailable, serving

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.long

BLOCK = 1 << 20  # the smallest that a name node takes
ODD = "a b%c ü日#1"
DATA = random.Random(0).randbytes(6 * BLOCK + 12345)  # in both processes
SETTINGS = {
    "dfs.permissions.enabled": "true", "dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "500",
    "dfs.namenode.delegation.token.always-use": "true",
}
CLIENT = {"dfs.replication": "2", "dfs.blocksize": BLOCK, "dfs.client.retry.window.base": "10"}


class Cluster:
    """Three data nodes, and a client in a process of its own.

    Attributes:
        uri: of the name node.
        jvm, mini, system: the classes of the JVM, its ``MiniDFSCluster`` and the superuser's ``FileSystem``.
        environment: that of programs which use the cluster.
    """

    def __init__(self, server, conf):
        self.uri, self.jvm, self.mini = str(server), server.jvm, server.cluster
        self.environment = {**os.environ, "HADOOP_CONF_DIR": str(conf)}
        context = multiprocessing.get_context("spawn")
        self._pool = concurrent.futures.ProcessPoolExecutor(1, context, _begin, (str(conf),))

    @property
    def system(self):
        return self.mini.getFileSystem()

    def close(self):
        self._pool.shutdown()

    def start(self, function, *arguments):
        """In the client: a future."""
        return self._pool.submit(function, *arguments)

    def call(self, function, *arguments):
        return self.start(function, *arguments).result(240)

    def fails(self, function, *arguments):
        """What a call in the client raises: the class's name and the text."""
        with pytest.raises(Exception) as info:
            self.call(function, *arguments)
        return f"{type(info.value).__name__}: {info.value}"

    def folder(self, name):
        """One that is there, by its URI."""
        path = self.jvm.org.apache.hadoop.fs.Path(f"/{name}/{ODD}")
        assert self.system.mkdirs(path)
        return f"{self.uri}/{name}/{ODD}"

    def path(self, name):
        return self.jvm.org.apache.hadoop.fs.Path(name)

    def names(self, folder):
        return sorted(status.getPath().getName() for status in self.system.listStatus(self.path(folder)))

    def blocks(self, name):
        """Where the blocks of a file are, also of one that is being written: lists of addresses of data nodes."""
        located = self.system.getClient().getLocatedBlocks(name[len(self.uri):], 0, 1 << 40)
        blocks = [*located.getLocatedBlocks()]
        last = located.getLastLocatedBlock()
        if not located.isLastBlockComplete() and last is not None:
            blocks.append(last)
        return [[node.getXferAddr() for node in block.getLocations()] for block in blocks]

    @contextlib.contextmanager
    def stopped(self, nodes):
        """Without these data nodes."""
        stopped = [self.mini.stopDataNode(node) for node in nodes]
        assert all(stopped)
        try:
            yield
        finally:
            for node in stopped:
                assert self.mini.restartDataNode(node, True)
            self.mini.waitActive()

    @contextlib.contextmanager
    def hanging(self, call, name):
        """A process that does this, has said so, and waits."""
        code = f"import sys, test_hdfs_faults as faults; faults._begin(sys.argv[1]); faults.{call}"
        words = [sys.executable, "-c", code, self.environment["HADOOP_CONF_DIR"], name]
        environment = {**self.environment, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout.readline() == b"written\n"
                yield process
            finally:
                process.kill()

    def run(self, *words, status, user="", **environment):
        """``tfos fs``, as another user if one is given; its errors."""
        program = os.path.join(os.path.dirname(sys.executable), "tfos")
        more = {"HADOOP_USER_NAME": user} if user else {}
        done = subprocess.run([program, "fs", *words], env={**self.environment, **more, **environment}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, check=False, timeout=240)
        assert done.returncode == status, done.stderr.decode()
        return done.stderr.decode()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    try:
        with serving(folder, nodes=3, settings=SETTINGS) as server:
            conf = folder / "client"
            conf.mkdir()
            for file, settings in (("core", {"fs.defaultFS": server, "fs.viewfs.mounttable.default.link./here": f"{server}/"}), ("hdfs", CLIENT)):
                entries = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
                (conf / f"{file}-site.xml").write_text(f"<configuration>{entries}</configuration>")
            cluster = Cluster(server, conf)
            yield cluster
            cluster.close()
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


# ---- what the client does


def _begin(conf):
    os.environ["HADOOP_CONF_DIR"] = conf
    from tensorflowonspark import files

    files.find_hadoop()


_opened = {}


def put(name, data=DATA):
    from tensorflowonspark import _tfos

    with _tfos.FileWriter(name) as writer:
        writer.write(data)
        writer.finish()


def get(name):
    from tensorflowonspark import _tfos

    with contextlib.closing(_tfos.FileReader(name)) as reader:
        return b"".join(iter(lambda: reader.read(100_000), b""))


def open_reader(name, count):
    """The first bytes; the file stays open."""
    from tensorflowonspark import _tfos

    _opened["reader"] = _tfos.FileReader(name)
    return read_on(count)


def read_on(count=1 << 40, at=None):
    reader, data = _opened["reader"], []
    if at is not None:
        reader.seek(at)
    while count > 0 and (not data or data[-1]):
        data.append(reader.read(min(count, 100_000)))
        count -= len(data[-1])
    return b"".join(data)


def open_writer(name, data):
    from tensorflowonspark import _tfos

    _opened["writer"] = _tfos.FileWriter(name)
    write_on(data)


def write_on(data):
    _opened["writer"].write(data)


def write_off(data=b""):
    """Writes and finishes."""
    with _opened.pop("writer") as writer:
        writer.write(data)
        writer.finish()


def give_up():
    with _opened.pop("writer"):
        pass


def append(name, data):
    """By TensorFlow."""
    gfile = _gfile()
    with gfile.GFile(name, "a") as file:
        file.write(data)
    with gfile.GFile(name, "rb") as file:
        return file.read()


def write_and_hang(name, mode="a", data="begun ", flushes=True):
    with _gfile().GFile(name, mode) as file:
        file.write(data)
        if flushes:
            file.flush()
        print("written", flush=True)
        signal.pause()


def write_and_flush(name):
    """Blocks before and behind a flush."""
    gfile = _gfile()
    with gfile.GFile(name, "wb") as file:
        file.write(DATA)
        file.flush()
        with gfile.GFile(name, "rb") as reader:
            first = reader.read()
        file.write(DATA)
    with gfile.GFile(name, "rb") as reader:
        return first, reader.read()


def _gfile():
    import tensorflow as tf

    from tensorflowonspark import fs

    fs.register()
    return tf.io.gfile


def write_records(name, count):
    from tensorflowonspark import tfrecord

    tfrecord.write(name, pa.table({"x": [os.urandom(1000) for _ in range(count)]}))


# ---- data nodes


def test_data_nodes_die(cluster):
    """A read and a write continue with what is left; without any the error says so, and the reader reads on once they are back."""
    folder = cluster.folder("nodes")
    name = f"{folder}/read"
    cluster.call(put, name)
    first = cluster.blocks(name)[0]
    assert len(first) == 2 and cluster.call(open_reader, name, 10) == DATA[:10]
    cluster.call(open_writer, f"{folder}/written", DATA[: BLOCK * 3 // 2])
    [part] = [one for one in cluster.names(folder) if one.startswith(".written.part")]
    pipeline = cluster.blocks(f"{folder}/{part}")[-1]
    with cluster.stopped(pipeline[:1]):
        assert cluster.call(read_on, 2 * BLOCK) == DATA[10 : 2 * BLOCK + 10]
        cluster.call(write_off, DATA[BLOCK * 3 // 2 :])
    assert cluster.names(folder) == ["read", "written"]
    with cluster.stopped(first[:1]):
        assert cluster.call(get, f"{folder}/written") == DATA and cluster.call(get, name) == DATA
    cluster.call(open_writer, f"{folder}/lost", DATA[:BLOCK // 2])
    [part] = [one for one in cluster.names(folder) if one.startswith(".lost.part")]
    cluster.call(write_on, DATA[:BLOCK])
    with cluster.stopped(first):
        text = cluster.fails(read_on, 10, BLOCK // 2)
        assert text.startswith(f"IoError: hadoop: cannot read {name} at byte {BLOCK // 2}: no data node that is alive has a good copy"), text
        assert all(node in text for node in first) or "127.0.0.1" in text
    assert cluster.call(read_on, 10, BLOCK // 2) == DATA[BLOCK // 2 : BLOCK // 2 + 10]
    with cluster.stopped(cluster.blocks(f"{folder}/{part}")[-1]):
        text = cluster.fails(write_on, DATA)
        assert text.startswith(f"IoError: hadoop: cannot write to {folder}/lost: all data nodes that have taken a part of it have failed"), text
        text = cluster.fails(write_off)
        assert f"{folder}/lost" in text
    assert cluster.names(folder) == ["read", "written"]


def test_the_name_node_restarts(cluster):
    folder = cluster.folder("restart")
    cluster.call(put, f"{folder}/read")
    assert cluster.call(open_reader, f"{folder}/read", 10) == DATA[:10]
    cluster.call(open_writer, f"{folder}/written", DATA[: 2 * BLOCK])
    cluster.mini.shutdownNameNode(0)
    writing = cluster.start(write_off, DATA[2 * BLOCK :])
    cluster.mini.restartNameNode(0)
    writing.result(240)
    assert cluster.call(read_on) == DATA[10:] and cluster.call(get, f"{folder}/written") == DATA
    assert cluster.names(folder) == ["read", "written"]


# ---- what is refused


def test_safe_mode_quotas_and_permissions(cluster):
    folder = cluster.folder("refused")
    constants, system = cluster.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants, cluster.system
    cluster.call(put, f"{folder}/there")
    cluster.call(open_writer, f"{folder}/written", DATA[:BLOCK // 2])
    system.setSafeMode(constants.SafeModeAction.SAFEMODE_ENTER)
    try:
        text = cluster.fails(write_off, DATA)
        assert f"BusyError: hadoop: cannot write to {folder}/written: the name node is in safe mode" in text and "wait until" in text, text
        assert cluster.call(get, f"{folder}/there") == DATA
    finally:
        system.setSafeMode(constants.SafeModeAction.SAFEMODE_LEAVE)
    assert "written" not in cluster.names(folder)

    place = cluster.folder("space")
    system.setQuota(cluster.path(place), constants.QUOTA_DONT_SET, 5 * BLOCK)  # two copies
    cluster.call(put, f"{place}/small", DATA[:100])
    for function, more in ((put, ()), (write_records, (20_000,))):
        text = cluster.fails(function, f"{place}/large", *more)
        assert f"hadoop: cannot write to {place}/large: the quota of space is exceeded: delete files there" in text, text
    assert cluster.names(place) == ["small"] and cluster.call(get, f"{place}/small") == DATA[:100]
    system.setQuota(cluster.path(place), 2, constants.QUOTA_DONT_SET)
    assert f"{place}/other: the quota of names is exceeded" in cluster.fails(put, f"{place}/other", b"")

    short = f"hdfs://{folder[len(cluster.uri):]}"  # whose host is in the configuration
    text = cluster.run("put", __file__, f"{short}/alices", status=1, user="alice")
    assert f"cannot write to {folder}/alices: permission is denied" in text and "user=alice, access=WRITE" in text and "HADOOP_USER_NAME" in text, text
    system.setPermission(cluster.path(folder), cluster.jvm.org.apache.hadoop.fs.permission.FsPermission("700"))
    for words in (("cat", f"{short}/there"), ("rm", f"{short}/there"), ("mv", f"{short}/there", f"{short}/b"), ("ls", short)):
        text = cluster.run(*words, status=1, user="alice")
        assert cluster.uri in text and "permission is denied" in text and len(text.splitlines()) == 1, text
    assert "there" in cluster.names(folder) and "alices" not in cluster.names(folder)


def test_a_token_that_is_valid_and_one_that_has_expired(cluster, tmp_path):
    """Who has it is its owner, whatever the user's name."""
    folder, file = cluster.folder("token"), tmp_path / "token"
    cluster.call(put, f"{folder}/private", b"x")
    cluster.system.setPermission(cluster.path(folder), cluster.jvm.org.apache.hadoop.fs.permission.FsPermission("700"))

    def token():
        credentials = cluster.jvm.org.apache.hadoop.security.Credentials()
        [found] = cluster.system.addDelegationTokens("nobody", credentials)
        credentials.writeTokenStorageFile(cluster.path(f"file://{file}"), cluster.mini.getConfiguration(0))
        return found

    token()
    cluster.run("cat", f"{folder}/private", status=1, user="alice")
    cluster.run("cat", f"{folder}/private", status=0, user="alice", HADOOP_TOKEN_FILE_LOCATION=str(file))
    manager = cluster.mini.getNamesystem().getDelegationTokenSecretManager()
    field = manager.getClass().getSuperclass().getDeclaredField("tokenRenewInterval")
    field.setAccessible(True)
    field.setLong(manager, 1000)
    deadline = manager.getTokenExpiryTime(token().decodeIdentifier())
    wait_until(lambda: time.time() * 1000 > deadline, what="the token's end")
    text = cluster.run("ls", f"{cluster.uri}/", status=1, HADOOP_TOKEN_FILE_LOCATION=str(file))
    assert f"cannot look at {cluster.uri}/: the delegation token has expired" in text and "start the application again" in text, text


def test_a_mount_table(cluster):
    """Of ``viewfs``, in the client's core-site.xml."""
    folder = cluster.folder("mounted")
    name = f"viewfs:///here{folder[len(cluster.uri):]}/a"
    cluster.call(put, name)
    assert cluster.call(get, name) == cluster.call(get, f"{folder}/a") == DATA
    cluster.run("cat", name, status=0)
    assert f"{name}b" in cluster.run("cat", f"{name}b", status=1)


# ---- writers


def test_a_writer_that_was_killed_and_a_second_one(cluster):
    folder = cluster.folder("writers")
    name = f"{folder}/events"
    with cluster.hanging("write_and_hang(sys.argv[2])", name) as other:
        text = cluster.fails(append, name, "more")
        assert f"UnavailableError: hadoop: cannot append to {name}: another process writes it: wait until" in text, text
        other.kill()
    text = cluster.fails(append, name, "more")
    assert "another process writes it" in text and "for a minute" in text, text
    cluster.call(put, f"{folder}/whole", b"")
    cluster.mini.setLeasePeriod(1000, 3_600_000)  # of the minute

    def done():
        with contextlib.suppress(Exception):
            return cluster.call(append, name, "and ended")

    assert wait_until(done, what="the end of the lease") == b"begun and ended"
    assert cluster.names(folder) == ["events", "whole"]


def test_what_a_killed_writer_leaves(cluster):
    """A hidden file, which goes once nobody can be writing it."""
    folder = cluster.folder("killed")
    with cluster.hanging("write_and_hang(sys.argv[2], 'wb', faults.DATA, False)", f"{folder}/model.keras") as other:
        other.kill()
    [killed] = cluster.names(folder)
    assert killed.startswith(".model.keras.part")
    cluster.call(open_writer, f"{folder}/living", DATA)
    [living] = [name for name in cluster.names(folder) if name.startswith(".living.part")]
    for part in (killed, living):
        cluster.system.setTimes(cluster.path(f"{folder}/{part}"), 0, -1)  # as if it were old
    cluster.run("put", __file__, f"{folder}/a", status=0)
    assert cluster.names(folder) == sorted([killed, living, "a"])  # HDFS still waits for both
    wait_until(lambda: cluster.system.recoverLease(cluster.path(f"{folder}/{killed}")), what="the end of the lease")
    cluster.run("put", __file__, f"{folder}/b", status=0)
    assert cluster.names(folder) == sorted([killed, living, "a", "b"])  # the hour is counted from the recovery
    cluster.system.setTimes(cluster.path(f"{folder}/{killed}"), 0, -1)
    cluster.run("put", __file__, f"{folder}/c", status=0)
    assert cluster.names(folder) == [living, "a", "b", "c"]
    cluster.call(write_off)
    assert cluster.call(get, f"{folder}/living") == DATA


def test_a_file_is_written_on_under_its_name(cluster):
    folder = cluster.folder("flushed")
    assert cluster.call(write_and_flush, f"{folder}/a") == (DATA, DATA + DATA)
    assert cluster.names(folder) == ["a"]


def test_a_copy_that_is_interrupted_leaves_nothing(cluster):
    folder = cluster.folder("interrupted")
    program = os.path.join(os.path.dirname(sys.executable), "tfos")
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([program, "fs", "put", "-", f"{folder}/a"], env=cluster.environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as copy:  # which a shell's background ignores
            copy.stdin.write(DATA)
            copy.stdin.flush()
            wait_until(lambda: cluster.names(folder), what="the beginning of the copy")
            copy.send_signal(number)
            assert copy.wait(60) == -number, copy.stderr.read()
        assert cluster.names(folder) == []


# ---- blocks


def copies_of(cluster, block):
    """The files of a block in the data nodes' folders."""
    files = [cluster.mini.getBlockFile(number, block) for number in range(3)]
    return [file.getPath() for file in files if file is not None]


def damage(path):
    with open(path, "r+b") as file:
        file.write(b"damaged")


def test_blocks_that_are_damaged(cluster):
    """One copy of two is not noticed; both are, by the file's name, and so are blocks that were cut."""
    folder, data = cluster.folder("blocks"), DATA[: BLOCK // 2]
    for name in ("a", "cut"):
        cluster.call(put, f"{folder}/{name}", data)
    utilities = cluster.jvm.org.apache.hadoop.hdfs.DFSTestUtil
    block, cut = (utilities.getFirstBlock(cluster.system, cluster.path(f"{folder}/{name}")) for name in ("a", "cut"))
    first, second = copies_of(cluster, block)
    damage(first)
    for _ in range(3):  # which copy is read is by chance
        assert cluster.call(get, f"{folder}/a") == data
    damage(second)
    text = cluster.fails(get, f"{folder}/a")
    assert re.search(f"hadoop: cannot read {re.escape(folder)}/a at byte 0: .*(checksum|copy)", text), text
    for file in copies_of(cluster, cut):
        os.truncate(file, 1000)
    text = cluster.fails(get, f"{folder}/cut")
    assert re.search(f"hadoop: cannot read {re.escape(folder)}/cut at byte [0-9]+: ", text), text


# ---- TensorFlow's files


def save(place, folder):
    """A checkpoint, and then one for which there is no room; the numbers in what is restored. A SavedModel."""
    import tensorflow as tf

    _gfile()
    variable = tf.Variable(tf.zeros(100_000))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=variable), place, max_to_keep=3)
    manager.save()
    failures = []
    variable = tf.Variable(tf.random.stateless_uniform([2_000_000], [1, 2]))
    model = tf.Module()
    model.v = variable
    for call in (tf.train.CheckpointManager(tf.train.Checkpoint(v=variable), place, max_to_keep=3).save, lambda: tf.saved_model.save(model, folder)):
        try:
            call()
            failures.append("nothing")
        except tf.errors.ResourceExhaustedError as error:
            failures.append(str(error))
    back = tf.Variable(tf.ones(100_000))
    tf.train.Checkpoint(v=back).restore(tf.train.latest_checkpoint(place)).assert_consumed()
    return failures, float(tf.reduce_sum(back)), tf.saved_model.contains_saved_model(folder)


def test_checkpoints_and_models_without_room(cluster):
    folder = cluster.folder("models")
    cluster.system.setQuota(cluster.path(folder), cluster.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.QUOTA_DONT_SET, 6 * BLOCK)
    failures, total, has_model = cluster.call(save, f"{folder}/checkpoints", f"{folder}/saved")
    assert all("the quota of space is exceeded" in text and folder in text for text in failures), failures
    assert total == 0 and not has_model

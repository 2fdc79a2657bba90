# SPDX-License-Identifier: Apache-2.0
"""An HDFS of a name node and a data node: a process of its own, on loopback, of Hadoop's own jar for such clusters, which Spark fetches."""

import contextlib
import glob
import os
import subprocess

import psutil
import pytest

_JAR = "hadoop-client-minicluster"
os.environ.setdefault("HADOOP_CONF_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "hadoop_conf"))  # of the client in this process
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "build", "test-ivy")


class Unavailable(Exception):
    """The jar is not here and could not be fetched."""


class Server(str):
    """The URI of a name node, with the classes of its JVM and the ``MiniDFSCluster``."""

    jvm = cluster = None


def _launch(folder, **settings):
    """A JVM with Spark's classes and Hadoop's, which py4j talks to."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll([(name.replace("_", "."), value) for name, value in settings.items()])
    with open(folder / "hdfs.log", "ab") as log:
        return launch_gateway(conf, {"cwd": folder, "stdout": log, "stderr": subprocess.STDOUT, "stdin": subprocess.PIPE})


def _stop(gateway):
    gateway.shutdown()
    gateway.proc.stdin.close()  # what it waits for
    try:
        gateway.proc.wait(30)
    finally:
        if gateway.proc.poll() is None:
            gateway.proc.kill()
            gateway.proc.wait(10)


def _hadoop_version():
    import pyspark

    [jar] = glob.glob(os.path.join(os.path.dirname(pyspark.__file__), "jars", "hadoop-client-api-*.jar"))
    return os.path.basename(jar)[len("hadoop-client-api-"):-len(".jar")]


def _fetch(folder, version):
    """The jars that Spark's own do not have, as a class path."""
    jars = os.path.join(_FOLDER, version, "jars")
    if not glob.glob(os.path.join(jars, f"*{_JAR}-{version}.jar")):
        present = "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime,org.xerial.snappy:snappy-java"
        try:
            _stop(_launch(folder, spark_jars_packages=f"org.apache.hadoop:{_JAR}:{version}", spark_jars_excludes=present,
                          spark_jars_ivy=os.path.join(_FOLDER, version)))
        except Exception as error:
            raise Unavailable(f"org.apache.hadoop:{_JAR}:{version} could not be fetched: {error}\n{(folder / 'hdfs.log').read_text()}") from None
    return os.path.join(jars, "*")


@contextlib.contextmanager
def serving(folder):
    """A ``Server``, which keeps its files in ``folder`` and ends with the block."""
    jars = _fetch(folder, _hadoop_version())
    # On the JVM's own class path: the cluster's classes use what is private to packages of Spark's jars.
    gateway = _launch(folder, spark_driver_extraClassPath=jars, spark_driver_memory="512m")
    try:
        jvm = gateway.jvm
        jvm.org.apache.logging.log4j.core.config.Configurator.setRootLevel(jvm.org.apache.logging.log4j.Level.ERROR)
        for name, place in (("test.build.data", "data"), ("hadoop.log.dir", "log")):
            jvm.java.lang.System.setProperty(name, str(folder / place))
        conf = jvm.org.apache.hadoop.conf.Configuration()
        for name, value in (("hdfs.minidfs.basedir", folder / "dfs"), ("hadoop.tmp.dir", folder / "tmp"), ("dfs.permissions.enabled", "false")):
            conf.set(name, str(value))
        cluster = jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(conf).numDataNodes(1).build()
        cluster.waitActive()
        server = Server(cluster.getFileSystem().getUri().toString())
        server.jvm, server.cluster = jvm, cluster
        yield server
        cluster.shutdown(True)
    finally:
        _stop(gateway)
    assert not psutil.pid_exists(gateway.proc.pid) and not (folder / "dfs").exists()


@pytest.fixture(scope="module", name="server")
def shared_server(tmp_path_factory):
    """One for all tests of a module; they are skipped where it cannot be had."""
    try:
        with serving(tmp_path_factory.mktemp("hdfs")) as uri:
            yield uri
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))

# SPDX-License-Identifier: Apache-2.0
"""HDFS and YARN in a process of its own, on loopback, of Hadoop's own jar for such clusters, which Spark fetches.

The tests start it; ``make hadoop-cluster`` (this file as a program) starts one to play with.
"""

import argparse
import contextlib
import glob
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

import psutil
import pytest

_JAR = "hadoop-client-minicluster"
_ADDED = ("org.bouncycastle:bcpkix-jdk18on:1.78.1", "org.junit.jupiter:junit-jupiter-api:5.11.4")  # classes that YARN's part uses and does not name
os.environ.setdefault("HADOOP_CONF_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "hadoop_conf"))  # of the client in this process
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "build", "test-ivy")
_YARN = {
    "yarn.minicluster.fixed.ports": "true",  # those given here, all on loopback, 0 for any that is free
    "yarn.resourcemanager.hostname": "127.0.0.1",
    **{f"yarn.resourcemanager.{name}.address": "127.0.0.1:0" for name in ("scheduler", "resource-tracker", "admin", "webapp")},
    "yarn.resourcemanager.address": "127.0.0.1:0",
    "yarn.nodemanager.hostname": "127.0.0.1",
    "yarn.nodemanager.address": "127.0.0.1:0",
    "yarn.nodemanager.localizer.address": "127.0.0.1:0",
    "yarn.nodemanager.webapp.address": "127.0.0.1:0",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "49152",  # counted, not looked at: for what the guides ask of a real cluster
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.resource-types": "yarn.io/gpu",
    "yarn.nodemanager.resource-type.yarn.io/gpu": "2",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
    "yarn.scheduler.capacity.root.queues": "default,training",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.training.capacity": "50",
    "yarn.scheduler.capacity.root.training.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.default.user-limit-factor": "2",  # one user may have all of it
    "yarn.scheduler.capacity.root.training.user-limit-factor": "2",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    "yarn.log-aggregation-enable": "true",
    "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
    "yarn.nodemanager.delete.debug-delay-sec": "0",
}
# What clients must know of it.
_CLIENT_NAMES = ("fs.defaultFS", "dfs.namenode.http-address", "dfs.permissions.enabled", "yarn.log-aggregation-enable", "yarn.nodemanager.remote-app-log-dir",
                 "yarn.resource-types", "yarn.resourcemanager.hostname", "yarn.resourcemanager.address",
                 *(f"yarn.resourcemanager.{name}.address" for name in ("scheduler", "resource-tracker", "admin", "webapp")))
_COMMANDS = {
    "hdfs": {"dfs": "org.apache.hadoop.fs.FsShell"},
    "yarn": {"application": "org.apache.hadoop.yarn.client.cli.ApplicationCLI"},  # "logs" needs a jar more
}


class Unavailable(Exception):
    """The jar is not here and could not be fetched."""


class Server(str):
    """The URI of a name node.

    Attributes:
        jvm: the classes of its JVM.
        cluster: the ``MiniDFSCluster``.
        conf: the folder of the files that clients read; None without YARN.
        exports: the lines that a shell takes before it uses the cluster as user hadoop; None without YARN.
        web: the address of the resource manager's pages and REST calls; None without YARN.
    """

    jvm = cluster = conf = exports = web = None


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
    if not all(glob.glob(os.path.join(jars, f"*{name}-{number}.jar")) for _, name, number in (one.split(":") for one in (f":{_JAR}:{version}", *_ADDED))):
        present = "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime,org.xerial.snappy:snappy-java"
        packages = ",".join((f"org.apache.hadoop:{_JAR}:{version}", *_ADDED))
        try:
            _stop(_launch(folder, spark_jars_packages=packages, spark_jars_excludes=present, spark_jars_ivy=os.path.join(_FOLDER, version)))
        except Exception as error:
            raise Unavailable(f"{packages} could not be fetched: {error}\n{(folder / 'hdfs.log').read_text()}") from None
    return os.path.join(jars, "*")


def _write_commands(folder, conf):
    """Hadoop's own ``hdfs`` and ``yarn``, as far as its jars, which Spark's pip package has, go, into ``folder``; a clone has no installation."""
    folder.mkdir()
    for name, commands in _COMMANDS.items():
        cases = "".join(f"{command}) class={class_name} ;;\n" for command, class_name in commands.items())
        script = folder / name
        script.write_text(f"""#!/bin/sh
command=${{1:-}}
case "$command" in
{cases}*) echo "{name}: only {', '.join(commands)} are here" >&2; exit 2 ;;
esac
[ {name} = yarn ] || shift
exec java -cp "{conf}:$SPARK_HOME/jars/*" "$class" "$@"
""")
        script.chmod(0o755)


def _exports(folder, conf):
    """The lines that make a shell one of user hadoop on a host of the cluster."""
    import pyspark

    home, programs = os.path.dirname(pyspark.__file__), os.path.dirname(sys.executable)
    (conf / "spark-defaults.conf").write_text(f"spark.yarn.jars local:{home}/jars/*\n"  # which spares their upload
                                              "spark.yarn.appMasterEnv.SPARK_LOCAL_IP 127.0.0.1\nspark.executorEnv.SPARK_LOCAL_IP 127.0.0.1\n")
    names = {"HADOOP_CONF_DIR": conf, "SPARK_CONF_DIR": conf, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
             "HADOOP_USER_NAME": "hadoop", "USER": "hadoop"}
    paths = ":".join(shlex.quote(str(path)) for path in (folder, programs))
    return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in names.items()) + f"export PATH={paths}:$PATH\n"


def _start_yarn(jvm, conf, folder, server):
    """A resource manager and a node manager; ``folder`` gets what clients read, ``bin`` beside it what they type."""
    for name, value in _YARN.items():
        conf.set(name, value)
    yarn = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("yarn", 1, 1, 1)
    yarn.init(conf)
    yarn.start()
    if not yarn.waitForNodeManagersToConnect(60000):
        raise RuntimeError("yarn: the node manager has not come within 60 s")
    settings = yarn.getConfig()
    client = jvm.org.apache.hadoop.conf.Configuration(False)
    for name in _CLIENT_NAMES:
        client.set(name, settings.get(name))
    folder.mkdir()
    for name in ("core", "hdfs", "yarn"):
        stream = jvm.java.io.FileOutputStream(str(folder / f"{name}-site.xml"))
        client.writeXml(stream)
        stream.close()
    server.conf, server.web = folder, settings.get("yarn.resourcemanager.webapp.address")
    _write_commands(folder.parent / "bin", folder)
    server.exports = _exports(folder.parent / "bin", folder)
    return yarn


@contextlib.contextmanager
def serving(folder, yarn=False, nodes=1, settings=None):
    """A ``Server`` with so many data nodes, which keeps its files in ``folder`` and ends with the block; ``yarn``: with a resource and a node manager."""
    jars = _fetch(folder, _hadoop_version())
    # On the JVM's own class path: the cluster's classes use what is private to packages of Spark's jars.
    gateway = _launch(folder, spark_driver_extraClassPath=jars, spark_driver_memory="512m")
    try:
        jvm = gateway.jvm
        jvm.org.apache.logging.log4j.core.config.Configurator.setRootLevel(jvm.org.apache.logging.log4j.Level.ERROR)
        for name, place in (("test.build.data", "data"), ("hadoop.log.dir", "log")):
            jvm.java.lang.System.setProperty(name, str(folder / place))
        conf = jvm.org.apache.hadoop.conf.Configuration()
        places = {"hdfs.minidfs.basedir": folder / "dfs", "hadoop.tmp.dir": folder / "tmp"}
        for name, value in {**places, "dfs.permissions.enabled": "false", **(settings or {})}.items():
            conf.set(name, str(value))
        cluster = jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(conf).numDataNodes(nodes).build()
        cluster.waitActive()
        server = Server(cluster.getFileSystem().getUri().toString())
        server.jvm, server.cluster = jvm, cluster
        managers = _start_yarn(jvm, cluster.getConfiguration(0), folder / "conf", server) if yarn else None
        yield server
        if managers is not None:
            managers.stop()
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


def main():
    """Serves until it is interrupted."""
    argparse.ArgumentParser(description="Starts HDFS and YARN on this machine, on loopback, and stops both with Ctrl-C.").parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="hadoop-cluster-") as folder, contextlib.suppress(KeyboardInterrupt):
        with serving(pathlib.Path(folder), yarn=True) as server:
            print(f"HDFS            {server}\nresource manager http://{server.web}\n\nIn another terminal:\n{server.exports}tfos fs ls hdfs:///\n"
                  "\nThen what docs/yarn.md and deploy/emr/README.md type. Ctrl-C stops it and removes its files.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
            print("stopping", flush=True)


if __name__ == "__main__":
    main()

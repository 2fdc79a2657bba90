# SPDX-License-Identifier: Apache-2.0
"""The GPUs of machines of the test's making: NVIDIA's library is one of its own (tests/gpu/fake_nvml.c)."""

import json
import os
import pickle
import signal
import subprocess
import sys
import types

import pytest

from conftest import wait_until
from tensorflowonspark import TFParallel, _tfos, gpu_info, gpus, launch, util

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = os.path.join(HERE, "..", "..", "tests", "gpu", "fake_nvml.c")
LOOK = """
import json
from tensorflowonspark import gpu_info
gpu_info.MAX_RETRIES = 0
found = {"available": gpu_info.is_gpu_available()}
for name, arguments in {"one": (1, 0), "two": (2, 0), "second": (1, 1), "wrapped": (1, 4), "many": (9,), "none": (0,)}.items():
    try:
        found[name] = gpu_info.get_gpus(*arguments)
    except RuntimeError as error:
        found[name] = str(error)
print(json.dumps(found))
"""
UUID = "GPU-fa4e0000-0000-0000-0000-{:012d}"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), FAKE], check=True)
    return folder


@pytest.fixture
def machine(library, tmp_path, monkeypatch):
    """A function that gives this machine, for the processes that a test starts, the GPUs of a script."""
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    monkeypatch.setenv("TFOS_RUNTIME_DIR", str(tmp_path / "locks"))
    monkeypatch.setenv("FAKE_GPUS", str(tmp_path / "gpus"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def write(*lines):
        (tmp_path / "gpus.new").write_text("\n".join(lines) + "\n")
        (tmp_path / "gpus.new").rename(tmp_path / "gpus")
    return write


def run(command, folder, script):
    environment = {name: value for name, value in os.environ.items() if name not in ("FAKE_GPUS", "CUDA_VISIBLE_DEVICES")}
    environment["LD_LIBRARY_PATH"] = f"{folder}:{environment.get('LD_LIBRARY_PATH', '')}"
    environment["TFOS_RUNTIME_DIR"] = str(folder / "locks")
    if script is not None:
        environment["FAKE_GPUS"] = script
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=120).stdout)


def look(folder, script):
    return run([sys.executable, "-c", LOOK], folder, script)


def doctor(folder, script):
    checks = run([launch.node_executable(), "doctor", "--json"], folder, script)["checks"]
    return next((check["state"], check["detail"]) for check in checks if check["name"] == "gpu")


def show():
    """What ``tfos gpu --json`` shows."""
    return json.loads(subprocess.run([launch.node_executable(), "gpu", "--json"], stdout=subprocess.PIPE, timeout=60).stdout)


# -- gpu_info and util


def test_free_and_busy_gpus(library):
    found = look(library, "fbflf")
    assert found == {"available": True, "one": "0", "two": "0,2", "second": "2", "wrapped": "2", "none": "",
                     "many": "gpu: 9 wanted, this machine has 4; GPU 3 does not answer: GPU is lost (NVML 15)"}
    assert look(library, "b")["one"] == "gpu: 1 wanted, 0 free; GPU 0 is used by process 4242 (tfos gpu shows who has what)"
    assert doctor(library, "fbl") == ("ok", "3: Fake A100, Fake A100, unknown")


def test_a_machine_without_gpus(library, tmp_path):
    assert not look(library, "")["available"]
    assert doctor(library, "") == ("note", "0")
    silent = "none: libnvidia-ml.so.1 is there, but the driver does not answer (nvidia-smi says why)"
    assert doctor(library, None) == ("note", silent)
    found = look(library, None)
    assert not found["available"] and found["one"] == silent
    (tmp_path / "libnvidia-ml.so.1").touch()
    absent = "none: libnvidia-ml.so.1 is not on this machine; training uses the CPU"
    assert doctor(tmp_path, None) == ("note", absent)
    found = look(tmp_path, None)
    assert not found["available"] and found["one"] == absent


def test_s31_processes_that_ask_at_once_get_distinct_gpus(machine):
    machine(*["gpu free"] * 4)
    program = "import sys; from tensorflowonspark import gpu_info; print(gpu_info.get_gpus(1, int(sys.argv[1])), flush=True); sys.stdin.read()"
    askers = [subprocess.Popen([sys.executable, "-c", program, index], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
              for index in ("-1", "-1", "0", "3")]
    try:
        assert sorted(asker.stdout.readline() for asker in askers) == ["0\n", "1\n", "2\n", "3\n"]
        assert [holder["owner"] for gpu in show() for holder in gpu["holders"]] == ["get_gpus"] * 4
    finally:
        for asker in askers:
            asker.communicate("")
    assert [gpu["holders"] for gpu in show()] == [[]] * 4


@pytest.mark.parametrize(("worker_index", "place"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
def test_s32_nodes_count_the_peers_of_their_own_host(worker_index, place, monkeypatch):
    nodes = ["10.0.0.12:1", "10.0.0.1:1", "10.0.0.1:2", "10.0.0.12:2", "10.0.0.1:3"]
    monkeypatch.setattr(gpu_info, "is_gpu_available", lambda: True)
    monkeypatch.setattr(gpu_info, "get_gpus", lambda number, index: f"{number} from {index}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "before")
    util.single_node_env(2, worker_index, nodes)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == f"2 from {place}"


def test_instances_of_one_host_take_different_gpus(monkeypatch):
    """TFParallel tells each instance where the others run."""
    import pyspark

    infos = [types.SimpleNamespace(address=address) for address in ("10.0.0.12:1", "10.0.0.1:1", "10.0.0.12:2")]
    context = types.SimpleNamespace(getTaskInfos=lambda: infos)
    monkeypatch.setattr(pyspark.BarrierTaskContext, "get", classmethod(lambda cls: context))
    monkeypatch.setattr(gpu_info, "is_gpu_available", lambda: True)
    monkeypatch.setattr(gpu_info, "get_gpus", lambda number, index, format: [f"{number} from {index}"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "before")
    monkeypatch.delenv("SPARK_EXECUTOR_POD_IP", raising=False)
    payload = launch.pickle_function(lambda args, ctx: os.environ["CUDA_VISIBLE_DEVICES"], {})
    instance = TFParallel._Instance(payload, 3, "file://", 1, True)
    assert [pickle.loads(instance(number)) for number in range(3)] == ["1 from 0", "1 from 0", "1 from 1"]


def test_the_function_of_a_node_gets_the_gpus_of_the_node(monkeypatch):
    monkeypatch.setenv("TFOS_GPUS", "3,1")
    assert gpu_info.get_gpus(1) == "3" and gpu_info.get_gpus(2, format=gpu_info.AS_LIST) == ["3", "1"]
    with pytest.raises(RuntimeError, match=r"3 GPUs wanted, this node has 2: pass num_gpus=3 to TFCluster\.run"):
        gpu_info.get_gpus(3)
    monkeypatch.setenv("TFOS_GPUS", "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    util.single_node_env(1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


# -- who gets what


class Settings:
    """A fake of the Spark application."""

    def __init__(self, **values):
        self.values = {name.replace("_", "."): value for name, value in values.items()}

    def setting(self, name):
        return self.values.get(name)

    def refuse(self, what, instead):
        """As a session of this machine does, which can do all."""


def assign(monkeypatch, **addresses):
    """Lets this process be a Spark task with these resources."""
    import pyspark

    information = {name.replace("__", "/").replace("_", "."): type("Information", (), {"addresses": value}) for name, value in addresses.items()}
    context = type("Context", (), {"resources": lambda self: information})()
    monkeypatch.setattr(pyspark.TaskContext, "get", classmethod(lambda cls: context))
    monkeypatch.delenv("SPARK_EXECUTOR_POD_IP", raising=False)


def args_with(number):
    return type("Args", (), {"num_gpus": number})


def test_s33_parameter_servers_and_evaluators_get_gpus_only_when_they_are_asked_for(monkeypatch):
    assign(monkeypatch, gpu=["4", "5"])
    plain = gpus.plan(Settings(), None, None, None, None)
    assert plain.config("ps") is None and plain.config("evaluator") is None
    assert plain.config("worker") == {"count": 2, "fraction": 0.0, "addresses": "4,5", "required": True}
    one = gpus.plan(Settings(), args_with(1), None, 0.2, None)
    assert one.config("chief") == {"count": 1, "fraction": 0.2, "addresses": "4,5", "required": True}
    named = gpus.plan(Settings(), args_with(7), {"worker": 2, "ps": 1}, None, None)
    assert [named.config(role) and named.config(role)["count"] for role in ("ps", "evaluator", "worker", "chief", "master")] == [1, None, 2, 2, 2]
    assert gpus.plan(Settings(), args_with(1), 0, None, None).config("worker") is None
    with pytest.raises(RuntimeError, match="num_gpus asks for 3 GPUs, Spark has assigned 2 to this task: 4, 5"):
        gpus.plan(Settings(), None, 3, None, None).config("worker")


def test_what_spark_assigns_wins_whatever_the_resource_is_called(monkeypatch):
    for name in ("gpu", "yarn.io__gpu", "nvidia.com__gpu"):
        assign(monkeypatch, **{name.replace(".", "_"): ["GPU-7"]})
        assert gpus.plan(Settings(), None, None, None, None).config("worker")["addresses"] == "GPU-7"
    assign(monkeypatch, fpga=["1"])
    assert gpus.plan(Settings(), None, None, None, None).config("worker") == {"count": 1, "fraction": 0.0, "addresses": None, "required": False}
    assert gpus.plan(Settings(), None, 2, None, None).config("worker")["required"]
    monkeypatch.setenv("SPARK_EXECUTOR_POD_IP", "10.0.0.1")
    assert gpus.plan(Settings(), None, None, None, None).config("worker") is None
    with pytest.raises(RuntimeError, match="num_gpus asks for 1 GPUs, Spark has assigned 0 to this task: set spark.task.resource"):
        gpus.plan(Settings(), None, 1, None, None).config("worker")


def test_parts_of_gpus():
    half = Settings(spark_task_resource_gpu_amount="0.5")
    assert gpus.plan(half, None, None, None, None).fraction == 0.5
    assert gpus.plan(half, None, None, 0.1, None).fraction == 0.1
    assert gpus.plan(Settings(spark_task_resource_gpu_amount="2"), None, None, None, None).fraction == 0
    profile = type("Profile", (), {"taskResources": {"gpu": type("Request", (), {"amount": 0.25})}})
    assert gpus.plan(half, None, None, None, profile).fraction == 0.25
    for wrong in (0, -0.1, 1.5, True, "half"):
        with pytest.raises(ValueError, match="gpu_fraction must be a number above 0 and at most 1"):
            gpus.plan(half, None, None, wrong, None)
    with pytest.raises(ValueError, match="num_gpus: 'boss' is no role"):
        gpus.plan(half, None, {"boss": 1}, None, None)
    with pytest.raises(ValueError, match="num_gpus must be an integer from 0 to 64, not -1"):
        gpus.plan(half, None, -1, None, None)


def test_s33_helpers_run_in_the_default_profile():
    roles = ["ps", "chief", "evaluator", "worker"]
    assert list(gpus.groups(range(4), roles.__getitem__, None)) == [(range(4), None)]
    assert list(gpus.groups(range(4), roles.__getitem__, "profile")) == [([0, 2], None), ([1, 3], "profile")]
    assert list(gpus.groups(range(3, 4), roles.__getitem__, "profile")) == [([3], "profile")]


# -- TensorFlow


def test_tensorflow_gets_its_part_of_the_memory(monkeypatch, caplog):
    import tensorflow as tf

    limits = []
    devices = [tf.config.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU") for index in range(2)]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices)
    monkeypatch.setattr(tf.config, "set_logical_device_configuration",
                        lambda device, logical: limits.append((device.name[-1], [one.memory_limit for one in logical])))
    gpus.limit_memory([{"fraction": 0.0, "memory": 8 << 30}])
    assert limits == []
    gpus.limit_memory([{"fraction": 0.2, "memory": 8 << 30}, {"fraction": 0.2, "memory": 1 << 30}])
    assert limits == [("0", [8192 - 512]), ("1", [768])]
    gpus.limit_memory([{"fraction": 0.2, "memory": -1}])
    assert "the memory of /physical_device:GPU:0 is not known" in caplog.text
    config = gpus.session_config(0.1, 1)
    assert config.gpu_options.per_process_gpu_memory_fraction == 0.1 and config.gpu_options.visible_device_list == "0"
    assert gpus.session_config(0, 0).device_count == {"GPU": 0}


SERVER = """
import json, socket
import tensorflow as tf
from tensorflowonspark import TFNode, TFSparkNode
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
ctx = TFSparkNode.TFNodeContext(0, "worker", 0, {"worker": [f"127.0.0.1:{port}"]})
cluster, server = ctx.start_cluster_server(num_gpus=1, rdma=True)
with tf.Graph().as_default(), tf.compat.v1.Session(server.target) as session:
    total = int(session.run(tf.constant(20) + 22))
print(json.dumps([cluster.as_dict(), port, server.server_def.job_name, total]), flush=True)
ctx.num_gpus = 1
try:
    ctx.start_cluster_server(num_gpus=2)
except RuntimeError as error:
    print(json.dumps(str(error)), flush=True)
import os
os._exit(0)
"""


@pytest.mark.long
def test_start_cluster_server_serves_sessions():
    output = subprocess.run([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, check=True, timeout=240).stdout.splitlines()
    cluster, port, job, total = json.loads(output[0])
    assert (cluster, job, total) == ({"worker": [f"127.0.0.1:{port}"]}, "worker", 42)
    assert "has 1: pass num_gpus=2 to TFCluster.run" in json.loads(output[1])


def test_rdma_is_told_of_when_there_is_none(tmp_path, caplog):
    assert not gpus.has_rdma(str(tmp_path))
    assert "this machine has no InfiniBand or RoCE adapter" in caplog.text
    port = tmp_path / "class" / "infiniband" / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    (port / "state").write_text("1: DOWN\n")
    (port / "link_layer").write_text("Ethernet\n")
    assert not gpus.has_rdma(str(tmp_path))
    assert "no InfiniBand or RoCE port of this machine is active (mlx5_0/1)" in caplog.text
    (port / "state").write_text("4: ACTIVE\n")
    assert gpus.has_rdma(str(tmp_path))
    assert _tfos.list_rdma_ports(str(tmp_path)) == [("mlx5_0", 1, True, "RoCE")]


# -- nodes

WHAT = """
save({name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "TFOS_GPUS")})
open(os.environ["OUT"] + ".there", "w").close()
link.open_feed().next_rows(1, False)
"""


def test_a_node_holds_its_gpus_while_its_trainer_runs(machine, start, tmp_path):
    machine("gpu busy used=1000", "gpu free memory=20000 used=400 load=7", "gpu free")
    cluster = start(WHAT, gpus={"count": 1, "fraction": 0.2, "addresses": None, "required": True})
    wait_until((tmp_path / "out.there").exists)
    [gpu] = wait_until(lambda: json.loads(cluster.rendezvous.status())["nodes"][0]["gpus"], what="the GPU in the status")
    assert gpu == {"id": "1", "name": "Fake A100", "fraction": 0.2, "memory_used": 400 << 20, "memory_total": 20000 << 20, "load": 7, "fault": None}
    shown = show()
    assert [gpu["free"] for gpu in shown] == [False, True, True] and shown[0]["processes"] == [
        {"pid": 4242, "memory": 500 << 20}, {"pid": 4243, "memory": 500 << 20}]
    [holder] = shown[1]["holders"]
    assert holder["owner"] == f"cluster {cluster.cluster_id} worker:0" and holder["fraction"] == 0.2
    status = subprocess.run([launch.node_executable(), "status"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    assert "GPU 1  Fake A100  20% of it  memory 0.4 of 19.5 GiB  load 7%" in status
    table = subprocess.run([launch.node_executable(), "gpu"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    assert f"held   20.0 % by process {holder['pid']}, cluster {cluster.cluster_id} worker:0" in table
    machine("gpu busy used=1000", "gpu lost", "gpu free")  # it falls off the bus
    wait_until(lambda: json.loads(cluster.rendezvous.status())["nodes"][0]["gpus"][0]["fault"] == "GPU is lost (NVML 15)")
    machine("gpu free", "gpu free", "gpu free")
    assert cluster.saved() == {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TFOS_GPUS": "1"}
    wait_until(lambda: not show()[1]["holders"])


def test_a_node_that_is_killed_leaves_its_gpus_free(machine, start, tmp_path):
    machine("gpu free")
    cluster = start(WHAT, gpus={"count": 1, "fraction": 0, "addresses": None, "required": True})
    wait_until((tmp_path / "out.there").exists)
    [holder] = show()[0]["holders"]
    assert holder["fraction"] == 1
    os.kill(json.loads(cluster.rendezvous.status())["nodes"][0]["pid"], signal.SIGKILL)
    wait_until(lambda: not show()[0]["holders"])


def test_a_node_without_gpus(machine, start, tmp_path):
    machine("gpu free")
    cluster = start(WHAT, gpus=None)
    wait_until((tmp_path / "out.there").exists)
    assert cluster.saved() == {"CUDA_VISIBLE_DEVICES": "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TFOS_GPUS": ""}


def test_a_node_that_wants_more_than_there_is_says_so(machine, start):
    machine("gpu lost", "gpu free")
    with pytest.raises(_tfos.Error), _limited(start) as node:
        message = json.loads(node.next(60_000))
        assert message["type"] == "failed"
        assert message["message"] == "node: executor 0: gpu: 2 wanted, this machine has 1; GPU 0 does not answer: GPU is lost (NVML 15)"
        raise _tfos.Error


def _limited(start):
    """A node of a cluster that nobody waits for."""
    config = json.dumps({"type": "config", "cluster_id": "c", "key": "0" * 64, "address": "127.0.0.1:1", "executor_id": 0, "executor": "0", "argv": ["true"],
                         "gpus": {"count": 2, "required": True}})
    return _tfos.Node(launch.node_executable(), config, b"")


def test_a_machine_with_no_gpu_trains_on_the_cpu_unless_one_is_required(machine, start, tmp_path):
    machine("gpu lost")
    cluster = start(WHAT, gpus={"count": 1, "fraction": 0, "addresses": None, "required": False})
    wait_until((tmp_path / "out.there").exists)
    assert cluster.saved()["CUDA_VISIBLE_DEVICES"] == ""


# -- names that programs have


def test_the_packages_of_the_fork(monkeypatch):
    program = """
import json
from tensorflowonspark import TFCluster, TFNode
calls = []
TFCluster.run = lambda *args, **kwargs: calls.append(kwargs)
TFNode.start_cluster_server = lambda *args, **kwargs: calls.append(kwargs)
import tensorflowonspark_gpu10p.TFCluster
from tensorflowonspark_gpu20p import TFCluster as second, TFNode as server, dfutil, gpu_info
tensorflowonspark_gpu10p.TFCluster.run(1)
second.run(2, num_ps=1)
second.run(3, gpu_fraction=0.5)
server.start_cluster_server(4)
import tensorflowonspark.dfutil, pickle
assert second.TFCluster is TFCluster.TFCluster and second.InputMode is TFCluster.InputMode
assert dfutil.saveAsTFRecords is tensorflowonspark.dfutil.saveAsTFRecords
assert pickle.loads(pickle.dumps(server.DataFeed)) is TFNode.DataFeed
try:
    import tensorflowonspark_gpu10p.nothing
except ModuleNotFoundError as error:
    calls.append(error.name)
print(json.dumps(calls))
"""
    output = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, timeout=120).stdout
    assert json.loads(output) == [{"gpu_fraction": 0.1}, {"gpu_fraction": 0.2, "num_ps": 1}, {"gpu_fraction": 0.5}, {"gpu_fraction": 0.2},
                                  "tensorflowonspark_gpu10p.nothing"]


def test_hops_names_the_sizes_of_the_application(monkeypatch):
    from hops import util as hops_util

    class Session:
        def __init__(self, **values):
            self.conf = {name.replace("_", "."): value for name, value in values.items()}

    monkeypatch.delenv("NUM_TF_PS", raising=False)
    fixed = Session(spark_executor_instances="3", spark_tensorflow_num_ps="1", spark_dynamicAllocation_maxExecutors="9")
    assert (hops_util.num_executors(fixed), hops_util.num_param_servers(fixed)) == (3, 1)
    fixed.conf["spark.dynamicAllocation.enabled"] = "true"
    assert util.num_executors(fixed) == 9
    monkeypatch.setenv("NUM_TF_PS", "2")
    assert (util.num_param_servers(fixed), util.num_param_servers(Session())) == (1, 2)
    monkeypatch.delenv("NUM_TF_PS")
    assert util.num_param_servers(Session()) == 0
    with pytest.raises(ValueError, match=r"does not say how many executors it has: set spark\.executor\.instances"):
        util.num_executors(Session())

# SPDX-License-Identifier: Apache-2.0
"""The templates of deploy/: they render, the managers' schemas take them, and what they start trains, as processes on loopback."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import types
import urllib.request
from pathlib import Path

import pytest

from conftest import free_ports, wait_until

jinja2 = pytest.importorskip("jinja2")
yaml = pytest.importorskip("yaml")
kubernetes_validate = pytest.importorskip("kubernetes_validate")

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = "1.30"
CREDENTIAL = ("credential_secret_name=credential", "credential_secret_key=key.json")
# Of the templates whose documents are Kubernetes's and its operators', each with the variables that change what they have.
MANIFESTS = [
    ("kubernetes/template.yaml.jinja", *variables) for variables in
    [(), ("data_dir=gs://bucket/data", "train_dir=gs://bucket/train", *CREDENTIAL), ("tensorboard=true", "worker_replicas=3", "ps_replicas=2", *CREDENTIAL)]
] + [
    ("kubernetes/volume.yaml.jinja",), ("kubernetes/volume.yaml.jinja", "storage_class=nfs"),
    ("distribution_strategy/template.yaml.jinja",),
    ("distribution_strategy/template.yaml.jinja", "has_eval=true", "has_tensorboard=true", "num_gpus_per_worker=2", "train_dir=/data/train"),
    ("distribution_strategy/template.yaml.jinja", "script=/tf_std_server.py", "cmdline_args=", "ps_replicas=1", "service_type=LoadBalancer"),
    ("data_service/data_service.yaml.jinja",), ("data_service/data_service.yaml.jinja", "workers=2"),
    ("data_service/data_service.yaml.jinja", 'ip_mapping={"data-service-worker-0": "10.0.0.40", "data-service-worker-1": "10.0.0.41"}'),
    ("data_service/data_service_interfaces.yaml.jinja",), ("data_service/data_service_interfaces.yaml.jinja", "service_type=ClusterIP"),
    ("kubeflow/tfjob.yaml.jinja",), ("kubeflow/tfjob.yaml.jinja", "has_eval=true", "ps_replicas=1", "num_gpus_per_worker=1", *CREDENTIAL),
    ("kubeflow/notebook.yaml.jinja",), ("kubeflow/serving.yaml.jinja",), ("kubeflow/serving.yaml.jinja", "model_base_path=gs://bucket/export", *CREDENTIAL),
    ("kubeflow/spark_application.yaml.jinja",), ("kubeflow/spark_application.yaml.jinja", "num_gpus_per_worker=1", "volume_claim="),
]


def run_render(*arguments):
    return subprocess.run([sys.executable, str(DEPLOY / "render_template.py"), *arguments], capture_output=True, text=True, cwd=DEPLOY)


def render(template, *variables):
    result = run_render(template, *variables)
    assert result.returncode == 0 and not result.stderr, result.stderr
    return result.stdout


def documents(template, *variables):
    return [document for document in yaml.safe_load_all(render(template, *variables)) if document]


def load_program(path):
    """A program of deploy/ as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pods_of(document):
    """The pod templates that an operator's document has."""
    if document["kind"] == "TFJob":
        return [job["template"]["spec"] for job in document["spec"]["tfReplicaSpecs"].values()]
    return [document["spec"]["template"]["spec"]] if document["kind"] == "Notebook" else []


# --- render_template.py ---


def test_a_template_of_users_is_rendered_as_it_is(tmp_path):
    """What templates of the ecosystem use: variables set in the first lines, macros, loops."""
    text = (
        '{%- set name = "job" -%}\n{%- set replicas = {"worker": 2} -%}\n{%- macro host(i) -%}{{ name }}-{{ i }}:5000{%- endmacro -%}\n'
        '{% for i in range(replicas["worker"]) -%}\n{{ host(i) }}\n{% endfor %}')
    (tmp_path / "own.jinja").write_text(text)
    assert render(str(tmp_path / "own.jinja")) == jinja2.Template(text).render() + "\n" == "job-0:5000\njob-1:5000\n\n"


def test_variables_of_the_command_line(tmp_path):
    (tmp_path / "t.jinja").write_text("{%- set a = a | default(1) -%}{{ a | tojson }}")
    for value, expected in [("2", "2"), ("text", '"text"'), ("[1, 2]", "[1, 2]"), ("true", "true"), ("False", "false"), ("", '""'), ("b=c", '"b=c"')]:
        assert render(str(tmp_path / "t.jinja"), f"a={value}") == f"{expected}\n"


def test_what_cannot_be_rendered_is_said(tmp_path):
    (tmp_path / "t.jinja").write_text("{%- set a = a | default(1) -%}{{ a }}")
    (tmp_path / "broken.jinja").write_text("x\n{% if %}")
    (tmp_path / "undefined.jinja").write_text("x{{ nowhere }}y")
    result = run_render(str(tmp_path / "t.jinja"), "b=2")
    assert result.returncode == 1 and "no variable b; it has a" in result.stderr and not result.stdout
    assert run_render(str(tmp_path / "none.jinja")).returncode == 1
    result = run_render(str(tmp_path / "broken.jinja"))
    assert result.returncode == 1 and "broken.jinja:2: not rendered" in result.stderr
    result = run_render(str(tmp_path / "undefined.jinja"))
    assert result.stdout == "xy\n" and "nowhere" in result.stderr
    assert run_render().returncode == run_render("a", "b").returncode == 2


# --- schemas ---


@pytest.mark.parametrize("arguments", MANIFESTS, ids=lambda arguments: "-".join(arguments)[:60])
def test_kubernetes_takes_the_manifests(arguments):
    found = documents(*arguments)
    assert found
    for document in found:
        if document["apiVersion"] in ("v1", "apps/v1", "batch/v1"):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        assert re.fullmatch(r"[a-z0-9-]+", document["metadata"].get("namespace", "default"))
        for spec in pods_of(document):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
            kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_the_namespace_of_kubeflows_documents(tmp_path):
    """Jinja2 has a function of the variable's name, which other templates may use."""
    for template, default in [("tfjob", "kubeflow"), ("notebook", "kubeflow-user"), ("serving", "default"), ("spark_application", "default")]:
        for given, expected in [((), default), (("namespace=mine",), "mine")]:
            found = documents(f"kubeflow/{template}.yaml.jinja", *given)
            assert {document["metadata"]["namespace"] for document in found} == {expected}
    (tmp_path / "t.jinja").write_text("{%- set n = namespace(a=n) -%}{{ n.a }}")
    assert render(str(tmp_path / "t.jinja"), "n=3") == "3\n"


def test_services_select_the_pods():
    for template in ("kubernetes/template.yaml.jinja", "distribution_strategy/template.yaml.jinja"):
        found = documents(template)
        services = {one["metadata"]["name"]: one["spec"]["selector"] for one in found if one["kind"] == "Service"}
        pods = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in found if one["kind"] == "Job"}
        assert services == pods and len(services) == len({json.dumps(labels) for labels in pods.values()})


def test_secrets_are_mounted_where_the_variable_says():
    for template, name, folder, variables in [
        ("kubernetes/template.yaml.jinja", "credential", "/etc/credential", CREDENTIAL),
        ("distribution_strategy/template.yaml.jinja", "credential", "/var/secrets/google", ()),
    ]:
        for document in documents(template, *variables):
            if document["kind"] == "Job":
                spec = document["spec"]["template"]["spec"]
                environment = {one["name"]: one["value"] for one in spec["containers"][0]["env"]}
                assert environment["GOOGLE_APPLICATION_CREDENTIALS"] == f"{folder}/key.json"
                assert folder in [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]]
                assert {"name": "credential", "secret": {"secretName": name}} in spec["volumes"]


# What Marathon 1.5 and later take of an app, as far as the template uses it.
MARATHON_APP = {
    "type": "object", "additionalProperties": False, "required": ["id", "container", "networks", "cpus", "mem", "instances", "portDefinitions"],
    "properties": {
        "id": {"type": "string", "pattern": "^/([a-z0-9]([a-z0-9-]*[a-z0-9])?/)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$"},
        "args": {"type": "array", "items": {"type": "string"}}, "cmd": {"type": "string"},
        "cpus": {"type": "number", "minimum": 0}, "mem": {"type": "number", "minimum": 0}, "instances": {"type": "integer", "minimum": 0},
        "requirePorts": {"type": "boolean"}, "env": {"type": "object"},
        "secrets": {"type": "object", "additionalProperties": {"type": "object", "required": ["source"]}},
        "networks": {"type": "array", "items": {"type": "object", "properties": {"mode": {"enum": ["host", "container", "container/bridge"]}}}},
        "portDefinitions": {"type": "array", "items": {
            "type": "object", "additionalProperties": False,
            "properties": {"port": {"type": "integer", "minimum": 0, "maximum": 65535}, "protocol": {"enum": ["tcp", "udp", "udp,tcp"]}, "name": {}}}},
        "container": {
            "type": "object", "additionalProperties": False, "required": ["type"],
            "properties": {
                "type": {"enum": ["MESOS", "DOCKER"]},
                "docker": {"type": "object", "required": ["image"], "additionalProperties": False, "properties": {"image": {"type": "string"}}},
                "volumes": {"type": "array", "items": {
                    "type": "object", "required": ["containerPath"], "additionalProperties": False,
                    "properties": {"containerPath": {}, "hostPath": {"pattern": "^/"}, "mode": {"enum": ["RW", "RO"]}, "secret": {}}}},
            }}},
    "oneOf": [{"required": ["args"]}, {"required": ["cmd"]}],
}


@pytest.mark.parametrize("variables", [(), ("tensorboard=false",), ("worker_replicas=1", "ps_replicas=1", "credential_secret_name=tfos/key", "data_volume=")])
def test_marathon_takes_the_group(variables):
    jsonschema = pytest.importorskip("jsonschema")
    group = json.loads(render("marathon/template.json.jinja", *variables))
    assert set(group) == {"id", "apps"}
    for app in group["apps"]:
        jsonschema.validate(app, MARATHON_APP)
        assert app["id"].startswith(group["id"] + "/")
    ports = [app["portDefinitions"][0]["port"] for app in group["apps"]]
    assert len(set(ports)) == len(ports)
    for secret in (volume["secret"] for app in group["apps"] for volume in app["container"]["volumes"] if "secret" in volume):
        assert all(secret in app["secrets"] for app in group["apps"])


@pytest.mark.parametrize("variables", [(), ("tensorboard=false", "data_volume="), ("credential_file=./key.json", "data_dir=gs://bucket/data")])
def test_compose_takes_the_services(variables):
    compose = pytest.importorskip("compose_spec")
    content = yaml.safe_load(render("swarm/template.yaml.jinja", *variables))
    compose.models.ComposeSpecification.model_validate(content)
    for service in content["services"].values():
        assert not set(service) - {"image", "entrypoint", "command", "restart", "deploy", "volumes", "environment", "secrets", "ports"}
        assert set(service.get("secrets", ())) <= set(content.get("secrets", ()))


def test_dockerfiles_copy_what_is_there():
    """Each COPY of an own file names one that is there, relative to the folder that the README builds in."""
    found = sorted(DEPLOY.rglob("Dockerfile*"))
    assert len(found) >= 6
    for path in found:
        context = ROOT if path.parent.name == "spark" else path.parent
        for line in re.findall(r"^COPY (?!--from)(.*)$", path.read_text(), re.MULTILINE):
            for name in line.split()[:-1]:
                assert (context / name).exists(), f"{path}: {name}"


# --- what the templates start ---


class Task:
    """A process that a template would start in a container."""

    def __init__(self, name, command, environment, port):
        self.name, self.command, self.environment, self.port = name, command, environment, port


def tasks_of_manifests(found):
    """The tasks of Kubernetes's documents; an image without a command in the document runs its own program."""
    for document in found:
        if document["kind"] in ("Job", "Deployment"):
            container = document["spec"]["template"]["spec"]["containers"][0]
            command = container.get("command", ["python", "/tf_std_data_server.py"]) + container.get("args", [])
            environment = {one["name"]: one["value"] for one in container.get("env", ())}
            yield Task(document["metadata"]["name"], command, environment, container["ports"][0]["containerPort"])


def tasks_of_compose(content):
    for name, service in content["services"].items():
        command = service["entrypoint"] + service["command"]
        yield Task(name, command, {}, next((int(word.rsplit("=", 1)[1]) for word in command if word.startswith("--port=")), 5000))


def tasks_of_marathon(group):
    for app in group["apps"]:
        command = app["cmd"].split()[1:] if "cmd" in app else ["python", "/mnist.py", *app["args"]]
        name = f"{app['id'].rsplit('/', 1)[1]}-{group['id'][1:]}.marathon.mesos"
        yield Task(name, command, {}, app["portDefinitions"][0]["port"])


class Machine:
    """Runs tasks as processes: each host becomes a port of loopback, /data a folder, and programs those of deploy/."""

    def __init__(self, folder, tasks):
        self.folder, self.processes = folder, {}
        self.ports = {f"{task.name}:{task.port}": port for task, port in zip(tasks, free_ports(len(tasks)))}
        for task in tasks:
            self.start(task)

    def translate(self, text, port):
        for host in sorted(self.ports, key=len, reverse=True):
            text = text.replace(host, f"127.0.0.1:{self.ports[host]}")
        text = re.sub(r"^--port=\d+$", f"--port={port}", text)
        return re.sub(r"(^|[= ])/data/", rf"\g<1>{self.folder}/", text)

    def start(self, task):
        port = self.ports[f"{task.name}:{task.port}"]
        words = [self.translate(word, port) for word in task.command]
        if words[0] == "tensorboard":
            words = [sys.executable, "-m", "tensorboard.main", *words[1:]]
        else:
            words = [sys.executable, str(next(DEPLOY.glob(f"*{words[1]}"))), *words[2:]]
        environment = {name: self.translate(value, port) for name, value in task.environment.items()}
        with open(self.folder / f"{task.name}.log", "w") as log:
            self.processes[task.name] = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment})

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait(self, names, seconds=580):
        """Until those tasks have ended well. A task that has failed is reported at once, with what it printed."""
        def have_ended():
            for name, process in self.processes.items():
                assert process.poll() in (None, 0), f"{name} ended with {process.returncode}:\n{self.log(name)}"
            return all(self.processes[name].poll() == 0 for name in names)

        wait_until(have_ended, seconds, f"the end of {', '.join(names)}")

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


@pytest.fixture
def machine(tmp_path):
    """A function that starts tasks; they are stopped after the test."""
    started = []

    def start(tasks):
        started.append(Machine(tmp_path, list(tasks)))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder with train.tfrecords of some digits, written as deploy/docker/README.md says."""
    folder = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, str(DEPLOY / "docker/convert_to_records.py"), "--data", str(ROOT / "examples/mnist/data"),
                    "--output", str(folder), "--limit", "2000"], check=True, timeout=580)
    return folder


def train_mnist(machine, tmp_path, digits, tasks):
    """Runs the tasks of an mnist template until its workers and parameter servers have ended; the worker's last loss is returned."""
    (tmp_path / "mnist").symlink_to(digits)
    tasks = list(tasks)
    running = machine(tasks)
    jobs = [task.name for task in tasks if "tensorboard" not in task.name]
    running.wait(jobs)
    assert (tmp_path / "train" / "checkpoint").is_file() and list((tmp_path / "train").glob("events.out.tfevents*"))
    losses = [float(loss) for name in jobs for loss in re.findall(r"step \d+, loss ([\d.]+)", running.log(name))]
    assert losses and min(losses) < 2.0, [running.log(name) for name in jobs]
    for task in tasks:
        if "tensorboard" in task.name:
            port = running.ports[f"{task.name}:{task.port}"]
            wait_until(lambda port=port: is_answering(f"http://127.0.0.1:{port}/"), 120, "TensorBoard")


def is_answering(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.mark.long
def test_mnist_of_the_kubernetes_template(machine, tmp_path, digits):
    train_mnist(machine, tmp_path, digits, tasks_of_manifests(documents("kubernetes/template.yaml.jinja", "train_steps=120", "tensorboard=true")))


@pytest.mark.long
def test_mnist_of_the_swarm_template(machine, tmp_path, digits):
    content = yaml.safe_load(render("swarm/template.yaml.jinja", "train_steps=120", "worker_replicas=1", "ps_replicas=2", "tensorboard=false"))
    train_mnist(machine, tmp_path, digits, tasks_of_compose(content))


@pytest.mark.long
def test_mnist_in_step_of_the_marathon_template(machine, tmp_path, digits):
    group = json.loads(render("marathon/template.json.jinja", "train_steps=60", "worker_replicas=2", "ps_replicas=1", "tensorboard=false"))
    train_mnist(machine, tmp_path, digits, tasks_of_marathon(group))


@pytest.mark.long
def test_keras_of_the_distribution_strategy_template(machine, tmp_path):
    """Workers in step and an evaluator; what restarts continues from the newest checkpoint."""
    arguments = ("distribution_strategy/template.yaml.jinja", "train_dir=/data/train", "has_eval=true")
    running = machine(tasks_of_manifests(documents(*arguments, "cmdline_args=/data/train --epochs 2 --steps_per_epoch 20")))
    running.wait(list(running.processes))
    workers = [re.findall(r"epoch (\d) of 2: (loss [\d.]+), 2 replicas", running.log(name)) for name in running.processes if "worker" in name]
    assert [number for number, _ in workers[0]] == ["1", "2"] and workers[0] == workers[1]
    assert "evaluation of epoch 2: loss" in running.log("dist-strat-example-evaluator-0")
    assert sorted(path.name for path in (tmp_path / "train").glob("*.index")) == ["ckpt-1.index", "ckpt-2.index"]
    assert not list((tmp_path / "train").glob("temporary*"))
    again = machine(tasks_of_manifests(documents(*arguments[:2], "cmdline_args=/data/train --epochs 3 --steps_per_epoch 20")))
    again.wait(list(again.processes))
    assert re.findall(r"epoch (\d) of 3", again.log("dist-strat-example-worker-0")) == ["3"]


@pytest.mark.long
def test_standalone_client_trains_on_standard_servers(machine, tmp_path):
    running = machine(tasks_of_manifests(documents(
        "distribution_strategy/template.yaml.jinja", "train_dir=/data/train", "script=/tf_std_server.py", "cmdline_args=", "ps_replicas=1")))
    cluster = {}
    for host, port in running.ports.items():
        cluster.setdefault(host.split("-")[-2], []).append(f"127.0.0.1:{port}")
    output = subprocess.run(
        [sys.executable, str(DEPLOY / "distribution_strategy/keras_multi_worker_client.py"), str(tmp_path / "model"), "--cluster", json.dumps(cluster),
         "--epochs", "2", "--steps_per_epoch", "20"], capture_output=True, text=True, timeout=580, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert output.returncode == 0, output.stderr + "".join(map(running.log, running.processes))
    assert re.search(r"epoch 2 of 2: loss [\d.]+, 2 workers", output.stdout) and list((tmp_path / "model").glob("ckpt-2.index"))


@pytest.mark.long
def test_data_service_feeds_a_training(machine):
    tasks = list(tasks_of_manifests(documents("data_service/data_service.yaml.jinja", "workers=2")))
    running = machine(tasks)
    address = f"grpc://127.0.0.1:{running.ports['data-service-dispatcher:5050']}"
    output = subprocess.run([sys.executable, str(DEPLOY / "data_service/data_service_client.py"), "--service", address, "--epochs", "2"],
                            capture_output=True, text=True, timeout=580, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert output.returncode == 0, output.stderr + "".join(map(running.log, running.processes))
    assert "1024 examples an epoch" in output.stdout and re.search(r"loss [\d.]+ -> [\d.]+", output.stdout)


def test_flags_of_mnist_are_checked():
    pytest.importorskip("tensorflow")
    mnist = load_program(DEPLOY / "docker/mnist.py")
    folders = ["--data_dir=d", "--train_dir=t"]
    args = mnist.parse_arguments([*folders, "--job_name", "ps", "--task_index=1", "--ps_hosts=a:1,b:2", "--worker_hosts", "c:3", "--sync_replica", "True"])
    assert (args.job_name, args.task_index, args.ps_hosts, args.sync_replica) == ("ps", 1, "a:1,b:2", True)
    assert (args.hidden1, args.hidden2, args.batch_size, args.learning_rate) == (128, 128, 100, 0.01)
    for wrong in (["--job_name=worker", "--ps_hosts=a:1"], ["--job_name=ps", "--worker_hosts=a:1"],
                  ["--job_name=worker", "--ps_hosts=a:1", "--worker_hosts=b:2", "--task_index=1"], ["--job_name=chief"]):
        with pytest.raises(SystemExit):
            mnist.parse_arguments([*folders, *wrong])


def service(name, address):
    ingress = [types.SimpleNamespace(ip=address, hostname=None)] if address else None
    return types.SimpleNamespace(metadata=types.SimpleNamespace(name=name),
                                 status=types.SimpleNamespace(load_balancer=types.SimpleNamespace(ingress=ingress)))


def test_the_client_finds_its_servers_in_kubernetes():
    pytest.importorskip("tensorflow")
    client = load_program(DEPLOY / "distribution_strategy/keras_multi_worker_client.py")

    def resolve(*services, **options):
        api = types.SimpleNamespace(list_service_for_all_namespaces=lambda: types.SimpleNamespace(items=[service(*one) for one in services]))
        return client.resolve_cluster(api=api, **options)

    ours = [("a-b-worker-1", "10.0.0.2"), ("a-b-worker-0", "10.0.0.1"), ("a-b-ps-0", "10.0.0.3")]
    others = [("kubernetes", None), ("a-b-tensorboard-0", "10.0.0.9"), ("worker-0", None)]
    expected = {"worker": ["10.0.0.1:5000", "10.0.0.2:5000"], "ps": ["10.0.0.3:5000"]}
    assert resolve(*ours, *others) == expected
    assert resolve(*ours, ("c-worker-0", None), name="a-b") == expected
    assert resolve(*ours, port=7)["ps"] == ["10.0.0.3:7"]
    with pytest.raises(LookupError, match="worker 0 has no address yet"):
        resolve(("a-worker-0", None), ("a-worker-1", "10.0.0.1"))
    with pytest.raises(LookupError, match="worker 0 has no address yet"):
        resolve(("a-worker-1", "10.0.0.1"))
    with pytest.raises(LookupError, match="no service named"):
        resolve(*others[:2])


# --- Standalone, EC2 ---


@pytest.fixture
def standalone(tmp_path):
    """A function that runs one of the scripts with a master's port of its own."""
    pyspark = pytest.importorskip("pyspark")
    port, = free_ports(1)
    environment = {
        **os.environ, "SPARK_HOME": os.path.dirname(pyspark.__file__), "MASTER": f"spark://127.0.0.1:{port}", "SPARK_RUN_DIR": str(tmp_path / "run"),
        "SPARK_MASTER_WEBUI_PORT": "0", "SPARK_DAEMON_MEMORY": "256m", "MEMORY_PER_WORKER": "1g", "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def run(script, *arguments, **variables):
        return subprocess.run(["bash", str(DEPLOY / "standalone" / script), *arguments], env={**environment, **variables},
                              capture_output=True, text=True, timeout=400)

    yield run
    run("stop_spark.sh")


@pytest.mark.long
def test_standalone_scripts_start_and_stop(standalone, tmp_path):
    result = standalone("start_spark.sh")
    assert result.returncode == 0, result.stdout + result.stderr
    settings = dict(re.findall(r"(\w+)=(\S+)", result.stdout.splitlines()[-1]))
    assert settings["MASTER"].startswith("spark://127.0.0.1:")
    pids = {path.stem: int(path.read_text()) for path in (tmp_path / "run").glob("*.pid")}
    assert set(pids) == {"master", "worker1", "worker2"} and all(os.path.exists(f"/proc/{pid}") for pid in pids.values())
    again = standalone("start_spark.sh")
    assert again.returncode == 1 and "master runs already" in again.stderr
    count = "import sys; from pyspark import SparkContext; sc = SparkContext(sys.argv[1]); print('sum', sc.parallelize(range(10), 2).sum())"
    output = subprocess.run([sys.executable, "-c", count, settings["MASTER"]], capture_output=True, text=True, timeout=300)
    assert "sum 45" in output.stdout, output.stderr
    result = standalone("stop_spark.sh")
    assert result.stdout.splitlines() == ["worker1: stopped", "worker2: stopped", "master: stopped"]
    assert not list((tmp_path / "run").glob("*.pid"))
    wait_until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids.values()), 60, "their end")
    assert standalone("stop_spark.sh").stdout == ""


def test_a_start_that_fails_is_told(standalone, tmp_path):
    (tmp_path / "spark/bin").mkdir(parents=True)
    (tmp_path / "spark/bin/spark-class").write_text("#!/bin/sh\necho no java here\nexit 3\n")
    (tmp_path / "spark/bin/spark-class").chmod(0o755)
    result = standalone("start_spark.sh", SPARK_HOME=str(tmp_path / "spark"))
    assert result.returncode == 1 and "no java here" in result.stderr and "master did not start; its log is" in result.stderr
    assert standalone("start_spark.sh", "both").returncode == standalone("install_spark.sh").returncode == 2


FAKE_AWS = """#!{python}
import json, os, sys
folder, words = os.environ["FAKE"], sys.argv[sys.argv.index("ec2") + 1:]
with open(folder + "/calls", "a") as file:
    file.write(json.dumps(["aws", *words]) + "\\n")
def value(name):
    return words[words.index(name) + 1]
path = folder + "/instances.json"
instances = json.load(open(path)) if os.path.exists(path) else []
if words[0] == "describe-instances":
    role = [word.split("=")[-1] for word in words if "tfos-role" in word]
    print(json.dumps({{"Reservations": [{{"Instances": [one for one in instances if not role or one["Tags"][0]["Value"] == role[0]]}}]}}))
elif words[0] == "describe-security-groups":
    print(json.dumps({{"SecurityGroups": []}}))
elif words[0] == "create-security-group":
    print(json.dumps({{"GroupId": "sg-1"}}))
elif words[0] == "run-instances":
    role = "master" if "Value=master" in value("--tag-specifications") else "worker"
    for _ in range(int(value("--count"))):
        number = len(instances)
        instances.append({{"InstanceId": f"i-{{number}}", "PublicIpAddress": f"198.51.100.{{number}}", "PrivateIpAddress": f"10.0.0.{{number}}",
                           "Tags": [{{"Key": "tfos-role", "Value": role}}]}})
    json.dump(instances, open(path, "w"))
elif words[0] == "terminate-instances":
    os.remove(path)
"""
FAKE_SSH = """#!{python}
import json, os, sys
with open(os.environ["FAKE"] + "/calls", "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
"""


def test_ec2_does_what_it_says(tmp_path):
    """With commands in the place of aws, ssh and scp that note what they are asked for."""
    for name, text in (("aws", FAKE_AWS), ("ssh", FAKE_SSH), ("scp", FAKE_SSH)):
        (tmp_path / name).write_text(text.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "tfos.whl").touch()

    def run(*arguments):
        (tmp_path / "calls").write_text("")
        result = subprocess.run([sys.executable, str(DEPLOY / "ec2/spark_ec2.py"), *arguments], capture_output=True, text=True,
                                env={**os.environ, "FAKE": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        return result, [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]

    launch = ["-k", "key", "-i", "key.pem", "-s", "2", "--wheel", str(tmp_path / "tfos.whl"), "--spot-price", "0.1"]
    result, calls = run(*launch, "launch", "c")
    assert result.returncode == 2 and "--authorized-address" in result.stderr and not calls
    launch += ["--authorized-address", "203.0.113.7/32"]
    result, calls = run(*launch, "launch", "c")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "spark://10.0.0.0:7077"
    made = [call for call in calls if call[:2] == ["aws", "run-instances"]]
    assert [call[call.index("--count") + 1] for call in made] == ["1", "2"]
    assert "--instance-market-options" not in made[0] and "--instance-market-options" in made[1]
    ingress = [call for call in calls if "authorize-security-group-ingress" in call]
    assert len(ingress) == 2 and "203.0.113.7/32" in ingress[1] and "22" in ingress[1] and "0.0.0.0/0" not in str(calls)
    started = [(call[-2], call[-1].split()[-1]) for call in calls if call[0] == "ssh" and "start_spark.sh" in call[-1]]
    assert started == [("ubuntu@198.51.100.0", "master"), ("ubuntu@198.51.100.1", "worker"), ("ubuntu@198.51.100.2", "worker")]
    assert len([call for call in calls if call[0] == "scp" and str(tmp_path / "tfos.whl") in call]) == 3
    result, _ = run(*launch, "launch", "c")
    assert result.returncode == 1 and "is there already" in result.stderr
    assert run("get-master", "c")[0].stdout == "198.51.100.0\n"
    assert ["aws", "reboot-instances", "--instance-ids", "i-1", "i-2"] in run("reboot-slaves", "c")[1]
    assert ["aws", "stop-instances", "--instance-ids", "i-0", "i-1", "i-2"] in run("stop", "c")[1]
    assert run("start", "c")[0].stdout.splitlines()[-1] == "spark://10.0.0.0:7077"
    assert ["aws", "terminate-instances", "--instance-ids", "i-0", "i-1", "i-2"] in run("--yes", "destroy", "c")[1]
    result, _ = run("login", "c")
    assert result.returncode == 1 and "there is no master of a cluster named c" in result.stderr

# SPDX-License-Identifier: Apache-2.0
"""The GPUs of machines of the test's making: NVIDIA's library is one of its own (fake_nvml.c)."""

import json
import os
import subprocess
import sys

import pytest

from tensorflowonspark.launch import node_executable

HERE = os.path.dirname(os.path.abspath(__file__))
LOOK = """
import json
from tensorflowonspark import gpu_info
gpu_info.MAX_RETRIES = 0
found = {"available": gpu_info.is_gpu_available()}
for name, arguments in {"one": (1, 0), "two": (2, 0), "second": (1, 1), "wrapped": (1, 4), "many": (9,)}.items():
    try:
        found[name] = gpu_info.get_gpus(*arguments)
    except RuntimeError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), os.path.join(HERE, "fake_nvml.c")], check=True)
    return folder


def run(command, folder, gpus):
    environment = {name: value for name, value in os.environ.items() if name != "FAKE_GPUS"}
    environment["LD_LIBRARY_PATH"] = f"{folder}:{environment.get('LD_LIBRARY_PATH', '')}"
    if gpus is not None:
        environment["FAKE_GPUS"] = gpus
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=120).stdout)


def look(folder, gpus):
    return run([sys.executable, "-c", LOOK], folder, gpus)


def doctor(folder, gpus):
    checks = run([node_executable(), "doctor", "--json"], folder, gpus)["checks"]
    return next((check["state"], check["detail"]) for check in checks if check["name"] == "gpu")


def test_free_and_busy_gpus(library):
    found = look(library, "fbflf")
    assert found == {"available": True, "one": "0", "two": "0,2", "second": "2", "wrapped": "2",
                     "many": "9 GPUs wanted, 3 free (0, 2, 4); nvidia-smi shows who uses them"}
    assert look(library, "b")["one"] == "1 GPUs wanted, 0 free (none); nvidia-smi shows who uses them"
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

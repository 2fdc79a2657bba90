# SPDX-License-Identifier: Apache-2.0
"""The ops of a group on a GPU of the test's making (tests/gpu): TensorFlow's device, NVIDIA's driver and NCCL are fakes, whose memory the host cannot read."""

import os
import subprocess

import pytest

import gpu_op_cases
from ranks import Ranks, good

tensorflow = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.long
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "gpu")
SIZE = 2


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fakes")
    for name, library in {"fake_cuda": "libcuda.so.1", "fake_nccl": "libnccl.so.2", "fake_device": "libfake_device.so"}.items():
        flags = [f"-Wl,-soname,{library}"]
        if name == "fake_device":
            flags = ["-I", tensorflow.sysconfig.get_include(), *tensorflow.sysconfig.get_link_flags()]
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(folder / library),
                        os.path.join(SOURCES, f"{name}.c"), *flags], check=True)
    return folder


@pytest.fixture(scope="module")
def ranks(libraries, tmp_path_factory):
    with Ranks(tmp_path_factory.mktemp("ranks"), SIZE + 1) as started:  # the last one has no GPU
        assert good(started.run(gpu_op_cases.take_gpu, 0, everyone=SIZE, folder=str(libraries))) == [["/physical_device:GPU:0"]] * SIZE
        yield started


@pytest.fixture(scope="module", params=[("nccl", "by NCCL 2.21.5"), ("host", "through the host: rank 0 (")], ids=["nccl", "host"])
def way(request, ranks):
    """The group of the ranks and how its tensors go."""
    if request.param[0] == "host":
        good(ranks.run(gpu_op_cases.leave_nccl, 0, everyone=SIZE))
    return request.param


def test_ops_on_gpus(ranks, way):
    group, words = way
    for devices, found, sent, joined, route in good(ranks.run(gpu_op_cases.call_all, SIZE, group=group)):
        assert devices == {gpu_op_cases.GPU}
        assert found == {dtype: [[0 if dtype == "int64" else 0.5, 4], [[4]], []] for dtype in found}
        assert sent == [[1, 1, 1], [1], [1]] and joined == [[[1, 1]], [7, 7]]
        assert words in route


def test_weighted_means_on_gpus(ranks, way):
    for rank, (means, share, equal, half, devices) in enumerate(good(ranks.run(gpu_op_cases.mean_all, SIZE, group=way[0]))):
        assert means == [[3, 3], [3], [3]] and share == rank
        assert equal == [[2]] and half == 0.5 and devices == {gpu_op_cases.GPU}


def test_the_script_for_machines_with_gpus(ranks, way):
    group, words = way
    assert all(words in route for route in good(ranks.run(gpu_op_cases.check_all, SIZE, group=group)))


def test_a_rank_without_gpu(ranks):
    (first, route), (second, same), last = good(ranks.run(gpu_op_cases.reduce_ones, SIZE + 1, group="mixed"))
    assert (first, second, last) == (3, 3, (3, None)) and route == same
    assert "through the host: rank 2 (127.0.0.1, pid " in route and route.endswith(") has no GPU")

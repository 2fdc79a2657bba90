# SPDX-License-Identifier: Apache-2.0
"""What the processes of ``ranks`` do with the ops of a group on a GPU of the test's making (tests/gpu)."""

import ctypes
import os
import sys

import tensorflow as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "gpu"))
import exchange_on_gpu  # noqa: E402

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def take_gpu(group, folder):
    """Gives this process a GPU, with a driver and NCCL."""
    from tensorflow.python.framework import load_library

    os.environ["FAKE_CUDA_GPU"] = os.environ["TFOS_RANK"]
    os.environ["TMPDIR"] = folder
    for name in ("libcuda.so.1", "libnccl.so.2"):
        ctypes.CDLL(f"{folder}/{name}")
    load_library.load_pluggable_device_library(f"{folder}/libfake_device.so")
    return [device.name for device in tf.config.list_physical_devices("GPU")]


def leave_nccl(group):
    """Groups that are opened from now on go through the host."""
    os.environ["TFOS_NCCL"] = "0"


def on_gpu(values, dtype):
    tensor = tf.cast(values, dtype)
    with tf.device("GPU:0"):
        return tf.identity(tensor)


def numbers(tensors):
    return [tf.cast(tensor, tf.float64).numpy().tolist() for tensor in tensors]


def call_all(group):
    """Each op on the GPU, eagerly and in a graph; the devices of the outputs."""
    found, devices = {}, set()
    for dtype in ("float16", "bfloat16", "float32", "float64", "int64"):
        tensors = [on_gpu([group.rank, 4], dtype), on_gpu([[8 * group.rank]], dtype), on_gpu([], dtype)]

        def reduce(*given):
            with tf.device("GPU:0"):
                return group.all_reduce(given, "sums", "mean")  # noqa: B023

        eager, traced = reduce(*tensors), tf.function(reduce)(*tensors)
        devices.update(tensor.device for tensor in [*eager, *traced])
        found[dtype] = numbers(eager)
        assert numbers(traced) == found[dtype] and numbers(tensors)[0] == [group.rank, 4]
    with tf.device("GPU:0"):
        sent = group.broadcast([on_gpu([group.rank] * 3, "float32"), on_gpu([group.rank], "int64"), on_gpu([group.rank == 1], "bool")], "weights", 1)
        joined = group.gather([on_gpu(tf.fill([group.rank, 2], group.rank), "float32"), on_gpu([7], "uint8")], "rows")
    devices.update(tensor.device for tensor in [*sent, *joined])
    return devices, found, numbers(sent), numbers(joined), group._handle.gpu_route


def mean_all(group):
    """Means of equal and of unequal weights; a weight of 0 leaves NaN out."""
    def mean(weight, *gradients):
        with tf.device("GPU:0"):
            return group.mean(gradients, weight)

    value = float("nan") if group.rank == 0 else 3.0
    gradients = [on_gpu([value, value], "float32"), on_gpu([value], "float64"), on_gpu([value], "float16")]
    means, share = tf.function(mean)(tf.constant(float(group.rank)), *gradients)
    equal, half = mean(2.0, on_gpu([group.rank * 4.0], "float32"))
    return numbers(means), float(share), numbers(equal), float(half), {tensor.device for tensor in [means[0], means[1], *equal]}


def check_all(group):
    """What the script for machines with GPUs does."""
    return exchange_on_gpu.check_all(tf, group, 1000)


def reduce_ones(group):
    """On the GPU, where there is one."""
    with tf.device("GPU:0"):
        reduced, = group.all_reduce([tf.constant([1.0])], "ones")
    return float(reduced[0]), group._handle.gpu_route

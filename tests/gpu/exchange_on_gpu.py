# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a group exchange on their GPUs, checked: on a machine with GPUs by run.sh, here by the tests, with fakes."""

import ctypes
import os
import time

FLOAT32, SUM = 11, 1  # enum tfos_dtype, enum tfos_reduction


class Span(ctypes.Structure):
    """``struct tfos_collective_gpu_span``"""

    _fields_ = [("data", ctypes.c_void_p), ("source", ctypes.c_void_p), ("count", ctypes.c_int64)]


def _hold(group):
    """The library, and the group in it, for ``tfos_collective_release``."""
    from tensorflowonspark import _tfos

    folder, held = os.path.dirname(_tfos.__file__), ctypes.c_void_p()
    library = ctypes.CDLL(os.path.join(folder, next(name for name in os.listdir(folder) if name.startswith("libtfos.so"))))
    assert library.tfos_collective_acquire(ctypes.c_int64(group._handle.number), ctypes.byref(held), None) == 0
    return library, held


def check_factor(group):
    """A sum in which each rank's elements are multiplied: in C, with memory of the driver's."""
    library, held = _hold(group)
    driver = ctypes.CDLL("libcuda.so.1")
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    values = (ctypes.c_float * 4)(1, 2, 3, 4)
    size = ctypes.c_size_t(ctypes.sizeof(values))
    for result in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
                   driver.cuCtxSetCurrent(context), driver.cuMemAlloc_v2(ctypes.byref(memory), size)):
        assert result == 0, result
    assert driver.cuMemcpyHtoD_v2(memory, values, size) == 0
    factor, message = ctypes.c_double(0.5 * (group.rank + 1)), ctypes.create_string_buffer(1024)
    result = library.tfos_collective_gpu_all_reduce(
        held, b"scaled", ctypes.byref(Span(memory.value, memory.value, 4)), ctypes.c_int64(1), FLOAT32, SUM, ctypes.byref(factor), message)
    assert result == 0, message.raw[4:].partition(b"\0")[0]
    assert driver.cuMemcpyDtoH_v2(values, memory, size) == 0 and driver.cuMemFree_v2(memory) == 0
    library.tfos_collective_release(held)
    total = sum(0.5 * (rank + 1) for rank in range(group.size))
    assert list(values) == [total * value for value in (1, 2, 3, 4)], list(values)


def check_all(tf, group, count):
    """Each op and dtype, and the time of one all-reduce of so many float32. Returns how they went."""
    with tf.device("GPU:0"):
        for dtype in ("float16", "bfloat16", "float32", "float64", "int64"):
            given = tf.identity(tf.constant([group.rank, 8, -3], dtype))
            for reduction, expected in {"sum": (sum(range(group.size)), 8 * group.size, -3 * group.size), "min": (0, 8, -3),
                                        "max": (group.size - 1, 8, -3), "mean": (sum(range(group.size)) / group.size, 8, -3)}.items():
                reduced = group.all_reduce([given], f"{dtype} {reduction}", reduction)[0]
                assert reduced.device.endswith("GPU:0"), reduced.device
                found = tf.cast(reduced, tf.float64).numpy().tolist()
                assert found == [int(value) if dtype == "int64" else value for value in expected], (dtype, reduction, found)
        sent = group.broadcast([tf.identity(tf.constant([group.rank], tf.int64)), tf.identity(tf.constant([group.rank / 2]))], "weights", group.size - 1)
        assert [tensor.numpy().tolist() for tensor in sent] == [[group.size - 1], [(group.size - 1) / 2]], sent
        rows = group.gather([tf.identity(tf.fill([group.rank + 1, 2], group.rank))], "rows")[0]
        assert rows.numpy().tolist() == [[rank] * 2 for rank in range(group.size) for _ in range(rank + 1)], rows
        block = tf.identity(tf.ones([count]))
        for _ in range(2):  # the first one makes connections
            begin = time.monotonic()
            reduced = group.all_reduce([block], "block")[0]
            seconds = time.monotonic() - begin
        assert float(reduced[0]) == group.size and float(reduced[-1]) == group.size
    check_factor(group)
    words = group._handle.gpu_route
    print(f"rank {group.rank} of {group.size}: {words}; all-reduce of {4 * count / 1e6:.0f} MB in {seconds * 1000:.1f} ms", flush=True)
    return words

# SPDX-License-Identifier: Apache-2.0
"""Processes that train in step on this machine, without Spark: each serves calls of functions with the group of the first so many."""

import contextlib
import importlib
import multiprocessing
import os
import time
import traceback


class Ranks:
    """Up to ``most`` processes, started once. A context manager."""

    def __init__(self, folder, most):
        self._folder, self._most = str(folder), most
        self._pipes, self._processes = [], []

    def __enter__(self):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tensorflow", "ranks"])
        for rank in range(self._most):
            pipe, other = context.Pipe()
            process = context.Process(target=serve, args=(other, self._folder, rank), daemon=True)
            process.start()
            other.close()
            self._pipes.append(pipe)
            self._processes.append(process)
        return self

    def __exit__(self, *_):
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self._processes:
            process.join(60)
            if process.is_alive():
                process.kill()

    def pid(self, rank):
        return self._processes[rank].pid

    def run(self, function, size, timeout=300, **arguments):
        """The results of all ranks of a group of ``size``; 0: of one process, or of ``everyone``, without a group. Exceptions are results."""
        return self.results(self.begin(function, size, **arguments), timeout)

    def begin(self, function, size, group="all", everyone=1, **arguments):
        """Another ``group`` is another group of as many ranks."""
        count = size or everyone
        for pipe in self._pipes[:count]:
            pipe.send((function.__module__, function.__name__, size, group, arguments))
        return count

    def has_answered(self, rank, timeout):
        return self._pipes[rank].poll(timeout)

    def results(self, count, timeout=300):
        results = []
        for rank in range(count):
            if not self._pipes[rank].poll(timeout):
                raise TimeoutError(f"rank {rank} has not answered within {timeout} s")
            try:
                results.append(self._pipes[rank].recv())
            except EOFError as error:
                results.append(error)
        return results


def good(results):
    """The results, of which none may be an exception."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def serve(pipe, folder, rank):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
    os.environ["TFOS_RANK"] = str(rank)
    import tensorflow as tf

    groups = {}
    while True:
        call = pipe.recv()
        if call is None:
            break
        module, name, size, group, arguments = call
        try:
            if size and (size, group) not in groups:
                groups[size, group] = open_group(tf, folder, group, rank, size, parameters=True, transport="tcp" if group == "tcp" else "auto")
            result = getattr(importlib.import_module(module), name)(groups.get((size, group)), **arguments)
        except Exception as error:
            result = RuntimeError(f"{type(error).__name__}: {error}", traceback.format_exc())
        pipe.send(result)


def open_group(tf, folder, name, rank, size, **options):
    from tensorflowonspark import _tfos, collectives

    def exchange(stage, value):
        """Through files, written whole."""
        paths = [f"{folder}/{name}-{size}-{stage.replace('/', '-')}-{one}" for one in range(size)]
        with open(paths[rank] + ".new", "w") as file:
            file.write(value)
        os.rename(paths[rank] + ".new", paths[rank])
        while not all(map(os.path.exists, paths)):
            time.sleep(0.002)
        return "[" + ",".join(open(path).read() for path in paths) + "]"

    handle = _tfos.Collective(rank, size, exchange, b"k" * 32, name, host="127.0.0.1", gpu=bool(tf.config.list_logical_devices("GPU")), **options)
    return collectives.Group(tf, handle, rank == 0)

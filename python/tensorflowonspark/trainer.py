# SPDX-License-Identifier: Apache-2.0
"""The trainer: the process that runs the user's function on a node (``python -m tensorflowonspark.trainer``).

The node starts it with descriptor 3 as its link. Its standard output and error go to the executor's log and to the driver. The outcome is
the function's alone: whatever that has done to the streams, its success is one, and its exception is reported with its name.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import faulthandler
import functools
import inspect
import json
import os
import signal
import sys
import threading
from typing import Any, Tuple

from . import _tfos, console, failures, fork_server, fs, gpus
from .results import parts_of
from .TFSparkNode import TFNodeContext

__all__ = ["complete", "main"]


def main() -> None:
    """Runs the function that the node hands over and ends the process with its outcome."""
    fork_server.serve_if_asked(_main)
    _main()


def _main() -> None:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    link = _tfos.Trainer()
    fs.register_on_import()
    status = _run(link)
    # As the interpreter's own end does: waits for the function's threads, calls what it has registered, writes what is buffered.
    flushes = [functools.partial(_flush, name) for name in ("stdout", "stderr")]
    for step in (threading._shutdown, atexit._run_exitfuncs, *flushes):  # type: ignore[attr-defined]
        try:
            step()
        except BaseException as error:
            _print(failures.explain(error, failures.LOG_LIMIT))
    link.close()
    os._exit(status)  # native libraries that do not survive the interpreter's teardown must not turn success into a crash


def _run(link: _tfos.Trainer) -> int:
    pid = os.getpid()
    try:
        context = json.loads(link.context)
        _restore_spark_files(context["user"])
        _share_cores(context)
        gpus.limit_memory(context["gpus"])
        function, args = _load(link)
        if isinstance(args, list):
            sys.argv = args
        result = complete(function(args, TFNodeContext.of(link, context)))
        if os.getpid() == pid:  # the function may return in a process that it has forked, too
            link.check()
            for part in parts_of(result):
                link.put_result(part)
    except SystemExit as end:
        return _exit_status(link, end)
    except BaseException as error:
        return _fail(link, failures.explain(error, failures.LOG_LIMIT), failures.explain(error, failures.MESSAGE_LIMIT))
    return 0


def _share_cores(context: dict) -> None:
    """Gives TensorFlow, before it is imported, this trainer's share of the host's cores, if the user has not said how many it is to use.

    With all cores each, trainers of one host slow each other down. A thread more, of those that run whole operations, waits for the other workers.
    """
    host = _host_of(context["cluster_spec"][context["job_name"]][context["task_index"]])
    addresses = [address for job, tasks in context["cluster_spec"].items() if job != "ps" for address in tasks]
    trainers = sum(_host_of(address) == host for address in addresses)
    if trainers > 1:
        share = max(1, len(os.sched_getaffinity(0)) // trainers)
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(share))
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(share + 1))


def _host_of(address: str) -> str:
    return address.rpartition(":")[0]


def _load(link: _tfos.Trainer) -> Tuple[Any, Any]:
    from pyspark.serializers import CloudPickleSerializer

    return CloudPickleSerializer().loads(link.payload())


def _restore_spark_files(user: dict) -> None:
    """Makes ``SparkFiles.get`` work as it does in a Spark task."""
    from pyspark import SparkFiles

    SparkFiles._root_directory = user.get("spark_files")
    SparkFiles._is_running_on_worker = True


def complete(result: Any) -> Any:
    """The function's result; what it has only returned is run.

    Raises:
        TypeError: it is a generator, which would have to be iterated over.
    """
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"map_fun has returned a generator, {result.__qualname__}, whose code has not run: iterate over it in map_fun")
    return asyncio.run(_await(result)) if inspect.isawaitable(result) else result


async def _await(result: Any) -> Any:
    return await result


def _exit_status(link: _tfos.Trainer, end: SystemExit) -> int:
    """What the interpreter makes of SystemExit: nothing is 0, text is printed and 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    reason = failures.text_of(end) + "\n"
    return _fail(link, reason, reason)


def _fail(link: _tfos.Trainer, text: str, reason: str) -> int:
    _print(text)
    with contextlib.suppress(_tfos.Error):  # the node has gone, or is that of another process
        link.fail(reason)
    return 1


def _print(text: str) -> None:
    """Prints on the process's own stderr if the function has left another that does not take it."""
    if console.show("stderr", text) is not None:
        with contextlib.suppress(OSError):
            os.write(2, text.encode())


def _flush(name: str) -> None:
    stream = getattr(sys, name, None)
    if stream is not None and not getattr(stream, "closed", False):
        stream.flush()


if __name__ == "__main__":
    main()

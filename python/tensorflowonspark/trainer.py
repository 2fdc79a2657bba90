# SPDX-License-Identifier: Apache-2.0
"""The trainer: the process that runs the user's function on a node (``python -m tensorflowonspark.trainer``).

The node starts it with descriptor 3 as its link. Its standard output and error go to the executor's log and to the driver.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import signal
import sys
import threading
import traceback
from typing import Any, Tuple

from . import _tfos
from .TFSparkNode import TFNodeContext

__all__ = ["main"]


def main() -> None:
    """Runs the function that the node hands over and ends the process with its outcome."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    link = _tfos.Trainer()
    status = _run(link)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the function's threads, as the interpreter's own end does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    link.close()
    os._exit(status)  # native libraries that do not survive the interpreter's teardown must not turn success into a crash


def _run(link: _tfos.Trainer) -> int:
    try:
        context = json.loads(link.context)
        _restore_spark_files(context["user"])
        function, args = _load(link)
        if isinstance(args, list):
            sys.argv = args
        function(args, TFNodeContext.of(link, context))
    except SystemExit as end:
        return _exit_status(end)
    except BaseException as error:
        traceback.print_exc()
        link.fail(_explain(error))
        return 1
    return 0


def _load(link: _tfos.Trainer) -> Tuple[Any, Any]:
    from pyspark.serializers import CloudPickleSerializer

    return CloudPickleSerializer().loads(link.payload())


def _restore_spark_files(user: dict) -> None:
    """Makes ``SparkFiles.get`` work as it does in a Spark task."""
    from pyspark import SparkFiles

    SparkFiles._root_directory = user.get("spark_files")
    SparkFiles._is_running_on_worker = True


def _exit_status(end: SystemExit) -> int:
    """What the interpreter makes of SystemExit: nothing is 0, text is printed and 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def _explain(error: BaseException) -> str:
    text = traceback.format_exc()
    if isinstance(error, ModuleNotFoundError):
        text += (f"The Python of this executor is {sys.executable}; install {error.name!r} there, or point "
                 "spark.pyspark.python (or PYSPARK_PYTHON) to a Python that has it.\n")
    return text


if __name__ == "__main__":
    main()

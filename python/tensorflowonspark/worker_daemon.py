# SPDX-License-Identifier: Apache-2.0
"""Spark's process that forks an executor's Python workers, with TensorFlow imported in it (docs/preloading.md).

It is the value of ``spark.python.daemon.module``. What it imports is in the environment variable ``TFOS_PRELOAD``, "tensorflow" where there is none.
"""

import os

from pyspark import daemon

from .fork_server import preload

if __name__ == "__main__":
    preload(os.environ.get("TFOS_PRELOAD", "tensorflow"))
    daemon.manager()

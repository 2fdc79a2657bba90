# SPDX-License-Identifier: Apache-2.0
"""Distributed TensorFlow on Apache Spark, with the interface of TensorFlowOnSpark and a core in C.

Importing the package imports neither TensorFlow nor Spark.
"""

import logging
import os
import sys

# TensorFlow gives the symbols of its own OpenSSL and zlib to every library that is loaded after it: the extension keeps to its own.
_flags = sys.getdlopenflags()
sys.setdlopenflags(_flags | getattr(os, "RTLD_DEEPBIND", 0))  # which is glibc's
try:
    from ._tfos import VERSION as __version__
finally:
    sys.setdlopenflags(_flags)

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = ["__version__"]

# SPDX-License-Identifier: Apache-2.0
"""Distributed TensorFlow on Apache Spark, with the interface of TensorFlowOnSpark and a core in C.

Importing the package imports neither TensorFlow nor Spark.
"""

import logging

from ._tfos import VERSION as __version__

logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = ["__version__"]

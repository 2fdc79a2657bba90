# SPDX-License-Identifier: Apache-2.0
"""The sizes of a cluster, as the application's settings have them; see :mod:`tensorflowonspark.util`."""

from tensorflowonspark.util import num_executors, num_param_servers

__all__ = ["num_executors", "num_param_servers"]

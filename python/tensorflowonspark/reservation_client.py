# SPDX-License-Identifier: Apache-2.0
"""Stops a cluster by its rendezvous's address: ``python -m tensorflowonspark.reservation_client HOST PORT``, as in TensorFlowOnSpark 1."""

from __future__ import annotations

import sys

from .reservation import Client

if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: python -m tensorflowonspark.reservation_client HOST PORT")
    Client((sys.argv[1], int(sys.argv[2]))).request_stop()

# SPDX-License-Identifier: Apache-2.0
"""Processes of one machine that train in step, for benches: those of the tests."""

import os
import sys

__all__ = ["Ranks", "good", "open_group"]

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "tests"))

from ranks import Ranks, good, open_group  # noqa: E402

# SPDX-License-Identifier: Apache-2.0
"""Processes of one machine that train in step, for benches: those of the tests."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "tests"))

import ranks  # noqa: E402


def start(folder, size):
    """``ranks.Ranks`` that serve the functions of the bench that runs."""
    return ranks.Ranks(folder, size)


def good(results):
    for result in results:
        if isinstance(result, Exception):
            raise RuntimeError(str(result.args[-1]))
    return results

# SPDX-License-Identifier: Apache-2.0
"""Keras 3 in step: what several processes train is what one trains on all their rows."""

import numpy as np
import pytest

keras = pytest.importorskip("keras", "3.0")

import keras_cases
from keras_cases import CASES, fit
from ranks import Ranks


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    with Ranks(tmp_path_factory.mktemp("ranks"), 4) as started:
        yield started


def good(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


@pytest.fixture(scope="module")
def single(ranks):
    """What one process makes of each case."""
    return good(ranks.run(fit, 0, names=list(CASES)))[0]


def check(single, results, names, tolerance=2e-6):
    wrong = []
    for name in names:
        for rank, result in enumerate(results):
            difference = np.abs(single[name]["weights"] - result[name]["weights"]).max()
            if difference > tolerance or single[name]["iterations"] != result[name]["iterations"]:
                wrong.append((name, rank, difference, single[name]["iterations"], result[name]["iterations"]))
            if (results[0][name]["weights"] != result[name]["weights"]).any():
                wrong.append((name, rank, "differs from rank 0"))
            for key, values in single[name]["history"].items():
                if not np.allclose(values, result[name]["history"][key], atol=1e-5):
                    wrong.append((name, rank, key, values, result[name]["history"][key]))
    assert not wrong, wrong


def test_two_ranks_train_what_one_process_trains(ranks, single):
    check(single, good(ranks.run(fit, 2, names=list(CASES))), CASES)

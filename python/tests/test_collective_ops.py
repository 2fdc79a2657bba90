# SPDX-License-Identifier: Apache-2.0
"""The ops of a group: every dtype and reduction, tensors of unequal length, weighted means, and ranks that differ."""

from importlib import metadata

import pytest

import op_cases
from ranks import Ranks, good

pytest.importorskip("tensorflow")

SIZE = 3


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    with Ranks(tmp_path_factory.mktemp("ranks"), SIZE) as started:
        yield started


def test_all_reduce(ranks):
    expected = {"sum": ([3, 6, 9, 12, 15], 24), "mean": ([1, 2, 3, 4, 5], 8), "min": ([0, 1, 2, 3, 4], 4), "max": ([2, 3, 4, 5, 6], 12)}
    for found in good(ranks.run(op_cases.reduce_all, SIZE)):
        for (dtype, reduction), values in found.items():
            first, second = expected[reduction]
            assert values == [first, [[second] * 3] * 2], (dtype, reduction)


def test_gather_broadcast_and_values(ranks):
    for gathered, sent, values in good(ranks.run(op_cases.move_all, SIZE)):
        assert gathered == [[[1, 1], [2, 2], [2, 2]], [0, 1, 2], [True] * 3]
        assert sent == [[[root] * 2, root / 2] for root in range(SIZE)]
        assert values == [{"rank": rank} for rank in range(SIZE)]


def test_weighted_mean(ranks):
    for rank, (means, share, half, ended) in enumerate(good(ranks.run(op_cases.mean_all, SIZE))):
        mean = 1 * 1 / 4 + 2 * 3 / 4
        assert means == [[mean] * 2, [[1 * 1 / 4 + 2 * 3 / 4] * 2, [2 * 3 / 4] * 2, [0, 0], [0, 0]], mean, mean]
        assert share == [1 / 4, 3 / 4, 0][rank] and half == "float16"
        assert ended == ([True] if rank == 0 else [True, True])  # who stops is told nothing


def test_large_vectors(ranks):
    assert good(ranks.run(op_cases.memory, SIZE, count=3_000_001)) == [2.0 * SIZE] * SIZE


def test_ranks_that_differ(ranks):
    for result in ranks.run(op_cases.fail, SIZE, group="differing"):
        assert "InvalidArgumentError" in result.args[0] and "differing" in result.args[0], result.args[0]


def test_other_dtypes(ranks):
    assert "gradients of complex128 cannot be averaged" in good(ranks.run(op_cases.mean_of_other_dtypes, 1))[0]


def test_no_such_group(ranks):
    assert good(ranks.run(op_cases.closed, 1)) == ["NotFoundError"]


@pytest.mark.skipif(int(metadata.version("keras").partition(".")[0]) >= 3, reason="Keras 2, of TensorFlow 2.15")
def test_keras_2_is_refused(ranks):
    assert "needs Keras 3, and this is 2." in good(ranks.run(op_cases.distribute_keras_2, 1))[0]

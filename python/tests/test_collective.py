# SPDX-License-Identifier: Apache-2.0
"""Groups as the extension shows them. The ranks are threads of this process, which exchange in memory."""

import json
import threading

import numpy
import pytest

from tensorflowonspark import _tfos

KEY = bytes(range(32))


class Board:
    """Exchanges the values of ranks."""

    def __init__(self, size):
        self.size = size
        self.values = {}
        self.changed = threading.Condition()

    def exchange(self, rank):
        def give(name, value):
            with self.changed:
                values = self.values.setdefault(name, {})
                values[rank] = json.loads(value)
                self.changed.notify_all()
                assert self.changed.wait_for(lambda: len(values) == self.size, 30)
            return json.dumps([values[number] for number in range(self.size)])

        return give


def run_ranks(size, function, **options):
    """What ``function(collective)`` gave on each rank, or raised."""
    board, results = Board(size), [None] * size

    def run(rank):
        try:
            with _tfos.Collective(rank, size, board.exchange(rank), KEY, "workers", host="127.0.0.1", **options) as collective:
                results[rank] = function(collective)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.parametrize("options", [{}, {"transport": "tcp", "trusted": True}])
def test_s46_operations_on_arrays(options):
    def play(collective):
        rank = collective.rank
        first, second = numpy.arange(5, dtype="float32") + rank, numpy.full((2, 3), rank, "float32")
        collective.all_reduce("sum", [first, second], "float32")
        largest = numpy.array(rank, "int64")
        collective.all_reduce("largest", [largest], "int64", "max")
        halves = numpy.full(3, rank, "float16")
        collective.all_reduce("mean", [halves], "float16", reduction="mean")
        weights = numpy.full(4, rank, "float64")
        collective.broadcast("weights", [weights], "float64", root=1)
        data, counts = collective.all_gather("rows", numpy.full(rank, rank, "int32"), "int32")
        part = collective.reduce_scatter("parts", numpy.arange(4, dtype="float64"), [1, 0, 3], "float64", "mean")
        assert numpy.frombuffer(part, "float64").tolist() == [[0], [], [1, 2, 3]][rank]
        collective.barrier("end")
        figures = collective.figures()
        return first.tolist(), second.tolist(), int(largest), halves.tolist(), weights.tolist(), numpy.frombuffer(data, "int32").tolist(), counts, figures

    for result in run_ranks(3, play, **options):
        assert not isinstance(result, Exception), result
        assert result[0] == [3, 6, 9, 12, 15] and result[1] == [[3, 3, 3]] * 2 and result[2] == 2
        assert result[3] == [1, 1, 1] and result[4] == [1] * 4 and result[5] == [1, 2, 2] and result[6] == [0, 1, 2]
        assert result[7]["operations"] == 7 and result[7]["bytes"] >= 44


def test_s46_ranks_that_differ_are_told_both_operations():
    def play(collective):
        collective.all_reduce(f"step {collective.rank}", [numpy.zeros(3, "float32")], "float32")

    for error in run_ranks(2, play):
        assert isinstance(error, _tfos.InvalidError)
        assert 'all-reduce "step 0" (sum of 3 float32' in str(error) and 'all-reduce "step 1"' in str(error)


def test_s46_close_ends_an_operation_of_another_thread():
    def play(collective):
        if collective.rank == 0:
            waiting = threading.Timer(0.2, collective.close)
            waiting.start()
        collective.barrier("never" if collective.rank == 0 else "never")

    def play_alone(collective):
        if collective.rank == 1:
            return threading.Event().wait(1)
        return play(collective)

    results = run_ranks(2, play_alone)
    assert isinstance(results[0], _tfos.ClosedError) and "has closed the group" in str(results[0])


def test_s46_arguments():
    collective = _tfos.Collective(0, 1, lambda name, value: value, KEY, "alone")
    with pytest.raises(ValueError, match="in one piece of memory that may be written"):
        collective.all_reduce("x", [numpy.zeros((4, 4), "float32")[:, 1]], "float32")
    with pytest.raises(ValueError, match="elements of 8 bytes"):
        collective.all_reduce("x", [numpy.zeros(4, "float32")], "float64")
    with pytest.raises(ValueError, match='there is no "float"'):
        collective.all_reduce("x", [], "float")
    with pytest.raises(ValueError, match='not "product"'):
        collective.all_reduce("x", [], "float32", "product")
    with pytest.raises(_tfos.InvalidError, match="only float16"):
        collective.all_reduce("x", [], "bool")
    with pytest.raises(ValueError, match="expected 32 bytes"):
        _tfos.Collective(0, 1, None, b"short", "alone")
    with pytest.raises(ValueError, match="transport"):
        _tfos.Collective(0, 1, None, KEY, "alone", transport="carrier pigeon")
    collective.close()
    with pytest.raises(_tfos.ClosedError):
        collective.barrier("x")


def test_s46_an_exception_of_the_exchange_is_the_cause():
    def exchange(name, value):
        raise KeyError("nobody")

    with pytest.raises(_tfos.IoError, match="exchange of addresses") as caught:
        _tfos.Collective(0, 2, exchange, KEY, "pair")
    assert isinstance(caught.value.__cause__, KeyError)

# SPDX-License-Identifier: Apache-2.0
"""TFParallel.run: instances side by side, with and without a barrier, and their results."""

import sys
import types

import pytest

from tensorflowonspark import TFParallel, _tfos, sessions, slots
from test_cluster import local


def tell(args, ctx):
    """What an instance knows."""
    import os

    return (args["x"] + ctx.worker_num, ctx.executor_id, ctx.num_workers, ctx.absolute_path("/data"), os.environ["CUDA_VISIBLE_DEVICES"])


@pytest.mark.parametrize("use_barrier, count", [(True, 2), (False, 5)])
def test_results_come_in_the_order_of_the_instances(sc, use_barrier, count):
    told = TFParallel.run(sc, local(tell), {"x": 40}, count, use_barrier)
    assert told == [(40 + i, i, count, "file:///data", "") for i in range(count)]


def words(args, ctx):
    return sys.argv == args and ctx.num_workers


def test_a_list_is_the_command_line_while_it_runs(sc):
    assert TFParallel.run(sc, local(words), ["program", "--x"], 2) == [2, 2]
    assert not any(TFParallel.run(sc, lambda args, ctx: __import__("sys").argv == ["program", "--x"], {}, 2))


async def later(args, ctx):
    return args


def generated(args, ctx):
    return (i for i in range(3))


def test_what_a_function_only_returns_is_run(sc):
    assert TFParallel.run(sc, local(later), "a", 2) == ["a", "a"]
    with pytest.raises(_tfos.Error, match="TFParallel: an instance failed: TypeError: map_fun has returned a generator"):
        TFParallel.run(sc, local(generated), None, 1)


def fail(args, ctx):
    raise KeyError(f"instance {ctx.worker_num}")


@pytest.mark.parametrize("use_barrier", [True, False])
def test_a_failure_has_the_exception(sc, use_barrier):
    with pytest.raises(_tfos.Error, match=r"TFParallel: an instance failed: KeyError: 'instance \d'"):
        TFParallel.run(sc, local(fail), {}, 2, use_barrier)


@pytest.mark.long
def test_too_few_slots_are_refused_with_both_numbers(sc):
    with pytest.raises(RuntimeError, match="needs 3 tasks that run at a time, and this application has slots for 2"):
        TFParallel.run(sc, local(tell), {"x": 1}, 3)


@pytest.mark.parametrize("function, count, error", [(5, 1, TypeError), (tell, 0, ValueError), (tell, "two", ValueError)])
def test_arguments_are_checked(sc, function, count, error):
    with pytest.raises(error):
        TFParallel.run(sc, function, {}, count)


class Settings:
    """An application of these settings."""

    sc = None

    def __init__(self, **settings):
        self._settings = settings

    def setting(self, name):
        return self._settings.get(name[len("spark."):].replace(".", "_"))


@pytest.mark.parametrize("settings, size", [
    ({"executor_instances": "4"}, 4),
    ({"executor_instances": "2", "dynamicAllocation_enabled": "true", "dynamicAllocation_maxExecutors": "9"}, 9),
    ({"executor_instances": "2", "dynamicAllocation_maxExecutors": "9"}, 2),
    ({"cores_max": "8", "executor_cores": "3"}, 2),
])  # fmt: skip
def test_the_size_of_a_cluster_by_the_settings(settings, size):
    assert slots.cluster_size(Settings(**settings)) == size


class Clock:
    """Stands for the module ``time``: it is later by what is slept."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(slots, "time", Clock())
    return slots.time


def test_the_size_of_a_cluster_by_its_slots(sc, clock):
    assert slots.cluster_size(sessions.ContextSpark(sc)) == 2
    with pytest.raises(ValueError, match="num_executors is not said"):
        slots.cluster_size(Settings(cores_max="8"))


def test_the_size_of_a_cluster_whose_executors_still_come(monkeypatch, clock):
    """Three within twelve seconds, and one much later; then none at all."""
    spark, comes = Settings(), [7, 10, 12, 40]
    spark.sc = types.SimpleNamespace(master="spark://host:7077")
    monkeypatch.setattr(slots, "_slots", lambda sc: sum(at <= clock.now for at in comes))
    assert slots.cluster_size(spark) == 3
    slots.await_slots(spark, 3, "this")
    comes.clear()
    with pytest.raises(ValueError, match="num_executors is not said"):
        slots.cluster_size(spark)
    with pytest.raises(RuntimeError, match="this needs 1 tasks that run at a time, and this application has slots for 0"):
        slots.await_slots(spark, 1, "this")

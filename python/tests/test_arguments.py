# SPDX-License-Identifier: Apache-2.0
"""What users pass: functions of all kinds, and numbers of numpy and pandas where Python's are asked for. Without Spark and TensorFlow."""

import asyncio
import functools
import json
import math

import numpy as np
import pandas as pd
import pytest

from tensorflowonspark import TFCluster, _tfos, arguments, dataset, frames, gpu_info, gpus, tfrecord, util

COUNTS = [np.int8(3), np.int64(3), np.uint16(3), np.array(3), pd.Series([3]).iloc[0], pd.Series([3], dtype="Int64").iloc[0], np.int64(7) // np.int64(2)]
NO_COUNTS = [True, np.True_, np.array(True), 3.0, np.float64(3), "3", None, np.array([3]), math.nan, b"3", [3]]


# -- S90


def function(args, ctx):
    pass


async def coroutine(args, ctx):
    pass


def generator(args, ctx):
    yield


async def async_generator(args, ctx):
    yield


class Plain:
    def __init__(self, args, ctx):
        pass

    def method(self, args, ctx):
        pass

    def generating(self, args, ctx):
        yield

    def __call__(self, args, ctx):
        pass


class Generating:
    def __call__(self, args, ctx):
        yield


class Awaiting:
    async def __call__(self, args, ctx):
        pass


@functools.wraps(generator)
def wrapper(*args, **kwargs):
    return list(generator(*args, **kwargs))


def with_extra(extra, args, ctx, more=1):
    pass


@pytest.mark.parametrize("map_fun", [
    function, coroutine, Plain, Plain(1, 2).method, Plain(1, 2), Awaiting(), functools.partial(function), functools.partial(with_extra, 1),
    functools.partial(with_extra, 1, 2), lambda *args: None, lambda args, ctx=None: None, wrapper, print, max, dict.fromkeys, asyncio.sleep,
])
def test_s90_what_can_run_is_taken(map_fun):
    arguments.check_function(map_fun)


@pytest.mark.parametrize("map_fun, words", [
    (generator, "gives a generator"), (async_generator, "gives a generator"), (functools.partial(generator), "gives a generator"),
    (functools.partial(functools.partial(generator, 1)), "gives a generator"), (Plain(1, 2).generating, "gives a generator"),
    (Generating(), "gives a generator"), (functools.partial(Generating()), "gives a generator"), (lambda args, ctx: (yield), "gives a generator"),
    (lambda args: None, "too many positional"), (lambda: None, "too many positional"), (lambda args, ctx, more: None, "missing a required argument: 'more'"),
    (with_extra, "missing a required argument: 'ctx'"), (functools.partial(with_extra, extra=1), "too many positional"), (object, "map_fun"),
    (lambda args, ctx, *, must: None, "must"), (Plain.method, "missing a required argument"), (3, "not int"), (None, "not NoneType"), ("f", "not str"),
])
def test_s90_what_cannot_run_is_refused(map_fun, words):
    with pytest.raises(TypeError, match=words):
        arguments.check_function(map_fun)


# -- S86


@pytest.mark.parametrize("value", COUNTS, ids=lambda value: type(value).__name__)
def test_s86_counts_become_python_s(value):
    number = arguments.count("n", value, 1, 3)
    assert number == 3 and type(number) is int
    assert arguments.validation_epochs(value)(6) and not arguments.validation_epochs(value)(4)
    assert arguments.validation_epochs([value])(3) and arguments.validation_epochs(np.array([value]))(3)


@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: type(value).__name__)
def test_s86_what_is_no_count_is_refused(value):
    with pytest.raises(ValueError, match="n must be an integer from 1 to 5, not"):
        arguments.count("n", value, 1, 5)


@pytest.mark.parametrize("value", [0, 6, np.int8(-1), np.uint64(2**63), 2**100])
def test_s86_limits_hold_for_all_counts(value):
    with pytest.raises(ValueError, match="n must be an integer from 1 to 5, not"):
        arguments.count("n", value, 1, 5)


def test_s86_flags_become_python_s():
    for value in (True, np.True_, np.array(True), np.bool_(1), pd.Series([True]).iloc[0], pd.Series([True], dtype="boolean").iloc[0]):
        assert arguments.flag("f", value) is True
    for value in (1, 0, None, "True", np.int8(1), np.array([True]), 1.0, pd.NA):
        with pytest.raises(ValueError, match="f must be True or False, not"):
            arguments.flag("f", value)


def test_s86_times_become_python_s():
    """In the number's own type 600 seconds have no milliseconds."""
    for value in (600, np.int16(600), np.float16(600), np.float32(600), np.array(600.0), pd.Series([600]).iloc[0]):
        number = arguments.seconds("t", value)
        assert type(number) is float and arguments.milliseconds(number) == 600_000
    assert arguments.milliseconds(arguments.seconds("t", math.inf)) == 10**12
    for value in (0, -1, np.int8(0), math.nan, np.float32("nan"), "600", None, True, np.True_, np.array([600.0]), b"1", 1j):
        with pytest.raises(ValueError, match="t must be a number of seconds above 0, not"):
            arguments.seconds("t", value)


def test_s86_arguments_of_run():
    given = arguments.run_options(np.int64(4), np.int8(1), np.False_, np.int64(1), np.False_, "chief", np.float32(60), np.True_, np.True_, np.True_)
    assert given == (4, 1, False, 1, False, 60.0, True, True, True)
    assert [type(value) for value in given] == [int, int, bool, int, bool, float, bool, bool, bool]
    with pytest.raises(ValueError, match="leaves no worker"):
        arguments.run_options(np.int64(2), np.int64(1), False, 1, False, None, 60, np.True_, True)
    with pytest.raises(TypeError, match="num_executors must be an integer of 1 or more, not .*2.0"):
        arguments.run_options(np.float64(2), 0, False, 1, False, None, 60, False, True)


def options(three, true, ten):
    return dataset.options_of(three, "pad", true, ten, None, three, three, three)


def test_s86_arguments_of_get_dataset():
    given = options(np.int32(3), np.True_, np.int8(10))
    assert given == options(3, True, 10)
    assert json.loads(json.dumps(given)) == given
    sizes = dataset.column_options_of({"x": (np.int64(28), np.int8(2)), "y": np.int64(3), "z": np.array([4, 5])}, None, {"w": np.int64(9)}, None,
                              {"x": np.float32(0.5), "y": np.int8(-1), "z": np.True_})
    assert sizes == dataset.column_options_of({"x": (28, 2), "y": 3, "z": (4, 5)}, None, {"w": 9}, None, {"x": 0.5, "y": -1, "z": True})
    assert json.loads(json.dumps([list(size[2]) for size in sizes])) == [[28, 2], [3], [4, 5], [9]]
    assert dataset.prefetch_of(np.int8(-1)) == -1
    for shape in ((), (28, 0), "28", (28, 2.0), {28: 28}, 28.0, np.array([2.0])):
        with pytest.raises(ValueError, match=r"shapes\['x'\] must be a shape such as \(28, 28\)"):
            dataset.column_options_of({"x": shape}, None, None, None, None)


def test_s86_arguments_of_tfrecord(tmp_path):
    path = str(tmp_path / "records.gz")
    assert tfrecord.write(path, {"x": np.arange(10) / 10}, level=np.int64(9), allow_rounding=np.True_) > 0
    with pytest.raises(ValueError, match="allow_rounding must be True or False, not 1"):
        tfrecord.write(path, {"x": np.arange(10)}, allow_rounding=1)
    sizes = [batch.num_rows for batch in tfrecord.read(path, batch_rows=np.int16(4), max_record_size=np.int64(1 << 20))]
    assert sizes == [4, 4, 2]
    assert tfrecord.infer_schema(path, limit=np.uint8(3), max_record_size=np.int32(1 << 20)).names == ["x"]


def test_s86_arguments_of_gpu_info(monkeypatch):
    class Allocation:
        def __init__(self, number, preferred, timeout_ms, owner):
            self.found = ["0", "1", "2"][preferred:preferred + number]

        def ids(self):
            return ",".join(self.found)

        def close(self):
            pass

    monkeypatch.setattr(_tfos, "GpuAllocation", Allocation)
    monkeypatch.setattr(gpu_info, "is_gpu_available", lambda: True)
    assert gpu_info.get_gpus(np.int64(2), np.int8(0), gpu_info.AS_LIST) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    util.single_node_env(np.int64(1), np.int64(1), ["a:1", "a:2"])
    import os
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    with pytest.raises(ValueError, match="num_gpu must be an integer of 0 or more, not 1.5"):
        gpu_info.get_gpus(1.5)
    gpu_info.give_back()
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    plan = gpus.plan(None, type("Args", (), {"num_gpus": np.int64(2)}), None, np.float32(0.5), None)
    assert (plan.counts["worker"], plan.fraction) == (2, 0.5)


def test_s86_values_to_agree_on():
    value = {"rows": np.int64(3), "loss": np.float32(0.5), "is_done": np.True_, "sizes": np.array([1, 2])}
    assert json.loads(json.dumps(value, default=arguments.plain)) == {"rows": 3, "loss": 0.5, "is_done": True, "sizes": [1, 2]}
    with pytest.raises(TypeError, match="object is not among what JSON can hold"):
        json.dumps(object(), default=arguments.plain)


def test_data_that_spark_does_not_have_is_named_with_what_makes_it_spark_s():
    koalas = type("DataFrame", (), {"to_spark": None, "to_records": None})
    koalas.__module__ = "pyspark.pandas.frame"
    for data, words in [
        ([1], r"list: spark.createDataFrame\(\) or sc.parallelize\(\) makes one of it"), (np.zeros(2), r"numpy.ndarray: .*parallelize\(\)"),
        (pd.DataFrame({"x": [1]}), r"pandas\..*DataFrame: spark.createDataFrame\(\) makes one of it"),
        (koalas(), r"pyspark.pandas.frame.DataFrame: its to_spark\(\) gives one"), (None, "NoneType$"), ("path", "str$"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"^train\\(\\) takes a DataFrame, not {words}"):
            frames.check_rows(data, "train() takes a DataFrame")


@pytest.mark.parametrize("argument", ["timeout", "grace_secs"])
@pytest.mark.parametrize("value", ["30", None, math.nan])
def test_shutdown_refuses_times_before_it_ends_anything(argument, value):
    cluster = object.__new__(TFCluster.TFCluster)  # which has nothing to end
    with pytest.raises(ValueError, match=f"{argument} must be a number of seconds, .*not {value!r}"):
        cluster.shutdown(**{argument: value})

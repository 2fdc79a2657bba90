# SPDX-License-Identifier: Apache-2.0
"""MirroredStrategyRunner as spark-tensorflow-distributor has it: tasks, TF_CONFIG, GPUs, and what is refused."""

import json
import os
import types

import pytest

from spark_tensorflow_distributor import MirroredStrategyRunner, mirrored_strategy_runner
from tensorflowonspark import _tfos
from test_cluster import local


def tell(base=0):
    """TF_CONFIG, and what all tasks have for their number."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    everyone = context.allGather(str(base + context.partitionId()))
    return json.loads(os.environ["TF_CONFIG"]), everyone, os.environ["CUDA_VISIBLE_DEVICES"]


def test_the_result_of_the_first_task(sc):
    config, everyone, gpus = MirroredStrategyRunner(num_slots=2, use_gpu=False, use_custom_strategy=True).run(local(tell), base=5)
    assert everyone == ["5", "6"] and gpus == ""
    assert config["task"] == {"type": "worker", "index": 0} and len(set(config["cluster"]["worker"])) == 2


def replicas():
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    return type(strategy).__name__, strategy.num_replicas_in_sync


@pytest.mark.long
def test_a_function_runs_in_the_scope_of_a_strategy(sc):
    assert MirroredStrategyRunner(num_slots=2, use_gpu=False).run(local(replicas)) == ("CollectiveAllReduceStrategy", 2)


def test_local_mode_leaves_the_environment_as_it_was(sc, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7,8")
    runner = MirroredStrategyRunner(num_slots=1, local_mode=True, use_gpu=False, use_custom_strategy=True)
    assert runner.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"]) == "" and os.environ["CUDA_VISIBLE_DEVICES"] == "7,8"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert runner.run(lambda x: x, x=3) == 3 and "CUDA_VISIBLE_DEVICES" not in os.environ
    with pytest.raises(ValueError, match="num_slots=2: in local mode without GPUs there is one slot"):
        MirroredStrategyRunner(num_slots=2, local_mode=True, use_gpu=False).run(lambda: None)


@pytest.mark.parametrize("visible, addresses, owned", [
    (None, ["0", "2"], ["0", "2"]), ("", ["1"], ["1"]), ("10,11,12", ["0", "2"], ["10", "12"]), ("GPU-a,GPU-b", ["1"], ["GPU-b"]),
])  # fmt: skip
def test_gpus_are_those_that_spark_gave(monkeypatch, visible, addresses, owned):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    resources = {"gpu": types.SimpleNamespace(addresses=addresses)}
    assert mirrored_strategy_runner._owned_gpus(resources, "gpu") == owned


@pytest.mark.parametrize("addresses, name, words", [
    (["01"], "gpu", "names '01', which CUDA_VISIBLE_DEVICES does not take"), (["a"], "gpu", "names 'a'"), (["-1"], "gpu", "names '-1'"),
    (["0"], "fpga", "no resource 'fpga' here; it has given 'gpu'"), (["5"], "gpu", "GPU 5, and CUDA_VISIBLE_DEVICES=0,1 names only 2"),
])  # fmt: skip
def test_wrong_gpus_are_refused(monkeypatch, addresses, name, words):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(ValueError, match=words):
        mirrored_strategy_runner._owned_gpus({"gpu": types.SimpleNamespace(addresses=addresses)}, name)


class Conf(dict):
    def getConf(self):
        return self


@pytest.mark.parametrize("amount, slots, tasks", [("1", 8, 8), ("2", 7, 4), ("4", 4, 1), ("2.0", 3, 2)])
def test_the_number_of_tasks(sc, amount, slots, tasks):
    runner = MirroredStrategyRunner(num_slots=slots, use_gpu=False)
    assert runner.get_num_tasks() == slots
    runner._use_gpu, runner.sc = True, Conf({"spark.task.resource.gpu.amount": amount})
    assert runner.get_num_tasks() == tasks
    shares = [len(worker._gpus(types.SimpleNamespace(resources=lambda: {"gpu": types.SimpleNamespace(addresses=list("0123"))}), i))
              for worker in [mirrored_strategy_runner._Worker(b"", slots, tasks, "gpu", True)] for i in range(tasks)]
    assert sum(shares) == slots and max(shares) - min(shares) <= 1


def test_what_is_refused(sc):
    for count in (0, -1):
        with pytest.raises(ValueError, match=f"num_slots must be above 0, not {count}"):
            MirroredStrategyRunner(num_slots=count)
    with pytest.raises(RuntimeError, match="spark.task.resource.gpu.amount is not set"):
        MirroredStrategyRunner(num_slots=2)
    runner = MirroredStrategyRunner(num_slots=2, use_gpu=False)
    runner._use_gpu, runner.sc = True, Conf({"spark.task.resource.gpu.amount": "0.5"})
    with pytest.raises(ValueError, match="is 0.5, and must be 1 or more"):
        runner.get_num_tasks()
    runner.sc = Conf({"spark.ssl.enabled": "true"})
    assert runner._must_encrypt()
    runner.sc["tensorflow.spark.distributor.ignoreSsl"] = "TRUE"
    assert not runner._must_encrypt()
    with pytest.raises(RuntimeError, match="needs 3 tasks that run at a time, and this application has slots for 2"):
        MirroredStrategyRunner(num_slots=3, use_gpu=False).run(lambda: None)


def fail():
    raise KeyError("here")


def test_a_failure_has_the_exception(sc):
    with pytest.raises(_tfos.Error, match="MirroredStrategyRunner: the training failed: .*'here'"):
        MirroredStrategyRunner(num_slots=2, use_gpu=False, use_custom_strategy=True).run(local(fail))

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


def fit_for_one_process(rows):
    """A function that knows nothing of workers: a dataset, arrays, a validation and an evaluation, of numbers that no batch size divides."""
    import keras
    import numpy as np
    import tensorflow as tf

    random = np.random.RandomState(1)
    x = random.randn(rows, 5).astype("float32")
    y = (x @ random.randn(5, 3)).argmax(1)
    keras.utils.set_random_seed(2)
    model = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(8, activation="tanh"), tf.keras.layers.Dense(3)])
    model.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(30)
    history = model.fit(dataset, epochs=2, verbose=0, validation_data=(x[:50], y[:50]), validation_batch_size=20).history
    model.fit(x, y, batch_size=25, shuffle=False, verbose=0)
    return [weight.tolist() for weight in model.get_weights()], history, model.evaluate(dataset.repeat(1), verbose=0)


REFUSED = "by which the workers of a tf.distribute strategy talk, encrypt nothing"


def make_servers_and_train():
    """What each way to TensorFlow's servers says, and the losses of a training that needs none."""
    import keras
    import numpy as np
    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    texts = []
    for make in (tf.distribute.MultiWorkerMirroredStrategy, tf.distribute.Server.create_local_server,
                 lambda: tf.config.experimental_connect_to_host("127.0.0.1:1")):
        try:
            make()
        except RuntimeError as error:
            texts.append(str(error))
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.linspace(0, 1, 64)[:, None]
    return texts, distribute(model).fit(x, 2 * x, epochs=3, verbose=0).history["loss"]


def ask_for_a_strategy():
    import tensorflow as tf

    try:
        tf.distribute.get_strategy()
    except RuntimeError as error:
        return str(error)


@pytest.mark.long
def test_a_keras_3_function_trains_as_in_one_process(sc, monkeypatch):
    import numpy as np

    keras = pytest.importorskip("keras", "3.5")
    del keras
    alone = MirroredStrategyRunner(num_slots=1, local_mode=True, use_gpu=False).run(local(fit_for_one_process), rows=121)
    runner = MirroredStrategyRunner(num_slots=2, use_gpu=False)
    monkeypatch.setattr(runner, "_must_encrypt", lambda: True)  # as with spark.ssl.enabled
    weights, history, evaluation = runner.run(local(fit_for_one_process), rows=121)
    for one, other in zip(weights, alone[0]):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    for name in history:
        np.testing.assert_allclose(history[name], alone[1][name], rtol=1e-4)
    np.testing.assert_allclose(evaluation, alone[2], rtol=1e-4)
    assert REFUSED in runner.run(local(ask_for_a_strategy))
    runner._use_custom_strategy = True
    texts, losses = runner.run(local(make_servers_and_train))
    assert all(REFUSED in text for text in texts) and len(texts) == 3 and losses[-1] < losses[0]


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

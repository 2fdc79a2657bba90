# SPDX-License-Identifier: Apache-2.0
"""The example of the distributor's README, as it is there, on two executors with four GPUs each, of which TensorFlow sees none.

The digits are random numbers: nothing is downloaded.
"""

import re

import pytest

import spark_tensorflow_distributor
from spark_tensorflow_distributor import MirroredStrategyRunner

with open("README.md") as file:
    EXAMPLE = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)


class WithoutNetwork(MirroredStrategyRunner):
    """Gives the function random digits, and keeps what ``fit`` has told."""

    told = None

    def run(self, train_fn, **kwargs):
        def with_digits():
            import numpy as np
            import tensorflow as tf

            random = np.random.RandomState(0)
            tf.keras.datasets.mnist.load_data = lambda path: ((random.randint(0, 256, (640, 28, 28)), random.randint(0, 10, 640)), None)
            fits = []
            original = tf.keras.Model.fit
            tf.keras.Model.fit = lambda *args, **named: fits.append(original(*args, **named).history)
            try:
                train_fn(**kwargs)
            finally:
                tf.keras.Model.fit = original
            return fits

        WithoutNetwork.told = super().run(with_digits)


@pytest.mark.parametrize("num_workers", [2], indirect=True)
@pytest.mark.parametrize("num_gpus_per_worker", [4], indirect=True)
@pytest.mark.parametrize("extra_spark_configs", [{"spark.task.resource.gpu.amount": "4", "spark.executor.memory": "1g"}], indirect=True)
def test_the_example_of_the_readme(num_workers, num_gpus_per_worker, extra_spark_configs, monkeypatch):
    monkeypatch.setattr(spark_tensorflow_distributor, "MirroredStrategyRunner", WithoutNetwork)
    exec(EXAMPLE, {})
    [history] = WithoutNetwork.told
    assert len(history["loss"]) == 3 and all(0 < loss < 10 for loss in history["loss"])

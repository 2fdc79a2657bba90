# SPDX-License-Identifier: Apache-2.0
"""What a step's time is spent on, and who is waited for: two workers, of which one is made slow in one way after the other."""

import json
import subprocess

import pytest

from conftest import wait_until
from local_cluster import Nodes
from tensorflowonspark import launch
from test_cluster import local

pytest.importorskip("keras", "3.5")


def fit_slowly(args, ctx):
    """Fits until the test has seen the worker wait for data, and then compute longer than the chief."""
    import os
    import time

    import keras
    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    has_seen = lambda what: os.path.exists(f"{args}/{what}")  # noqa: E731
    is_slow = ctx.job_name == "worker"

    def rows():
        while not has_seen("compute"):
            if is_slow and not has_seen("data"):
                time.sleep(0.02)
            yield [[1.0]] * 4, [[1.0]] * 4

    class Dawdle(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if is_slow and has_seen("data"):
                time.sleep(0.02)

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    spec = tf.TensorSpec([4, 1], tf.float32)
    dataset = tf.data.Dataset.from_generator(rows, output_signature=(spec, spec)).prefetch(2)
    distribute(model).fit(dataset, epochs=1, verbose=0, callbacks=[Dawdle()])


@pytest.mark.long
def test_a_straggler_is_named_with_its_cause(tmp_path):
    with Nodes(tmp_path, local(fit_slowly), str(tmp_path), 2) as cluster:
        def status():
            return json.loads(cluster.rendezvous.status())

        for cause, part in (("data", "step_data_ms"), ("compute", "step_compute_ms")):
            wait_until(lambda: (status()["progress"]["straggler"] or {}).get("cause") == cause, 120, cause)  # noqa: B023
            found = status()
            straggler, (chief, worker) = found["progress"]["straggler"], found["nodes"]
            assert straggler["node"] == "worker:0" and straggler["executor_id"] == 1 and straggler["wait"] > 0.1
            assert worker[part] > chief[part] and chief["step_wait_ms"] > worker["step_wait_ms"]
            for node in (chief, worker):
                parts = [node[f"step_{name}_ms"] for name in ("compute", "exchange", "wait", "data")]
                assert sum(parts) == pytest.approx(node["step_ms"], rel=0.01, abs=0.01)
            shown = subprocess.run([launch.node_executable(), "status"], capture_output=True, text=True, check=True).stdout
            words = {"data": "which waits for data", "compute": "which computes longer"}[cause]
            assert f"the others wait for worker:0, {words}: " in shown and "  other workers " in shown
            (tmp_path / cause).touch()
        cluster.wait()

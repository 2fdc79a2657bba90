# SPDX-License-Identifier: Apache-2.0
"""Clusters that are started again after a node was killed, in both input modes."""

import json
import os
import signal
import threading

import pytest

from conftest import wait_until
from tensorflowonspark import TFCluster, _tfos
from test_cluster import FEED, local

ROWS, BATCH, EPOCHS = 400, 10, 3


def fit_and_die(args, ctx):
    """Fits in step on what is fed, resumes from the backup, and waits once, on one node, in its second epoch, to be killed. Writes each epoch's steps."""
    import json
    import os
    import threading

    import tensorflow as tf

    from tensorflowonspark.keras import distribute

    steps = {}

    class Watch(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.epoch = epoch
            steps[epoch] = 0

        def on_train_batch_end(self, batch, logs=None):
            steps[self.epoch] += 1
            if (ctx.executor_id, self.epoch, batch) == (1, 1, 5) and not os.path.exists(args["died"]):
                open(args["died"], "w").close()
                threading.Event().wait()

    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model = distribute(model)
    backup = tf.keras.callbacks.BackupAndRestore(f"{args['out']}/backup", delete_checkpoint=False)  # the chief's
    dataset = ctx.get_dataset(args["batch"], uneven="pad", dtypes="float32")
    model.fit(dataset, epochs=args["epochs"], verbose=0, callbacks=[backup, Watch()])
    with open(f"{args['out']}/{ctx.executor_id}", "w") as file:
        json.dump(steps, file)


@pytest.mark.long
def test_fit_goes_on_with_the_epoch_in_which_a_worker_was_killed(sc, tmp_path, caplog):
    pytest.importorskip("keras", "3.0")
    args = {"out": str(tmp_path), "died": str(tmp_path / "died"), "batch": BATCH, "epochs": EPOCHS}
    rows = sc.parallelize([([i / ROWS], [2 * i / ROWS]) for i in range(ROWS)], 4)
    with TFCluster.run(sc, local(fit_and_die), args, 2, 0, input_mode=FEED, max_restarts=2) as cluster:
        def kill():
            wait_until(lambda: os.path.exists(args["died"]) and cluster._status()["progress"]["epochs_passed"] == 1, 200, "the second epoch")
            os.kill(cluster._status()["nodes"][1]["trainer_pid"], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        cluster.train(rows, EPOCHS)
        thread.join()
        assert cluster.restarts == 1 and len(cluster.cluster_info) == 2  # other attributes are the present cluster's
    one, other = [json.loads((tmp_path / name).read_text()) for name in "01"]
    assert list(one) == list(other) == ["1", "2"]  # the first was done
    assert one == other and all(2 * BATCH * steps >= ROWS for steps in one.values())
    assert "restart 1 of 2: the functions begin anew, and the rows are fed again from the first of epoch 2 of 3" in caplog.text


def die_at_first(args, ctx):
    """Is killed as often as its argument says."""
    import os
    import signal

    marks = [f"{args['out']}/{number}" for number in range(args["deaths"])]
    for mark in marks:
        if ctx.executor_id == 1 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    if ctx.executor_id == 1:
        open(f"{args['out']}/done", "w").close()


@pytest.mark.long
def test_functions_that_read_for_themselves_begin_anew(sc, tmp_path):
    cluster = TFCluster.run(sc, local(die_at_first), {"out": str(tmp_path), "deaths": 1}, 2, 0, max_restarts=1)
    cluster.shutdown()
    assert sorted(os.listdir(tmp_path)) == ["0", "done"] and cluster.restarts == 1


@pytest.mark.long
def test_the_last_failure_is_raised(sc, tmp_path):
    cluster = TFCluster.run(sc, local(die_at_first), {"out": str(tmp_path), "deaths": 5}, 2, 0, max_restarts=1)
    with pytest.raises(_tfos.Error, match=r"(?s)worker:1 .*signal 9 \(Killed\).*was started again 1 times before that \(max_restarts=1\)"):
        cluster.shutdown()
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_what_is_no_failure_of_a_node_restarts_nothing(sc, tmp_path):
    with pytest.raises(ValueError, match="max_restarts must be an integer of 0 or more"):
        TFCluster.run(sc, local(die_at_first), {}, 2, 0, max_restarts=-1)

    def wait(args, ctx):
        import threading

        threading.Event().wait()

    cluster = TFCluster.run(sc, wait, None, 2, 0, input_mode=FEED, max_restarts=1)
    with pytest.raises(ValueError, match="train"):
        cluster.train([1, 2, 3], 1)
    with pytest.raises(_tfos.TimedOutError):
        cluster.shutdown(timeout=1)
    assert cluster.restarts == 0

# SPDX-License-Identifier: Apache-2.0
"""MirroredStrategyRunner in an application with spark.ssl.enabled: Keras 3 trains, and TensorFlow's servers, which do not encrypt, are refused."""

import os
import shutil
import subprocess

import pytest

from conftest import make_context
from spark_tensorflow_distributor import MirroredStrategyRunner
from test_cluster import local

pytest.importorskip("keras", "3.5")

pytestmark = pytest.mark.long

REFUSED = "by which the workers of a tf.distribute strategy talk, encrypt nothing"


@pytest.fixture(scope="module")
def sc(tmp_path_factory):
    """Two executors of an application with Spark's TLS."""
    store, password = str(tmp_path_factory.mktemp("ssl") / "keys"), "changeit"
    keytool = os.path.join(os.environ["JAVA_HOME"], "bin", "keytool") if "JAVA_HOME" in os.environ else shutil.which("keytool")
    subprocess.run([keytool, "-genkeypair", "-keystore", store, "-storepass", password, "-alias", "spark", "-keyalg", "RSA", "-dname", "CN=localhost"],
                   check=True)
    context = make_context("local-cluster[2,1,1024]", spark_ssl_enabled=True, spark_ssl_protocol="TLSv1.3", spark_ssl_keyStore=store,
                           spark_ssl_keyStorePassword=password, spark_ssl_keyPassword=password)
    yield context
    context.stop()


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


def test_a_keras_3_function_trains_as_in_one_process(sc):
    import numpy as np

    alone = MirroredStrategyRunner(num_slots=1, local_mode=True, use_gpu=False).run(local(fit_for_one_process), rows=121)
    runner = MirroredStrategyRunner(num_slots=2, use_gpu=False)
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

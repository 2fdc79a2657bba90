# SPDX-License-Identifier: Apache-2.0
"""A network with one hidden layer as a graph of TensorFlow 1, and what the examples here do around it."""

import contextlib
from typing import Any, NamedTuple

PIXELS, HIDDEN, DIGITS = 784, 128, 10


class Network(NamedTuple):
    """Tensors and operations of the graph."""

    images: Any  #: float32 (rows, 784), between 0 and 1
    labels: Any  #: float32 (rows, 10), one of them 1
    features: Any  #: float32 (rows, 128), the hidden layer
    scores: Any
    label: Any
    prediction: Any
    loss: Any
    accuracy: Any
    global_step: Any
    train: Any
    optimizer: Any


def build(images=None, labels=None, sync_workers=0):
    """The network in the default graph, on placeholders unless tensors are given. Of so many workers the gradients of each are one step."""
    import tensorflow as tf

    v1 = tf.compat.v1
    images = v1.placeholder(tf.float32, [None, PIXELS], name="image") if images is None else images
    labels = v1.placeholder(tf.float32, [None, DIGITS], name="label") if labels is None else labels
    hidden_weights = v1.get_variable("hid_w", [PIXELS, HIDDEN], initializer=v1.truncated_normal_initializer(stddev=1 / 28))
    hidden_bias = v1.get_variable("hid_b", [HIDDEN], initializer=v1.zeros_initializer())
    weights = v1.get_variable("sm_w", [HIDDEN, DIGITS], initializer=v1.truncated_normal_initializer(stddev=HIDDEN**-0.5))
    bias = v1.get_variable("sm_b", [DIGITS], initializer=v1.zeros_initializer())
    features = tf.nn.relu(images @ hidden_weights + hidden_bias, name="features")
    logits = features @ weights + bias
    label, prediction = tf.argmax(labels, 1), tf.argmax(logits, 1, name="prediction")
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels, logits), name="loss")
    global_step = v1.train.get_or_create_global_step()
    optimizer = v1.train.AdagradOptimizer(0.05)
    if sync_workers:
        optimizer = v1.train.SyncReplicasOptimizer(optimizer, sync_workers, sync_workers)
    return Network(
        images, labels, features, tf.nn.softmax(logits, name="scores"), label, prediction, loss,
        tf.reduce_mean(tf.cast(tf.equal(label, prediction), tf.float32), name="accuracy"), global_step,
        optimizer.minimize(loss, global_step=global_step), optimizer,
    )


@contextlib.contextmanager
def on_worker(cluster, ctx):
    """A graph whose variables lie on the parameter servers."""
    import tensorflow as tf

    v1 = tf.compat.v1
    setter = v1.train.replica_device_setter(worker_device=f"/job:worker/task:{ctx.task_index}", cluster=cluster)
    with tf.Graph().as_default(), v1.device(setter):
        yield


def arrays_of(rows):
    """Images between 0 and 1, and labels one of which is 1, of rows (784 pixels, a label or ten)."""
    import numpy as np

    images = np.array([row[0] for row in rows], "float32") / 255
    labels = np.array([row[1] for row in rows])
    return images, np.eye(DIGITS, dtype="float32")[labels] if labels.ndim == 1 else labels.astype("float32")


def train_step(ctx, session, network, rows):
    """Trains on the rows, and reports how well. Returns the number of the step."""
    images, labels = arrays_of(rows)
    tensors = {network.images: images, network.labels: labels}
    _, number, loss, accuracy = session.run([network.train, network.global_step, network.loss, network.accuracy], tensors)
    ctx.report(step=number, loss=loss, accuracy=accuracy)
    return number


def export(ctx, checkpoints, folder, signatures):
    """The newest checkpoint as a SavedModel, whose input is ``image``. ``signatures``: a name of each, and which of the network's tensors it gives."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        network = build()
        v1.train.Saver().restore(session, tf.train.latest_checkpoint(ctx.absolute_path(checkpoints)))
        ctx.export_saved_model(session, ctx.absolute_path(folder), "serve", {
            name: {"inputs": {"image": network.images}, "outputs": {output: getattr(network, output)}, "method_name": "tensorflow/serving/predict"}
            for name, output in signatures.items()
        })


def add_cluster_arguments(parser, executors):
    """The flags of the cluster and of its training."""
    parser.add_argument("--batch_size", help="rows a step and worker", type=int, default=100)
    parser.add_argument("--cluster_size", help="number of nodes in the cluster, one of them a parameter server", type=int, default=executors)
    parser.add_argument("--epochs", help="number of epochs", type=int, default=1)
    parser.add_argument("--steps", help="steps at most", type=int, default=1000)
    parser.add_argument("--tensorboard", help="run TensorBoard beside a worker", action="store_true")


def add_arguments(parser, executors):
    """The flags of the programs that both train and answer on a cluster."""
    add_cluster_arguments(parser, executors)
    parser.add_argument("--mode", help="what to do", choices=["train", "inference"], default="train")
    parser.add_argument("--model", help="where checkpoints go, or are", default="mnist_model")
    parser.add_argument("--output", help="where the predictions go", default="predictions")
    parser.add_argument("--rdma", help="use InfiniBand or RoCE", action="store_true")
    parser.add_argument("--readers", help="files to read side by side", type=int, default=1)

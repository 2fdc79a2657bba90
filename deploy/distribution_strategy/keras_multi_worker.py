# SPDX-License-Identifier: Apache-2.0
"""Trains a Keras model in step on all workers that TF_CONFIG names: MultiWorkerMirroredStrategy with a loop of its own, which Keras 2 and 3 take.

    keras_multi_worker.py MODEL_DIR

MODEL_DIR gets checkpoints and event files, and must be reachable by all tasks. A worker that starts again goes on with the newest checkpoint. An
evaluator, where TF_CONFIG has one, evaluates each checkpoint.
"""

import argparse
import json
import os
import sys

import numpy as np
import tensorflow as tf

BATCH_SIZE = 32


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", help="folder for checkpoints, such as gs://BUCKET/example")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps_per_epoch", type=int, default=100)
    return parser.parse_args(argv)


def take_task():
    """The kind and the index of this task. Strategies are for those who train, so TF_CONFIG is left without the evaluator."""
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    task, cluster = config.get("task", {}), config.get("cluster", {})
    kind, index = task.get("type", "worker"), int(task.get("index", 0))
    if cluster.get("ps"):
        sys.exit("this program trains without parameter servers: set ps_replicas to 0, or train by keras_multi_worker_client.py")
    cluster.pop("evaluator", None)
    if kind == "evaluator" or not cluster:
        os.environ.pop("TF_CONFIG", None)
    else:
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
    return kind, index, "chief" in cluster


def make_dataset():
    random = np.random.RandomState(0)
    inputs = random.rand(1024, 10).astype("float32")
    labels = (inputs.sum(1, keepdims=True) > 5).astype("float32")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).with_options(options)


def make_model():
    layers = tf.keras.layers
    return tf.keras.Sequential([tf.keras.Input((10,)), layers.Dense(16, activation="relu"), layers.Dense(1)])


def loss_of(model, inputs, labels, training):
    """The loss of each example."""
    logits = model(inputs, training=training)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits), axis=1)


def make_step(strategy, model, optimizer):
    """A function that trains on the next batch and returns its loss."""
    def train_on(batch):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_of(model, *batch, training=True), global_batch_size=BATCH_SIZE)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(batches):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_on, args=(next(batches),)), axis=None)

    return step


def train(args, is_chief, index):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model, optimizer = make_model(), tf.keras.optimizers.SGD(0.2)
        optimizer.build(model.trainable_variables)
        epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
    # All tasks take part in saving, since reading a variable may be a collective operation; what the chief writes is kept.
    folder = args.model_dir if is_chief else tf.io.gfile.join(args.model_dir, f"temporary-{index}")
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    newest = tf.train.latest_checkpoint(args.model_dir)
    if newest:
        checkpoint.restore(newest).expect_partial()
    step, writer = make_step(strategy, model, optimizer), tf.summary.create_file_writer(args.model_dir) if is_chief else None
    batches = iter(strategy.experimental_distribute_dataset(make_dataset().shuffle(1024, seed=1).repeat().batch(BATCH_SIZE)))
    for number in range(int(epoch.numpy()), args.epochs):
        loss = np.mean([float(step(batches)) for _ in range(args.steps_per_epoch)])
        epoch.assign(number + 1)
        manager.save(number + 1)
        print(f"epoch {number + 1} of {args.epochs}: loss {loss:.4f}, {strategy.num_replicas_in_sync} replicas", flush=True)
        if writer:
            with writer.as_default(step=number + 1):
                tf.summary.scalar("loss", loss)
            writer.flush()
    if not is_chief:
        tf.io.gfile.rmtree(folder) if tf.io.gfile.exists(folder) else None


def evaluate(args):
    model, epoch = make_model(), tf.Variable(0, trainable=False, dtype=tf.int64)
    inputs, labels = next(iter(make_dataset().batch(1024)))
    writer = tf.summary.create_file_writer(tf.io.gfile.join(args.model_dir, "eval"))
    for path in tf.train.checkpoints_iterator(args.model_dir):
        tf.train.Checkpoint(model=model, epoch=epoch).restore(path).expect_partial()
        loss = float(tf.reduce_mean(loss_of(model, inputs, labels, training=False)))
        print(f"evaluation of epoch {int(epoch.numpy())}: loss {loss:.4f}", flush=True)
        with writer.as_default(step=epoch):
            tf.summary.scalar("loss", loss)
        writer.flush()
        if epoch.numpy() >= args.epochs:
            return


def main(argv):
    args = parse_arguments(argv)
    kind, index, has_chief = take_task()
    if kind == "evaluator":
        evaluate(args)
    else:
        train(args, kind == "chief" or (index == 0 and not has_chief), index)


if __name__ == "__main__":
    main(sys.argv[1:])

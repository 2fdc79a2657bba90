# SPDX-License-Identifier: Apache-2.0
"""Trains a digit classifier by between-graph replication: each worker builds the graph, the parameter servers hold the variables.

Without --job_name it trains in one process. With it, every task is started with the same lists of hosts:

    mnist.py --job_name=ps --task_index=0 --ps_hosts=a:5000 --worker_hosts=b:5000,c:5000 --data_dir=... --train_dir=...
    mnist.py --job_name=worker --task_index=0 ...

Worker 0 initialises the variables and writes the checkpoints and the event files. A parameter server ends when all workers have ended.
"""

import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
TRAIN_FILE = "train.tfrecords"
PIXELS = 784
CLASSES = 10


def parse_arguments(argv):
    def flag(text):
        return text.lower() in ("true", "1", "yes")

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job_name", help="worker or ps; without it, one process trains", choices=["", "worker", "ps"], default="")
    parser.add_argument("--task_index", help="index of this task in its list of hosts; worker 0 is the chief", type=int, default=0)
    parser.add_argument("--ps_hosts", help="comma-separated list of hostname:port", default="")
    parser.add_argument("--worker_hosts", help="comma-separated list of hostname:port", default="")
    parser.add_argument("--data_dir", help=f"folder with {TRAIN_FILE}, which every worker can read", required=True)
    parser.add_argument("--train_dir", help="folder for the checkpoints and event files", required=True)
    parser.add_argument("--hidden1", help="units of the first hidden layer", type=int, default=128)
    parser.add_argument("--hidden2", help="units of the second hidden layer", type=int, default=128)
    parser.add_argument("--batch_size", help="images a step", type=int, default=100)
    parser.add_argument("--learning_rate", type=float, default=0.01)
    parser.add_argument("--train_steps", help="steps of all workers together, after which all end; 0: for ever", type=int, default=0)
    parser.add_argument("--sync_replica", help="apply the mean of all workers' gradients at once", type=flag, default=False)
    args = parser.parse_args(argv)
    if args.job_name:
        hosts = {"worker": split(args.worker_hosts), "ps": split(args.ps_hosts)}
        for job, names in hosts.items():
            if not names:
                parser.error(f"--job_name is given, so --{job}_hosts must be")
        if not 0 <= args.task_index < len(hosts[args.job_name]):
            parser.error(f"--task_index is {args.task_index}, but --{args.job_name}_hosts has {len(hosts[args.job_name])}")
    return args


def split(hosts):
    return [host for host in hosts.split(",") if host]


def images_and_labels(args):
    """Tensors of the next batch: float images in [-0.5, 0.5], and labels."""
    def parse(records):
        features = {"image_raw": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        parsed = tf.io.parse_example(records, features)
        images = tf.reshape(tf.io.decode_raw(parsed["image_raw"], tf.uint8), [-1, PIXELS])
        return tf.cast(images, tf.float32) / 255 - 0.5, parsed["label"]

    records = tf.data.TFRecordDataset(tf.io.gfile.join(args.data_dir, TRAIN_FILE))
    batches = records.shuffle(10000).repeat().batch(args.batch_size, drop_remainder=True).map(parse).prefetch(2)
    return v1.data.make_one_shot_iterator(batches).get_next()


def dense(inputs, units, name):
    with v1.variable_scope(name):
        weights = v1.get_variable("weights", [inputs.shape[1], units], initializer=v1.initializers.he_normal())
        return tf.matmul(inputs, weights) + v1.get_variable("biases", [units], initializer=v1.initializers.zeros())


def build(args):
    """The training step, the loss and the hooks of a worker."""
    images, labels = images_and_labels(args)
    hidden = tf.nn.relu(dense(images, args.hidden1, "hidden1"))
    hidden = tf.nn.relu(dense(hidden, args.hidden2, "hidden2"))
    logits = dense(hidden, CLASSES, "softmax_linear")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    v1.summary.scalar("loss", loss)
    step = v1.train.get_or_create_global_step()
    optimizer, hooks = v1.train.GradientDescentOptimizer(args.learning_rate), []
    if args.sync_replica and args.job_name:
        count = len(split(args.worker_hosts))
        optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=count, total_num_replicas=count)
        hooks.append(optimizer.make_session_run_hook(args.task_index == 0, num_tokens=0))
    train = optimizer.minimize(loss, global_step=step)
    if args.train_steps > 0:
        hooks.append(v1.train.StopAtStepHook(last_step=args.train_steps))
    hooks.append(v1.train.LoggingTensorHook({"loss": loss, "step": step}, every_n_iter=100))
    return train, loss, step, hooks


def session_config(job, index):
    """A task waits for the parameter servers and itself, not for workers that come later or have ended."""
    own = f"/job:{job}/task:{index}"
    return v1.ConfigProto(device_filters=[own] if job == "ps" else ["/job:ps", own])


def ended_workers(index):
    """The queue on a parameter server into which each worker puts its index when it ends."""
    with v1.device(f"/job:ps/task:{index}"):
        return v1.FIFOQueue(1024, tf.int32, shapes=[()], shared_name=f"ended_workers{index}")


def serve(args, server):
    """Holds variables until every worker has ended."""
    with tf.Graph().as_default(), v1.Session(server.target, config=session_config("ps", args.task_index)) as session:
        take = ended_workers(args.task_index).dequeue()
        left = set(range(len(split(args.worker_hosts))))
        while left:
            left.discard(int(session.run(take)))


def say_ended(args, server):
    with tf.Graph().as_default(), v1.Session(server.target, config=session_config("worker", args.task_index)) as session:
        for index in range(len(split(args.ps_hosts))):
            session.run(ended_workers(index).enqueue(args.task_index))


def train(args, device, target):
    with tf.Graph().as_default():
        with v1.device(device):
            step_op, loss_op, step, hooks = build(args)
        loss = number = None
        with v1.train.MonitoredTrainingSession(
            master=target, is_chief=args.task_index == 0, checkpoint_dir=args.train_dir, hooks=hooks,
            config=session_config("worker", args.task_index) if target else None,
            save_checkpoint_steps=args.train_steps or 1000, save_summaries_steps=100,
            stop_grace_period_secs=5,  # instead of 120, in which the queues of SyncReplicasOptimizer do not end either
        ) as session:
            while not session.should_stop():
                _, loss, number = session.run([step_op, loss_op, step])
    print("no step was left to do" if loss is None else f"step {number}, loss {loss:.4f}", flush=True)


def main(argv):
    args = parse_arguments(argv)
    v1.logging.set_verbosity(v1.logging.INFO)
    v1.disable_eager_execution()
    if not args.job_name:
        train(args, None, "")
        return
    cluster = tf.train.ClusterSpec({"ps": split(args.ps_hosts), "worker": split(args.worker_hosts)})
    server = tf.distribute.Server(
        cluster, job_name=args.job_name, task_index=args.task_index, config=session_config(args.job_name, args.task_index))
    if args.job_name == "ps":
        serve(args, server)
        return
    device = v1.train.replica_device_setter(worker_device=f"/job:worker/task:{args.task_index}", cluster=cluster)
    train(args, device, server.target)
    say_ended(args, server)


if __name__ == "__main__":
    main(sys.argv[1:])

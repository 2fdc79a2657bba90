# SPDX-License-Identifier: Apache-2.0
"""Standalone client: trains a Keras model from this machine on a cluster of standard servers (tf_std_server.py), workers and parameter servers.

    keras_multi_worker_client.py MODEL_DIR                    finds the servers in Kubernetes, as kubectl is set up
    keras_multi_worker_client.py MODEL_DIR --cluster JSON     {"worker": ["host:port", ...], "ps": ["host:port", ...]}
"""

import argparse
import json
import sys

import numpy as np
import tensorflow as tf

BATCH_SIZE = 32
JOBS = ("worker", "ps")


def parse_task_name(service_name):
    """(job, index) of a service such as example-worker-0, or (None, None) of another."""
    words = service_name.rsplit("-", 2)
    if len(words) == 3 and words[1] in JOBS and words[2].isdigit():
        return words[1], int(words[2])
    return None, None


def resolve_cluster(port=5000, name=None, api=None):
    """The cluster that the load balancers of Kubernetes lead to: {"worker": [address, ...], "ps": [...]}.

    Args:
        port: of every server.
        name: the template's; None takes the services of any.
        api: a kubernetes.client.CoreV1Api; None makes one from the settings of kubectl.

    Raises:
        LookupError: there are no servers, or a task has no address yet.
    """
    if api is None:
        import kubernetes

        kubernetes.config.load_kube_config()
        api = kubernetes.client.CoreV1Api()
    found = {}
    for service in api.list_service_for_all_namespaces().items:
        job, index = parse_task_name(service.metadata.name)
        if job and (name is None or service.metadata.name == f"{name}-{job}-{index}"):
            ingress = service.status.load_balancer and service.status.load_balancer.ingress
            found.setdefault(job, {})[index] = f"{ingress[0].ip or ingress[0].hostname}:{port}" if ingress else None
    if not found:
        raise LookupError("no service named NAME-worker-N or NAME-ps-N was found: is the cluster rendered and created?")
    for job, tasks in found.items():
        missing = [index for index in range(max(tasks) + 1) if not tasks.get(index)]
        if missing:
            raise LookupError(f"{job} {missing[0]} has no address yet: wait for its load balancer, or render with service_type=LoadBalancer")
    return {job: [tasks[index] for index in sorted(tasks)] for job, tasks in found.items()}


def make_dataset():
    random = np.random.RandomState(0)
    inputs = random.rand(1024, 10).astype("float32")
    labels = (inputs.sum(1, keepdims=True) > 5).astype("float32")
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(1024).repeat().batch(BATCH_SIZE)


def train(args, cluster):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(cluster), rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential([tf.keras.Input((10,)), layers.Dense(16, activation="relu"), layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.2)
        optimizer.build(model.trainable_variables)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, optimizer=optimizer), args.model_dir, max_to_keep=3)

    @tf.function
    def step(batches):
        def train_on(inputs, labels):
            with tf.GradientTape() as tape:
                losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, model(inputs, training=True))
                loss = tf.nn.compute_average_loss(tf.reduce_mean(losses, axis=1), global_batch_size=BATCH_SIZE)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_on, args=next(batches)), axis=None)

    batches = iter(coordinator.create_per_worker_dataset(lambda: strategy.distribute_datasets_from_function(lambda _: make_dataset())))
    for epoch in range(args.epochs):
        results = [coordinator.schedule(step, args=(batches,)) for _ in range(args.steps_per_epoch)]
        coordinator.join()
        loss = np.mean([result.fetch() for result in results])
        manager.save(epoch + 1)
        print(f"epoch {epoch + 1} of {args.epochs}: loss {loss:.4f}, {len(cluster['worker'])} workers", flush=True)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", help="folder for checkpoints, which the client and the parameter servers reach, such as gs://BUCKET/example")
    parser.add_argument("--cluster", help="the servers as JSON, instead of asking Kubernetes", type=json.loads)
    parser.add_argument("--name", help="the name that the template was rendered with")
    parser.add_argument("--port", help="the port of the servers in Kubernetes", type=int, default=5000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps_per_epoch", type=int, default=100)
    args = parser.parse_args(argv)
    cluster = args.cluster or resolve_cluster(args.port, args.name)
    for job in JOBS:
        if not cluster.get(job):
            parser.error(f"the cluster has no {job}: render the template with {job}_replicas of 1 or more")
    train(args, {job: cluster[job] for job in JOBS})


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Trains asynchronously with parameter servers: a chief that coordinates, workers that compute, servers that hold the variables.

    spark-submit train.py --cluster_size 4 --num_ps 2

The chief's custom loop schedules steps on the workers, which do not wait for each other. The embedding is split over all parameter
servers, so that it may be larger than the memory of one machine.
"""

import argparse


def main_fun(args, ctx):
    """Runs on the chief and the workers; parameter servers are TensorFlow's servers, without Python."""
    if ctx.job_name == "worker":
        return ctx.serve()  # until the chief has returned
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=1024, max_shards=args.num_ps)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        table = tf.Variable(tf.zeros([args.words, 16]), name="table")
        scores = tf.Variable(tf.random.stateless_normal([16, 1], [1, 2]), name="scores")

    def rows():
        """Words, and whether the word's number is odd."""
        words = tf.data.Dataset.random(seed=1).map(lambda number: number % args.words)
        return words.map(lambda word: (word, tf.cast(word % 2, tf.float32))).batch(args.batch_size)

    @tf.function
    def step(iterator):
        def replica_step(words, labels):
            with tf.GradientTape() as tape:
                found = tf.squeeze(tf.nn.embedding_lookup(table, words) @ scores, 1)
                loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, found))
            variables = [*table.variables, scores]
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign_sub(args.rate * tf.convert_to_tensor(gradient))
            return loss

        return strategy.run(replica_step, next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(rows))
    for epoch in range(args.epochs):
        losses = [coordinator.schedule(step, args=(iterator,)) for _ in range(args.steps)]
        coordinator.join()
        print(f"epoch {epoch + 1}: loss {sum(coordinator.fetch(losses)) / args.steps:.4f}")
    print("table on", ", ".join(sorted({part.device for part in table.variables})))
    return None


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster_size", help="number of nodes: a chief, workers, parameter servers", type=int, default=4)
    parser.add_argument("--num_ps", help="number of parameter servers", type=int, default=1)
    parser.add_argument("--words", help="rows of the embedding", type=int, default=1000)
    parser.add_argument("--batch_size", help="rows a step", type=int, default=64)
    parser.add_argument("--steps", help="steps of an epoch, of all workers together", type=int, default=200)
    parser.add_argument("--epochs", help="number of epochs", type=int, default=3)
    parser.add_argument("--rate", help="learning rate", type=float, default=5.0)
    args = parser.parse_args()
    sc = SparkContext(conf=SparkConf().setAppName("parameter_server"))
    cluster = TFCluster.run(sc, main_fun, args, args.cluster_size, args.num_ps, master_node="chief", native_ps=True)
    cluster.shutdown()
    sc.stop()


if __name__ == "__main__":
    main()

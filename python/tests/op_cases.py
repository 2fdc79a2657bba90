# SPDX-License-Identifier: Apache-2.0
"""The ops of a group, as the processes of ``ranks`` call them."""

import numpy as np
import tensorflow as tf

DTYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64")


def reduce_all(group):
    """Each dtype and reduction, eagerly and in a graph, several tensors of one dtype in one operation."""
    found = {}
    for dtype in DTYPES:
        tensors = [tf.cast(tf.range(5) + group.rank, dtype), tf.cast(tf.fill([2, 3], 4 * (group.rank + 1)), dtype), tf.zeros([0], dtype)]
        for reduction in ("sum", "mean", "min", "max"):
            reduce = lambda *tensors: group.all_reduce(tensors, f"{dtype} {reduction}", reduction)  # noqa: B023, E731
            graph = tf.function(reduce)
            eager, traced = reduce(*tensors), graph(*tensors)
            shapes = [tensor.shape.as_list() for tensor in graph.get_concrete_function(*tensors).structured_outputs]
            assert shapes == [[5], [2, 3], [0]] and all((a == b).numpy().all() for a, b in zip(eager, traced))
            assert [tensor.dtype.name for tensor in eager] == [dtype] * 3
            found[dtype, reduction] = [tf.cast(tensor, "float64").numpy().tolist() for tensor in eager[:2]]
        assert tensors[1].numpy().astype("float64").max() == 4 * (group.rank + 1)  # inputs stay as they are
    return found


def move_all(group):
    """Gather of unequal lengths, broadcast from each rank, and values through JSON."""
    gathered = group.gather([tf.fill([group.rank, 2], group.rank), tf.constant(group.rank, tf.int64), tf.constant([True] * group.rank, tf.bool)], "gather")
    sent = [[tensor.numpy().tolist() for tensor in group.broadcast([tf.constant([group.rank] * 2), tf.constant(group.rank / 2)], "send", root)]
            for root in range(group.size)]
    return [tensor.numpy().tolist() for tensor in gathered], sent, group.exchange({"rank": group.rank}, "values")


def mean_all(group):
    """Weighted means of dense, sparse and half gradients; a weight of 0 makes even NaN nothing; no weight at all ends the epoch."""
    weight = [1, 3, 0][group.rank]
    value = float("nan") if weight == 0 else float(group.rank + 1)
    sparse = tf.IndexedSlices(tf.fill([group.rank + 1, 2], value), tf.range(group.rank + 1), tf.constant([4, 2]))
    gradients = [tf.fill([2], value), None, sparse, tf.cast(tf.fill([1], value), tf.float16), tf.cast(tf.fill([1], value), tf.float64)]
    traced = tf.function(lambda *given: group.mean([given[0], None, *given[1:]], weight))
    means, share = traced(gradients[0], *gradients[2:])
    ended = []
    for end in (lambda: group.share(0), lambda: group.share(1) if group.rank else group.stop()):
        try:
            end()
        except tf.errors.OutOfRangeError:
            ended.append(True)
    dense = tf.convert_to_tensor(means[2])
    return [means[0].numpy().tolist(), dense.numpy().tolist(), float(means[3][0]), float(means[4][0])], float(share), means[3].dtype.name, ended


def fail(group):
    """Operations that differ from rank to rank."""
    group.all_reduce([tf.zeros([3 + group.rank])], "differing")


def memory(group, count):
    """An all-reduce of a large tensor that nobody else needs: its memory may become the output's."""
    before = tf.ones([count])

    @tf.function
    def step():
        return group.all_reduce([before * 2.0], "in place")[0]

    return float(step()[0])


def mean_of_other_dtypes(group):
    """What is said of gradients that are no real numbers."""
    try:
        group.mean([tf.constant([1j])], 1)
    except ValueError as error:
        return str(error)


def closed(group):
    """An op of a group that is not there."""
    try:
        group._ops.tfos_all_reduce(group=10**9, tensors=[np.float32(1)], operation="nothing")
    except tf.errors.OpError as error:
        return type(error).__name__


def distribute_keras_2(group):
    """What distribute() says where Keras 2 is installed."""
    from tensorflowonspark.keras import distribute

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    try:
        distribute(model, group)
    except ValueError as error:
        return str(error)

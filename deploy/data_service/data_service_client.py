# SPDX-License-Identifier: Apache-2.0
"""Trains a model on what the workers of a tf.data service make: an example of how a program reads from it.

    data_service_client.py --service=grpc://HOST:5050
"""

import argparse

import numpy as np
import tensorflow as tf


def make_dataset(service):
    """Examples of two classes, made by the service's workers: all of them, each once."""
    random = np.random.RandomState(0)
    inputs = random.rand(1024, 10).astype("float32")
    labels = (inputs.sum(1, keepdims=True) > 5).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).map(lambda x, y: (x - 0.5, y), num_parallel_calls=tf.data.AUTOTUNE)
    policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
    return dataset.apply(tf.data.experimental.service.distribute(policy, service)).batch(32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", help="grpc://HOST:PORT of the dispatcher", required=True)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    count = sum(len(labels) for _, labels in make_dataset(args.service))
    print(f"{count} examples an epoch", flush=True)
    model = tf.keras.Sequential([tf.keras.Input((10,)), tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.2), loss="binary_crossentropy")
    history = model.fit(make_dataset(args.service), epochs=args.epochs, verbose=2).history
    print(f"loss {history['loss'][0]:.4f} -> {history['loss'][-1]:.4f}")


if __name__ == "__main__":
    main()

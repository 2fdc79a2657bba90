# SPDX-License-Identifier: Apache-2.0
"""A search for hyper-parameters: each executor trains models by itself, and the driver gets how good each is.

    spark-submit search_spark.py --instances 2 --trials 8

The data are two spirals, which are made up. An instance takes every n-th trial; with a GPU an executor each has its own.
"""

import argparse
import itertools


def main_fun(args, ctx):
    """Runs on each executor; returns [(parameters, accuracy)] of its trials."""
    import keras

    training, test = spirals(2000, 1), spirals(500, 2)
    results = []
    for trial in args.grid[ctx.worker_num :: ctx.num_workers]:
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((2,))])
        for _ in range(trial["layers"]):
            model.add(keras.layers.Dense(trial["units"], activation="relu"))
        model.add(keras.layers.Dense(1, activation="sigmoid"))
        model.compile(keras.optimizers.Adam(trial["rate"]), "binary_crossentropy", metrics=["accuracy"])
        model.fit(*training, batch_size=100, epochs=args.epochs, verbose=0)
        results.append((trial, model.evaluate(*test, verbose=0)[1]))
    return results


def spirals(rows, seed):
    """Points of two spirals, and which of the two each is on."""
    import numpy as np

    random = np.random.default_rng(seed)
    label = random.integers(0, 2, rows)
    angle = random.uniform(1, 9, rows)
    points = angle[:, None] / 9 * np.stack([np.cos(angle + np.pi * label), np.sin(angle + np.pi * label)], 1)
    return (points + random.normal(0, 0.02, points.shape)).astype("float32"), label.astype("float32")


def main():
    from pyspark import SparkConf, SparkContext

    from tensorflowonspark import TFParallel

    sc = SparkContext(conf=SparkConf().setAppName("search"))
    executors = int(sc.getConf().get("spark.executor.instances", "1"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", help="of each trial", type=int, default=20)
    parser.add_argument("--instances", help="how many train side by side", type=int, default=executors)
    parser.add_argument("--trials", help="how many at most", type=int, default=100)
    args = parser.parse_args()
    values = {"rate": [0.003, 0.03], "units": [8, 64], "layers": [1, 2, 3]}
    args.grid = [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())][: args.trials]

    results = itertools.chain.from_iterable(TFParallel.run(sc, main_fun, args, args.instances))
    for trial, accuracy in sorted(results, key=lambda result: -result[1]):
        print(f"{accuracy:.3f}  {trial}")
    sc.stop()


if __name__ == "__main__":
    main()

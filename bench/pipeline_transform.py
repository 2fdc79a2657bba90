# bench: env=old
# SPDX-License-Identifier: Apache-2.0
"""TFModel.transform of MNIST's digits, repeated to a million rows, by a SavedModel with one hidden layer; the ten scores of each come back.

Beside it, one process that calls the same signature on the same batches from its memory, with one thread; ours counts by core."""

import os
import sys
import time

import digits
import feed_rows
import harness
import original

BATCH = 128
CORES = 2
REPEATS = {"original": 4, "ours": 100}  # of 10,000 digits
GOAL, MEMORY_GOAL = 10, 0.7


def write_model(folder):
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.hidden = tf.Variable(tf.random.stateless_normal([784, 128], [1, 2], stddev=0.05))
            self.last = tf.Variable(tf.random.stateless_normal([128, 10], [3, 4], stddev=0.05))

        @tf.function(input_signature=[tf.TensorSpec([None, 28, 28], tf.float32, "image")])
        def scores(self, image):
            flat = tf.reshape(image, [-1, 784])
            return {"scores": tf.nn.softmax(tf.nn.relu(flat @ self.hidden) @ self.last)}

    model = Model()
    tf.saved_model.save(model, folder, signatures={"serving_default": model.scores})
    return {}


class Transform:
    """One side's work."""

    def __init__(self, cluster, name):
        self._name, self._spark = name, cluster.spark
        texts = [(",".join(map(str, row)),) for row in digits.rows()[0][:10_000].tolist()]  # Spark takes lists of numbers in minutes
        frame = self._spark.createDataFrame(texts, "text string").repartition(2 * CORES)
        frame = frame.selectExpr("transform(split(text, ','), number -> cast(cast(number as int) / 255 as float)) as image").cache()
        frame.count()
        self.rows = 10_000 * REPEATS[name]
        self._frame = frame.withColumn("copy", self._copies())

    def _copies(self):
        from pyspark.sql import functions

        return functions.explode(functions.sequence(functions.lit(1), functions.lit(REPEATS[self._name])))

    def measure(self, model):
        """Rows a second; the first action loads the model in each worker."""
        from tensorflowonspark.pipeline import TFModel

        stage = TFModel({"num_gpus": 0}).setExportDir(model).setTagSet("serve").setSignatureDefKey("serving_default").setBatchSize(BATCH)
        stage = stage.setInputMapping({"image": "image"}).setOutputMapping({"scores": "scores"})
        stage.transform(self._frame.filter("copy = 1")).selectExpr("count(*)").collect()
        start = time.time()
        count, total = stage.transform(self._frame).selectExpr("count(*)", "sum(aggregate(scores, double(0), (a, x) -> a + x))").first()
        seconds = time.time() - start
        if count != self.rows or abs(total / self.rows - 1) > 1e-3:
            raise ValueError(f"{count} rows with scores of {total} came back, not {self.rows}")
        return {"rows": count, "seconds": seconds}

    def memory(self, model):
        """The signature on the digits in this process's memory."""
        os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1")
        import numpy as np
        import tensorflow as tf

        loaded = tf.saved_model.load(model)
        function = loaded.signatures["serving_default"]
        images = digits.rows()[0][:10_000].astype("float32") / 255
        batches = np.array_split(images, len(images) // BATCH)
        function(image=tf.constant(batches[0], shape=(len(batches[0]), 28, 28)))
        start, rows = time.time(), 0
        while rows < 200_000:
            for batch in batches:
                function(image=tf.constant(batch, shape=(len(batch), 28, 28)))["scores"].numpy()
            rows += len(images)
        return {"rows": rows, "seconds": time.time() - start}


def side(name):
    with harness.LocalCluster(executors=CORES) as cluster:
        transform = Transform(cluster, name)
        harness.serve({"versions": harness.versions, "measure": transform.measure, "memory": transform.memory, "write": write_model})


def compete(folder, rounds):
    with harness.Side("original", original.python(), folder) as theirs, harness.Side("ours", sys.executable, folder) as ours:
        harness.check_same_versions((theirs, ours))
        model = os.path.join(folder, "model")
        ours.ask("write", feed_rows.WAIT_S, folder=model)
        rates = {"original": [], "ours": [], "memory": []}
        for contender in harness.turns((theirs, ours), rounds):
            result = contender.ask("measure", feed_rows.WAIT_S * 2, model=model)
            rates[contender.name].append(result["rows"] / result["seconds"])
            harness.note(f"{contender.name}: {rates[contender.name][-1]:.0f} rows/s {result}")
            if contender is ours:
                result = ours.ask("memory", feed_rows.WAIT_S, model=model)
                rates["memory"].append(result["rows"] / result["seconds"])
                harness.note(f"in memory: {rates['memory'][-1]:.0f} rows/s")
    harness.print_line("pipeline_transform", "digits", "rows/s", rates["ours"], rates["original"], "original", GOAL)
    by_core = [rate / CORES for rate in rates["ours"]]
    harness.print_line("pipeline_transform", "digits, a core", "rows/s", by_core, rates["memory"], "in_memory", MEMORY_GOAL)


if __name__ == "__main__":
    options = harness.arguments(__doc__, rounds=3).parse_args()
    if options.side:
        side(options.side)
    else:
        sys.exit(harness.main(lambda folder: compete(folder, options.rounds)))

# SPDX-License-Identifier: Apache-2.0
"""Writes the models of test_pipeline.py into a folder: python pipeline_models.py FOLDER."""

import os
import sys

import tensorflow as tf

from tensorflowonspark import TFNode


def signed(**specs):
    return lambda function: tf.function(function, input_signature=list(specs.values()))


class Models(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = tf.Variable(weights)

    @signed(x=tf.TensorSpec([None, 2], tf.float32, "x"))
    def linear(self, x):
        y = tf.linalg.matvec(x, self.weights)
        return {"y": y, "row": tf.stack([y, y * 2], axis=1), "sign": tf.cast(tf.sign(y), tf.int32), "is_high": y > 1}

    @signed(image=tf.TensorSpec([None, 2, 3, 1], tf.float32, "image"))
    def image(self, image):
        return {"corner": image[:, 1, 2, 0], "image": image}

    @signed(text=tf.TensorSpec([None], tf.string, "text"), count=tf.TensorSpec([None], tf.int32, "count"))
    def text(self, text, count):
        return {"upper": tf.strings.upper(text), "size": tf.strings.length(text) * count}

    @signed(data=tf.TensorSpec([None], tf.string, "data"))
    def pixels(self, data):
        return {"pixels": tf.cast(tf.io.decode_raw(data, tf.uint8), tf.int32)}

    @signed(words=tf.RaggedTensorSpec([None, None], tf.int64), other=tf.TensorSpec([None], tf.float32, "other"))
    def ragged(self, words, other):
        return {"sum": tf.reduce_sum(words, 1), "twice": words * 2, "other": other}

    @signed(vector=tf.SparseTensorSpec([None, 4], tf.float32))
    def sparse(self, vector):
        return {"sum": tf.sparse.reduce_sum(vector, 1)}  # of unknown shape

    @signed(x=tf.TensorSpec([None, 2], tf.float32, "x"))
    def total(self, x):
        return {"sum": tf.reduce_sum(x, axis=[0, 1], keepdims=True)[0], "all": tf.reduce_sum(x)}


def write_saved_model(folder, weights):
    models = Models(weights)
    names = ("image", "text", "pixels", "ragged", "sparse", "total")
    tf.saved_model.save(models, folder, signatures={"serving_default": models.linear, **{name: getattr(models, name) for name in names}})


def write_keras_file(path):
    pair, gain = tf.keras.Input((2,), name="pair"), tf.keras.Input((1,), name="gain")
    scaled = tf.keras.layers.Multiply(name="scaled")([pair, gain])
    summed = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="summed")(scaled)
    tf.keras.Model([pair, gain], [scaled, summed]).save(path)


def write_graph(folder):
    """TensorFlow 1's, as a worker of a cluster has them: a checkpoint, and a SavedModel. Operations and functions lie on the worker."""
    v1 = tf.compat.v1
    server = tf.distribute.Server({"worker": ["localhost:0"]}, job_name="worker", task_index=0)
    with tf.Graph().as_default(), v1.Session(server.target) as session, v1.device("/job:worker/task:0"):
        x = v1.placeholder(tf.float32, [None, 2], "x")
        gain = v1.get_variable("gain", initializer=3.0)
        y = tf.reduce_sum(x * tf.cond(tf.size(x) > 0, gain.read_value, lambda: 0.0), axis=1, name="y")
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, f"{folder}/checkpoint/model", global_step=7)
        signature = {"inputs": {"x": x}, "outputs": {"got": y}, "method_name": "tensorflow/serving/predict"}
        TFNode.export_saved_model(session, f"{folder}/graph", "serve", {"serving_default": signature})
        builder = v1.saved_model.Builder(f"{folder}/original")  # as TensorFlowOnSpark exports: its functions still name the worker
        signature = v1.saved_model.predict_signature_def({"given": x}, {"got": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, clear_devices=True)
        builder.save()


if __name__ == "__main__":
    write_saved_model(f"{sys.argv[1]}/good", [3.0, 0.5])
    write_saved_model(f"{sys.argv[1]}/bad", [-1.0, 9.0])
    write_keras_file(f"{sys.argv[1]}/scaled.keras")
    write_graph(sys.argv[1])
    os.mkdir(f"{sys.argv[1]}/damaged")
    with open(f"{sys.argv[1]}/damaged/saved_model.pb", "wb") as file:
        file.write(b"no model")

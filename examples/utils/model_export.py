# SPDX-License-Identifier: Apache-2.0
"""Makes a SavedModel of the newest checkpoint of TensorFlow 1 in a folder, with the signatures that are given as JSON, in a file or as text.

    python model_export.py --model_dir mnist_model --show
    python model_export.py --model_dir mnist_model --export_dir export \\
        --signatures '{"serving_default": {"inputs": {"image": "image"}, "outputs": {"digit": "prediction"}}}'
"""

import argparse
import json
import sys

PREDICT = "tensorflow/serving/predict"


def tensors_of(graph, names):
    """The graph's tensors by the names of a signature; without a number behind its name an operation's first is meant."""
    found = {}
    for alias, name in names.items():
        try:
            found[alias] = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
        except (KeyError, ValueError):
            sys.exit(f"model_export: the graph has no tensor {name!r}; --show lists its operations")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export_dir", help="where the SavedModel goes, a new folder")
    parser.add_argument("--model_dir", help="folder of the checkpoint and its .meta file", required=True)
    parser.add_argument("--show", help="list the graph's operations", action="store_true")
    parser.add_argument("--signatures", help="JSON, or a file with it: {name: {inputs: {alias: tensor}, outputs: {alias: tensor}}}")
    args = parser.parse_args()
    import tensorflow as tf

    from tensorflowonspark import TFNode, saved_models

    checkpoint = tf.train.latest_checkpoint(args.model_dir)
    if checkpoint is None:
        sys.exit(f"model_export: there is no checkpoint in {args.model_dir!r}")
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        saved_models.restore_graph(tf, session, checkpoint)
        if args.show:
            for operation in graph.get_operations():
                print(f"{operation.name}\t{operation.type}")
        if args.export_dir and args.signatures:
            text = args.signatures if "{" in args.signatures else tf.io.gfile.GFile(args.signatures).read()
            signatures = {
                name: {"method_name": PREDICT, **signature, **{part: tensors_of(graph, signature[part]) for part in ("inputs", "outputs")}}
                for name, signature in json.loads(text).items()
            }
            TFNode.export_saved_model(session, args.export_dir, "serve", signatures)


if __name__ == "__main__":
    main()

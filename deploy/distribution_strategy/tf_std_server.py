# SPDX-License-Identifier: Apache-2.0
"""A standard TensorFlow server: the task that TF_CONFIG says, for a client that trains on the cluster from outside it.

Ops of your own must be loaded here (tf.load_op_library), before the server starts.
"""

import json
import os
import sys

import tensorflow as tf


def main():
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        cluster, job, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
    except (KeyError, ValueError) as error:
        sys.exit(f"TF_CONFIG must be a JSON object with the cluster and the task of this server: {error!r}")
    cluster.pop("evaluator", None)
    if job == "evaluator":
        sys.exit("an evaluator is no part of a cluster of standard servers: set has_eval to False")
    server = tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index, protocol="grpc")
    print(f"{job} {index} at {server.target}", flush=True)
    server.join()


if __name__ == "__main__":
    main()

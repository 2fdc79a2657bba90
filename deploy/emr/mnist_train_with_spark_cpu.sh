#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains on what Spark feeds, into /user/<you>/mnist_model: a parameter server and workers in TensorFlow 1's style.
. "$(dirname "$0")/submit.sh"
submit --py-files "$examples/v1/mnist_v1_graph.py" "$examples/v1/mnist_v1_spark.py" --cluster_size "$nodes" --images mnist/csv/train --format csv \
    --mode train --model mnist_model "$@"

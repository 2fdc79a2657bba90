#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains on what Spark feeds, into /user/<you>/mnist_model: a parameter server and workers in TensorFlow 1's style.
set -eu
cd "$(dirname "$0")"
exec ./submit.sh --py-files ../../examples/mnist/v1/mnist_v1_graph.py ../../examples/mnist/v1/mnist_v1_spark.py --cluster_size "${NODES:-3}" --images mnist/csv/train --format csv \
    --mode train --model mnist_model "$@"

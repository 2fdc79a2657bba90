#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predicts what Spark feeds, by the model in /user/<you>/mnist_model, into /user/<you>/predictions.
set -eu
cd "$(dirname "$0")"
exec ./submit.sh --py-files ../../examples/mnist/v1/mnist_v1_graph.py ../../examples/mnist/v1/mnist_v1_spark.py --cluster_size "${NODES:-3}" --images mnist/csv/test --format csv \
    --mode inference --model mnist_model --output predictions "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predicts what Spark feeds, by the model in /user/<you>/mnist_model, into /user/<you>/predictions.
. "$(dirname "$0")/submit.sh"
submit --py-files "$examples/v1/mnist_v1_graph.py" "$examples/v1/mnist_v1_spark.py" --cluster_size "$nodes" --images mnist/csv/test --format csv \
    --mode inference --model mnist_model --output predictions "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predicts what Spark feeds, by the Keras model in /user/<you>/keras_export, into /user/<you>/keras_predictions.
set -eu
cd "$(dirname "$0")"
exec ./submit.sh ../../examples/mnist/keras/mnist_spark_inference.py --cluster_size "${NODES:-3}" --images_labels mnist/csv/test \
    --export_dir keras_export --output keras_predictions "$@"

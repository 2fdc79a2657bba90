#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains a Keras 3 model, the workers in step, on what Spark feeds, into /user/<you>/keras_model and /user/<you>/keras_export.
set -eu
cd "$(dirname "$0")"
exec ./submit.sh --py-files ../../examples/mnist/keras/mnist_model.py ../../examples/mnist/keras/mnist_spark.py --cluster_size "${NODES:-3}" --images_labels mnist/csv/train \
    --model_dir keras_model --export_dir keras_export "$@"

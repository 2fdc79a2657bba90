#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains Keras 3 in step on what Spark feeds, into /user/<you>/keras_model and /user/<you>/keras_export.
. "$(dirname "$0")/submit.sh"
submit --py-files "$examples/keras/mnist_model.py" "$examples/keras/mnist_spark.py" --cluster_size "$nodes" --images_labels mnist/csv/train \
    --model_dir keras_model --export_dir keras_export "$@"

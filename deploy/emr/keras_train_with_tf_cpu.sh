#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains a Keras 3 model on the files that the workers read from HDFS; with "inference" it predicts.
# usage: keras_train_with_tf_cpu.sh [train|inference [FLAG...]]
set -eu
cd "$(dirname "$0")"
mode=${1:-train}
[ $# -eq 0 ] || shift
programs=../../examples/mnist/keras
case "$mode" in
train)
    exec ./submit.sh --py-files $programs/mnist_model.py $programs/mnist_tf_ds.py --cluster_size "${NODES:-3}" --images_labels mnist/tfr/train \
        --model_dir keras_model --export_dir keras_export "$@"
    ;;
inference)
    exec ./submit.sh $programs/mnist_inference.py --cluster_size "${NODES:-3}" --images_labels mnist/tfr/test --export_dir keras_export --output keras_predictions "$@"
    ;;
*)
    echo "usage: keras_train_with_tf_cpu.sh [train|inference [FLAG...]]" >&2
    exit 2
    ;;
esac

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains on the files that the workers read from HDFS; with "inference" it predicts.
# usage: mnist_train_with_tf_cpu.sh [train|inference [FLAG...]]
set -eu
cd "$(dirname "$0")"
mode=${1:-train}
[ $# -eq 0 ] || shift
case "$mode" in train) split="train" ;; *) split="test" ;; esac
exec ./submit.sh --py-files ../../examples/mnist/v1/mnist_v1_graph.py ../../examples/mnist/v1/mnist_v1_tf.py --cluster_size "${NODES:-3}" \
    --images_labels "mnist/tfr/$split" --format tfr \
    --mode "$mode" --model mnist_model --export mnist_export --output predictions "$@"

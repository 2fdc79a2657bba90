#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains on the files that the workers read from HDFS; with "inference" it predicts.
# usage: mnist_train_with_tf_cpu.sh [train|inference [FLAG...]]
. "$(dirname "$0")/submit.sh"
mode=${1:-train}
[ $# -eq 0 ] || shift
split=train
[ "$mode" = train ] || split=test
submit --py-files "$examples/v1/mnist_v1_graph.py" "$examples/v1/mnist_v1_tf.py" --cluster_size "$nodes" --images_labels "mnist/tfr/$split" --format tfr \
    --mode "$mode" --model mnist_model --export mnist_export --output predictions "$@"

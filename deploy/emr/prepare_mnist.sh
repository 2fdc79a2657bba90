#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes /user/<you>/mnist on HDFS, with csv, tfr and pickle, from /mnist/tools/mnist.zip there.
set -eu
cd "$(dirname "$0")"
exec ./submit.sh --archives hdfs:///mnist/tools/mnist.zip#mnist ../../examples/mnist/mnist_data_setup.py --data mnist --output mnist --num_partitions "${NODES:-3}"

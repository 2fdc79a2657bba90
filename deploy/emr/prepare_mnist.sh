#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes /user/<you>/mnist on HDFS, with csv, tfr and pickle, from /mnist/tools/mnist.zip there.
. "$(dirname "$0")/submit.sh"
submit --archives hdfs:///mnist/tools/mnist.zip#mnist "$examples/mnist_data_setup.py" --data mnist --output mnist --num_partitions "$nodes"

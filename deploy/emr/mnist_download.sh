#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches MNIST into ~/mnist and packs it as ~/mnist/mnist.zip.
# MNIST_URL: where the four files are (default: a public mirror).
set -eu
url=${MNIST_URL:-https://storage.googleapis.com/cvdf-datasets/mnist}
mkdir -p "$HOME/mnist"
cd "$HOME/mnist"
for name in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
    curl --fail --silent --show-error --location --output "$name.gz" "$url/$name.gz"
done
rm -f mnist.zip
python3 -m zipfile -c mnist.zip ./*.gz
ls -l mnist.zip

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Java, Spark, TensorFlow and tfos on a machine of Debian, Ubuntu, Fedora, RHEL or Amazon Linux, as root.
#   SPARK       what pip installs: pyspark==4.0.*
#   TENSORFLOW  tensorflow==2.19.*; tensorflow[and-cuda]==2.19.* has the libraries for GPUs
#   FOLDER      the virtual environment: /opt/tfos
# usage: install_spark.sh TFOS: a wheel of tfos, or the folder of its source
set -euo pipefail

if [ $# -ne 1 ] || [ ! -e "$1" ]; then
    echo "usage: install_spark.sh TFOS: a wheel of tfos, or the folder of its source" >&2
    exit 2
fi
folder=${FOLDER:-/opt/tfos}
if command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        openjdk-17-jdk-headless python3-venv python3-dev gcc libc6-dev cmake ninja-build pkg-config libssl-dev libjansson-dev zlib1g-dev
else
    java="java-17-openjdk-devel"
    if grep -q '^ID="\?amzn' /etc/os-release; then java="java-17-amazon-corretto-devel"; fi
    installer=$(command -v dnf || command -v yum)
    "$installer" install -y -q "$java" python3-devel gcc cmake ninja-build pkgconf-pkg-config openssl-devel jansson-devel zlib-devel
fi
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet "${SPARK:-pyspark==4.0.*}" "${TENSORFLOW:-tensorflow==2.19.*}" tf_keras tensorboard 'pandas<3' pyarrow
jars=$("$folder/bin/python" -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "jars"))')
"$folder/bin/pip" install --quiet --config-settings=cmake.define.TFOS_SPARK_JARS="$jars" "$1"
"$folder/bin/tfos" doctor || true
echo "PATH=$folder/bin:\$PATH"

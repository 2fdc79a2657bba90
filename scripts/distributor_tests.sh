#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the integration tests of spark-tensorflow-distributor (in tensorflow/ecosystem) and its README's example, unchanged, from a folder with that
# project's sources, against this package on Standalone clusters. scripts/original_tests/conftest.py takes the place of the containers that they run in.
# usage: distributor_tests.sh [--old] FOLDER [ARGUMENT...]    --old: on Spark 3.5 and TensorFlow 2.15; ARGUMENT: of pytest
# exit status: 1 when a test fails that is not among those that differ, or when one of these passes.
set -euo pipefail

. "$(dirname "$0")/suite_options.sh"
distributor=$(realpath -e "$1/spark/spark-tensorflow-distributor")
shift
cd "$(dirname "$0")/.."
scripts/system.sh java
scripts/environment.sh "$environment"
python=$PWD/$venv/bin/python
work=$PWD/build/distributor_tests/$environment
rm -rf "$work"
mkdir -p "$work"
cp "$distributor"/README.md "$distributor"/tests/integration/test_*.py scripts/original_tests/*.py "$work"
export PYSPARK_PYTHON=$python PYSPARK_DRIVER_PYTHON=$python SPARK_LOCAL_IP=127.0.0.1 TF_CPP_MIN_LOG_LEVEL=3
export JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' # these JVMs end before more would pay
cd "$work"
exec "$python" -m pytest -q -rxX -p no:cacheprovider "$@"

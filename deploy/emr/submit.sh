#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Submits a program to YARN, as the scripts beside this one do.
# usage: submit.sh OPTION-OF-SPARK-SUBMIT... PROGRAM ARGUMENT...
# NODES: executors (default 3), one of them a parameter server for programs of TensorFlow 1's style.
# EXECUTOR_MEMORY, EXECUTOR_OVERHEAD: memory of each in its JVM, and for its trainer beside it.
# PYSPARK_PYTHON: the Python with TensorFlow and tfos, on each host under this path.
# SUBMIT_OPTIONS: more options of spark-submit.
set -eu
PYSPARK_PYTHON=${PYSPARK_PYTHON:-$(command -v python3)}
export PYSPARK_PYTHON
# shellcheck disable=SC2086 # options are words
exec spark-submit --master yarn --deploy-mode "${DEPLOY_MODE:-cluster}" --num-executors "${NODES:-3}" --executor-cores 1 \
    --executor-memory "${EXECUTOR_MEMORY:-1g}" --conf spark.executor.memoryOverhead="${EXECUTOR_OVERHEAD:-3g}" \
    --conf spark.yarn.appMasterEnv.PYSPARK_PYTHON="$PYSPARK_PYTHON" --conf spark.executorEnv.PYSPARK_PYTHON="$PYSPARK_PYTHON" \
    --conf spark.yarn.maxAppAttempts=1 ${SUBMIT_OPTIONS:-} "$@"

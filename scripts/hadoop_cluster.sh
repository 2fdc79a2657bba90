#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# HDFS and YARN on this machine, to play with; Ctrl-C stops them.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system.sh build java
scripts/environment.sh new
SPARK_LOCAL_IP=127.0.0.1 exec .venv/bin/python python/tests/hadoop_cluster.py

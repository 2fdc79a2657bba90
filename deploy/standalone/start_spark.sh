#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts a Spark Standalone master and workers on this machine, and waits until they are there. pip's Spark will do, which has no sbin/start-*.sh.
#   SPARK_HOME              of the Spark to start; default: that of python3's pyspark
#   MASTER                  spark://HOST:PORT; default: this host, 7077. "worker" starts workers of a master that runs elsewhere
#   SPARK_WORKER_INSTANCES  workers on this machine: 2
#   CORES_PER_WORKER        1
#   MEMORY_PER_WORKER       2g
#   SPARK_RUN_DIR           logs, process ids and the workers' folders: ~/.local/state/tfos-spark
# usage: start_spark.sh [all|master|worker]
set -euo pipefail

part=${1:-all}
case "$part" in all | master | worker) ;; *)
    echo "usage: start_spark.sh [all|master|worker]" >&2
    exit 2
    ;;
esac
export SPARK_HOME=${SPARK_HOME:-$(python3 -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')}
export MASTER=${MASTER:-spark://$(hostname):7077}
run=${SPARK_RUN_DIR:-$HOME/.local/state/tfos-spark}
host=${MASTER#spark://}
port=${host##*:}
host=${host%:*}
mkdir -p "$run"

start() { # NAME SIGN CLASS ARGUMENT...: the log has SIGN once it is there
    local name=$1 sign=$2 deadline=$((SECONDS + 120))
    shift 2
    if [ -e "$run/$name.pid" ] && kill -0 "$(cat "$run/$name.pid")" 2>/dev/null; then
        echo "$name runs already: process $(cat "$run/$name.pid"); stop_spark.sh stops it" >&2
        exit 1
    fi
    setsid nohup "$SPARK_HOME/bin/spark-class" "$@" >"$run/$name.log" 2>&1 </dev/null &
    echo $! >"$run/$name.pid"
    until grep -q -E "$sign" "$run/$name.log"; do
        if ! kill -0 "$(cat "$run/$name.pid")" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
            tail -n 20 "$run/$name.log" >&2
            echo "$name did not start; its log is $run/$name.log" >&2
            exit 1
        fi
        sleep 0.2
    done
    echo "$name: process $(cat "$run/$name.pid"), log $run/$name.log"
}

if [ "$part" != worker ]; then
    start master 'New state: ALIVE' org.apache.spark.deploy.master.Master --host "$host" --port "$port" --webui-port "${SPARK_MASTER_WEBUI_PORT:-8080}"
fi
if [ "$part" != master ]; then
    for number in $(seq "${SPARK_WORKER_INSTANCES:-2}"); do
        start "worker$number" 'Successfully registered with master' org.apache.spark.deploy.worker.Worker --cores "${CORES_PER_WORKER:-1}" \
            --memory "${MEMORY_PER_WORKER:-2g}" --webui-port "${SPARK_WORKER_WEBUI_PORT:-0}" --work-dir "$run/work$number" "$MASTER"
    done
fi
echo "export SPARK_HOME=$SPARK_HOME MASTER=$MASTER"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stops what start_spark.sh has started on this machine, the workers first. SPARK_RUN_DIR as there.
# usage: stop_spark.sh
set -euo pipefail

run=${SPARK_RUN_DIR:-$HOME/.local/state/tfos-spark}
stop() { # NAME
    local pid deadline=$((SECONDS + 60))
    pid=$(cat "$run/$1.pid")
    # Another process may have the number by now.
    if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q 'org.apache.spark.deploy'; then
        kill "$pid"
        while [ -e "/proc/$pid" ] && [ "$(cut -d ' ' -f 3 "/proc/$pid/stat" 2>/dev/null)" != Z ]; do
            if [ $SECONDS -ge $deadline ]; then
                kill -9 "$pid" 2>/dev/null || true
            fi
            sleep 0.2
        done
        echo "$1: stopped"
    else
        echo "$1: has ended before"
    fi
    rm "$run/$1.pid"
}

shopt -s nullglob
found=("$run"/worker*.pid "$run"/master.pid)
for file in "${found[@]}"; do
    [ ! -e "$file" ] || stop "$(basename "$file" .pid)"
done

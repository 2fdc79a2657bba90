#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benches, or the one named: bench/NAME.py whose first line says `# bench: env=old|new|c`: the environment that it
# needs; c: a release build with the programs of bench/, in the folder that TFOS_BENCH_BUILD names.
# usage: bench.sh [NAME]
set -euo pipefail
cd "$(dirname "$0")/.."

benches() {
    grep -l -E '^# bench: env=(old|new|c)$' bench/*.py | sort
}

environment_of() { # FILE
    sed -n '1s/^# bench: env=//p' "$1"
}

chosen=$(benches)
if [ $# -gt 0 ]; then
    chosen=bench/$1.py
    if ! benches | grep -q -x "$chosen"; then
        echo "No bench \"$1\". There are: $(benches | xargs -n 1 basename -s .py | xargs)" >&2
        exit 2
    fi
fi

status=0
for file in $chosen; do
    environment=$(environment_of "$file")
    case "$environment" in
    c)
        scripts/system.sh build python
        cmake --preset release -B build/bench -DTFOS_TESTS=OFF -DTFOS_BENCH=ON >/dev/null
        cmake --build build/bench >/dev/null
        python=python3
        ;;
    *)
        scripts/system.sh build java
        scripts/environment.sh "$environment"
        python=.venv/bin/python
        [ "$environment" = new ] || python=.venv-$environment/bin/python
        ;;
    esac
    TFOS_BENCH_BUILD=$PWD/build/bench "$python" "$file" || {
        echo "bench: $file failed" >&2
        status=1
    }
done
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benches, or the one named: bench/NAME.c from a release build, and bench/NAME.py whose first line says
# `# bench: env=old` or `env=new`, the environment that it needs, and ` programs` where it also runs programs of that
# build. Each prints a JSON line a case.
# usage: bench.sh [NAME]
# run_c and run_python are called where set -e has no effect; they check for themselves.
set -euo pipefail
cd "$(dirname "$0")/.."

benches() {
    {
        ls bench/*.c
        grep -l -E '^# bench: env=(old|new)( programs)?$' bench/*.py
    } | sort
}

build_programs() {
    scripts/system.sh build || return
    if ! {
        cmake --preset release -B build/bench -DTFOS_TESTS=OFF -DTFOS_BENCH=ON && cmake --build build/bench
    } >build/bench.log 2>&1; then
        tail -n 40 build/bench.log >&2
        return 1
    fi
}

run_c() { # NAME
    build_programs && "build/bench/bench/bench_$1"
}

run_python() { # FILE
    local environment programs python=.venv/bin/python
    read -r environment programs < <(sed -n '1s/^# bench: env=//p' "$1")
    [ -z "$programs" ] || build_programs || return
    scripts/system.sh build java && scripts/environment.sh "$environment" || return
    [ "$environment" = new ] || python=.venv-$environment/bin/python
    "$python" "$1"
}

chosen=$(benches)
if [ $# -gt 0 ]; then
    chosen=$(benches | grep -E "^bench/$1\.(c|py)$") || {
        echo "No bench \"$1\". There are: $(benches | sed 's,bench/\(.*\)\..*,\1,' | xargs)" >&2
        exit 2
    }
fi

mkdir -p build
status=0
for file in $chosen; do
    name=$(basename "${file%.*}")
    case "$file" in
    *.c) run_c "$name" ;;
    *.py) run_python "$file" ;;
    esac || {
        echo "bench: $name failed" >&2
        status=1
    }
done
exit $status

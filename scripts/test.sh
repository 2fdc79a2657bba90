#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of a tier, in the order of their speed, each step's output also in build/test/. All steps run, also after one
# has failed, and a summary ends it.
#   check  after each edit: lint, the C tests under ASan and UBSan, the Python tests without Spark, one run through Spark
#   test   what tells whether the tree works: check, the documentation, and all Python tests that are not marked "long"
#   rest   what test leaves out: the C tests of threads under TSan, the long Python tests, the oldest Spark and TensorFlow
# Tests that fail run once more, one at a time. Those that pass then are listed under FLAKY: they are to be mended.
# Where no Python of the old line (3.9 to 3.11) is to be had, its step is reported as not run; with CI=true that is a failure.
# usage: test.sh check|test|rest...
set -uo pipefail
cd "$(dirname "$0")/.."
logs=build/test
mkdir -p "$logs"
summary=()
flaky=()
status=0

# The main path on the oldest stack.
old_tests=(
    test_cluster.py test_collective_ops.py test_dataset.py test_frames.py::test_rows_of_every_type test_frames.py::test_what_is_refused
    test_frame_tasks.py::test_a_cancelled_job_ends_at_once test_inference.py::test_s16_partitions_of_all_sizes
    test_inference.py::test_a_consumer_that_fails_in_the_middle test_native_columns.py test_spark_source.py test_spark_tables.py
    test_hadoop_formats.py::test_damage test_hadoop_formats.py::test_mapreduce_without_spark test_columnar_files.py test_dfutil.py
    test_hdfs.py::test_a_frame_and_back_in_parts "test_hdfs.py::test_hadoop_formats[new]"
)

run_step() { # NAME COMMAND...
    local name=$1 start=$SECONDS outcome=ok log="$logs/$1.log"
    shift
    echo "=== $name"
    : >"$logs/failed-once"
    "$@" 2>&1 | tee "$log"
    if [ "${PIPESTATUS[0]}" -ne 0 ]; then
        outcome=FAILED
        status=1
    fi
    if [ "$outcome" = ok ] && [ -s "$logs/failed-once" ]; then
        mapfile -t -O ${#flaky[@]} flaky <"$logs/failed-once"
    fi
    summary+=("$(printf '%-14s %-7s %4d s  %s' "$name" "$outcome" $((SECONDS - start)) "$(count_of "$log")")")
}

# What ctest or pytest said last about how many tests there were.
count_of() { # LOG
    grep -E '^[0-9]+% tests passed|^=* ?[0-9]+ (passed|failed).* in [0-9.]+' "$1" | head -n 1 | tr -d '=' | xargs
}

# The thread sanitizer cannot place its shadow memory under every randomisation of addresses.
run_ctest() { # PRESET [CTEST-ARGUMENT...]
    local preset=$1 fixed=()
    shift
    if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then fixed=(setarch "$(uname -m)" -R); fi
    cmake --preset "$preset" >/dev/null && cmake --build --preset "$preset" || return 1
    "${fixed[@]}" ctest --preset "$preset" --no-tests=error "$@" && return
    sed 's/^[0-9]*://' "build/$preset/Testing/Temporary/LastTestsFailed.log" >"$logs/failed-once"
    "${fixed[@]}" ctest --preset "$preset" --rerun-failed -j 1
}

# Two at a time: a test mostly waits for processes to start.
run_pytest() { # FOLDER [PYTEST-ARGUMENT...]
    local folder=$1 outcome
    shift
    [ -e "$folder/spark.jsa" ] || timeout 600 "$folder/bin/python" scripts/spark_archive.py "$PWD/$folder/spark.jsa" 2>&1 | tail -n 3
    "$folder/bin/python" -m pytest -q -o cache_dir="$PWD/$logs/cache" --cache-clear --timeout=600 -n 2 --dist worksteal "$@"
    outcome=$?
    [ $outcome -eq 1 ] || return $outcome
    "$folder/bin/python" -c 'import json, sys; print(*json.load(sys.stdin), sep="\n")' \
        <"$logs/cache/v/cache/lastfailed" >"$logs/failed-once"
    "$folder/bin/python" -m pytest -q -o cache_dir="$PWD/$logs/cache" --last-failed --last-failed-no-failures none --timeout=600 "$@"
}

run_python_new() { # PYTEST-ARGUMENT...
    scripts/environment.sh new && run_pytest .venv "$@"
}

run_python_old() {
    scripts/environment.sh old
    case $? in
    0) run_pytest .venv-old "${old_tests[@]/#/python/tests/}" ;;
    3) [ "${CI:-}" != true ] && echo "NOT RUN: Spark 3.5 with TensorFlow 2.15" ;;
    *) return 1 ;;
    esac
}

run_tier() { # NAME
    case "$1" in
    check)
        run_step lint scripts/lint.sh
        run_step c-asan-ubsan run_ctest dev
        run_step python run_python_new python/tests -m "not spark and not long"
        run_step one-by-spark run_python_new python/tests/test_cluster.py -k test_every_row_once_an_epoch
        ;;
    test)
        run_step lint scripts/lint.sh
        run_step docs scripts/docs.sh
        run_step c-asan-ubsan run_ctest dev
        run_step python run_python_new python/tests -m "not long"
        ;;
    rest)
        run_step c-tsan run_ctest tsan -R '^(base_channel|cluster|collective|dataset|feed|gpu|node|trainer)'
        run_step python-long run_python_new python/tests -m long
        run_step python-old run_python_old
        ;;
    *)
        echo "usage: test.sh check|test|rest..." >&2
        exit 2
        ;;
    esac
}

scripts/system.sh build java lint || exit 1
for tier in "$@"; do run_tier "$tier"; done

echo
echo "=== summary"
printf '%s\n' "${summary[@]}"
grep -h '^NOT RUN' "$logs"/python-old.log 2>/dev/null
[ ${#flaky[@]} -eq 0 ] || printf 'FLAKY: %s\n' "${flaky[@]}"
exit $status

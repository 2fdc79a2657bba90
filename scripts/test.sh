#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test, in the order of their speed, each step's output also in build/test/. All steps run, also after one has
# failed, and a summary ends it.
# Where no Python of the old line (3.9 to 3.11) is to be had, its step is reported as not run; with CI=true that is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=build/test
mkdir -p "$logs"
summary=()
status=0

run_step() { # NAME COMMAND...
    local name=$1 start=$SECONDS outcome=ok log="$logs/$1.log"
    shift
    echo "=== $name"
    "$@" 2>&1 | tee "$log"
    if [ "${PIPESTATUS[0]}" -ne 0 ]; then
        outcome=FAILED
        status=1
    fi
    summary+=("$(printf '%-14s %-7s %4d s  %s' "$name" "$outcome" $((SECONDS - start)) "$(count_of "$log")")")
}

# What ctest or pytest said last about how many tests there were.
count_of() { # LOG
    grep -E '^[0-9]+% tests passed|^=* ?[0-9]+ (passed|failed).* in [0-9.]+' "$1" | tail -n 1 | tr -d '=' | xargs
}

run_ctest() { # PRESET [CTEST-ARGUMENT...]
    local preset=$1
    shift
    cmake --preset "$preset" >/dev/null && cmake --build --preset "$preset" || return 1
    ctest --preset "$preset" --no-tests=error "$@"
}

# The thread sanitizer cannot place its shadow memory under every randomisation of addresses.
run_tsan() {
    local fixed=()
    if setarch "$(uname -m)" -R true 2>/dev/null; then fixed=(setarch "$(uname -m)" -R); fi
    cmake --preset tsan >/dev/null && cmake --build --preset tsan || return 1
    "${fixed[@]}" ctest --preset tsan --no-tests=error -L unit
}

# Two files at a time: a test mostly waits for processes to start.
run_pytest() { # FOLDER [PYTEST-ARGUMENT...]
    local folder=$1
    shift
    "$folder/bin/python" -m pytest -q -p no:cacheprovider --timeout=180 -n 2 --dist loadfile "$@"
}

run_python_old() {
    scripts/environment.sh old
    case $? in
    0)
        run_pytest .venv-old python/tests/test_cluster.py python/tests/test_dataset.py python/tests/test_frames.py::test_rows_of_every_type \
            python/tests/test_frames.py::test_what_is_refused python/tests/test_frame_tasks.py::test_a_cancelled_job_ends_at_once \
            python/tests/test_inference.py::test_s16_partitions_of_all_sizes python/tests/test_inference.py::test_a_consumer_that_fails_in_the_middle \
            python/tests/test_native_columns.py python/tests/test_spark_source.py python/tests/test_spark_tables.py \
            python/tests/test_hadoop_formats.py::test_damage python/tests/test_hadoop_formats.py::test_mapreduce_without_spark \
            python/tests/test_columnar_files.py python/tests/test_dfutil.py python/tests/test_hdfs.py::test_a_frame_and_back_in_parts "python/tests/test_hdfs.py::test_hadoop_formats[new]"
        ;;
    3) [ "${CI:-}" != true ] && echo "NOT RUN: Spark 3.5 with TensorFlow 2.15" ;;
    *) return 1 ;;
    esac
}

scripts/system.sh build java lint || exit 1
run_step lint scripts/lint.sh
run_step docs scripts/docs.sh
run_step c-asan-ubsan run_ctest dev
run_step c-tsan run_tsan
run_step python-new eval 'scripts/environment.sh new && run_pytest .venv python/tests'
run_step python-old run_python_old

echo
echo "=== summary"
printf '%s\n' "${summary[@]}"
grep -h '^NOT RUN' "$logs"/python-old.log
exit $status

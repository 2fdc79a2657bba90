#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of yahoo/TensorFlowOnSpark 2.2.5, unchanged, from a folder with that project's sources, against this package on a
# Standalone cluster of two workers with one core each.
# usage: original_tests.sh [--old] FOLDER [MODULE...]    --old: on Spark 3.5 and TensorFlow 2.15; MODULE: such as test_pipeline; all, if none is named
# exit status: 1 when a test fails that is not among those that differ, or when one of these passes.
set -euo pipefail

# Test modules of what was for the package's own use there, and is not here (docs/migrating.md).
declare -A internal=(
    [test_reservation]="reservation: connections need the cluster's key, and nothing is unpickled"
    [test_TFSparkNode]="TFSparkNode's private functions"
)

# Tests that ask for what is different here on purpose: what their error must contain, and why.
declare -A differs=(
    [test_TFNode.TFNodeTest.test_datafeed]="TFManager|it starts a TFManager by itself; a DataFeed reads the node's feed here"
    [test_pipeline.PipelineTest.test_spark_saved_model]="within 2 places|Keras since 2.11 ignores the learning rate of Adam(lr=0.2), so its model has not learned enough; in one process without Spark it has not, either"
)

. "$(dirname "$0")/suite_options.sh"
source=$(realpath -e "$1/tests")
modules=("${@:2}")
cd "$(dirname "$0")/.."
scripts/system.sh java
scripts/environment.sh "$environment"
python=$PWD/$venv/bin/python
work=$PWD/build/original_tests/$environment
rm -rf "$work"
mkdir -p "$work"

SPARK_HOME=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
SPARK_CLASSPATH=$("$python" -c 'from tensorflowonspark import jar; print(jar.path())')
export SPARK_HOME SPARK_CLASSPATH SPARK_WORKER_INSTANCES=2 SPARK_LOCAL_IP=127.0.0.1 SPARK_DAEMON_MEMORY=256m
[ "$environment" = old ] || export TF_USE_LEGACY_KERAS=1 # TensorFlow 2.15 has Keras 2 itself
export JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' # these JVMs end before more would pay
export PYSPARK_PYTHON=$python PYSPARK_DRIVER_PYTHON=$python TF_CPP_MIN_LOG_LEVEL=3
started=()
trap '[ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true' EXIT

daemon() { # NAME CLASS ARGUMENT...
    local name=$1
    shift
    : >"$work/$name.log" # await reads it at once
    "$SPARK_HOME/bin/spark-class" "$@" >>"$work/$name.log" 2>&1 &
    started+=($!)
}

await() { # NAME PATTERN: what the log of the daemon has
    local _
    for _ in $(seq 600); do
        grep -oE "$2" "$work/$1.log" && return
        sleep 0.1
    done
    echo "original_tests: $1 did not start; $work/$1.log says why" >&2
    return 1
}

daemon master org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 0 --webui-port 0
MASTER=$(await master 'spark://127\.0\.0\.1:[0-9]+' | head -n 1)
export MASTER
for number in 1 2; do
    daemon "worker$number" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --cores 1 --memory 1g --webui-port 0 \
        --work-dir "$work/worker$number" "$MASTER"
    await "worker$number" 'Successfully registered' >/dev/null
done

cp "$source"/*.py "$work"
cd "$work"
declare -A counts=([passed]=0 [failed]=0 [differs]=0)

judge() { # TEST OUTCOME FILE-WITH-ITS-ERROR
    local expected=${differs[$1]:-}
    if [ "$2" = ok ] && [ -z "$expected" ]; then
        counts[passed]=$((counts[passed] + 1))
    elif [ "$2" != ok ] && [ -n "$expected" ] && grep -qF "${expected%%|*}" "$3"; then
        counts[differs]=$((counts[differs] + 1))
        echo "differs: $1: ${expected#*|}"
    else
        counts[failed]=$((counts[failed] + 1))
        echo "FAILED: $1: $2${expected:+, where it is said to differ}; $work/$3"
    fi
}

[ ${#modules[@]} -gt 0 ] || for file in test_*.py; do modules+=("${file%.py}"); done
for module in "${modules[@]}"; do
    if [ -n "${internal[$module]:-}" ]; then
        echo "not run: $module: ${internal[$module]}"
        continue
    fi
    "$python" - "$module" <<'END' >"$module.log" 2>"$module.err" || true
import sys
import unittest

# The tests tell by lines of their own.
class Result(unittest.TextTestResult):
    def stopTest(self, test):
        super().stopTest(test)
        said = [text for failed, text in self.failures + self.errors if failed is test]
        with open(f"{test.id()}.err", "w") as file:
            file.writelines(said)
        print("outcome", test.id(), "failed" if said else "ok", flush=True)

suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
unittest.TextTestRunner(sys.stderr, resultclass=Result).run(suite)
END
    grep -q '^outcome ' "$module.log" || judge "$module" "no test has run" "$module.err"
    while read -r _ test outcome; do
        judge "$test" "$outcome" "$test.err"
    done < <(grep '^outcome ' "$module.log")
done
echo "original_tests: ${counts[passed]} passed, ${counts[differs]} differ, ${counts[failed]} failed"
[ "${counts[failed]}" -eq 0 ]

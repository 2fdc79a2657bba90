#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that can be judged without running the product; "quick" leaves out what needs a build. All checks run, also
# after one has failed.
# usage: lint.sh [quick]
set -uo pipefail
cd "$(dirname "$0")/.."
scripts/system.sh build lint && scripts/environment.sh lint || exit 1
tools=$PWD/.venv-lint/bin
build=build/lint
failed=()

check() { # NAME COMMAND...
    local name=$1 start=$SECONDS
    shift
    if "$@"; then
        echo "lint: $name: ok ($((SECONDS - start)) s)"
    else
        echo "lint: $name: FAILED"
        failed+=("$name")
    fi
}

c_files() { # FOLDER...
    find "$@" -name '*.[ch]' | sort
}

# tfos.jar is built, and its C judged, where a JDK and Spark's jars are.
build_release() {
    cmake --preset release -B "$build" -DTFOS_TESTS=OFF -DTFOS_PYTHON=ON -DPython3_EXECUTABLE="$tools/python" \
        -DTFOS_JAVA=AUTO -DTFOS_SPARK_JARS="$(find "$PWD"/.venv/lib -path '*/pyspark/jars' -prune 2>/dev/null)" \
        >"$build.log" 2>&1 &&
        cmake --build "$build" >>"$build.log" 2>&1 || {
        tail -n 40 "$build.log"
        return 1
    }
}

check_format() {
    c_files include src cli tensorflow java python/src tests bench examples | xargs "$tools/clang-format" --dry-run -Werror
}

check_tidy() {
    local folders=(src cli tensorflow python/src)
    [ ! -e "$build/java/tfos.jar" ] || folders+=(java)
    find "${folders[@]}" -name '*.c' | sort |
        xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet --extra-arg=-w 2>"$build.tidy" || {
        grep -v -E '^[0-9]+ warnings? ' "$build.tidy"
        return 1
    }
}

check_exports() {
    "$tools/python" scripts/lint/exports.py "$build/src/libtfos.so" 'tfos_[a-z][a-z0-9_]*' &&
        "$tools/python" scripts/lint/exports.py "$(find "$build/python" -name '_tfos*.so')" 'PyInit__tfos' &&
        "$tools/python" scripts/lint/exports.py "$build/tensorflow/libtfos_tf.so" 'tfos_tf_[a-z_]+|TF_InitPlugin' &&
        { [ ! -e "$build/java/tfos.jar" ] ||
            "$tools/python" scripts/lint/exports.py "$build/java/libtfos_jni.so" 'JNI_OnLoad|Java_org_tfos_[a-zA-Z]*Native_[a-zA-Z]+'; }
}

check_shell() {
    find deploy -name '*.sh' | sort | xargs "$tools/shellcheck" --severity=warning
}

# Debian's packages and the newest fitting ones of pip are not pinned; Spark's image names its user.
check_dockerfiles() {
    find deploy -name 'Dockerfile*' | sort | xargs "$tools/hadolint" --ignore DL3008 --ignore DL3013 --ignore DL3066
}

mkdir -p build
check layers "$tools/python" scripts/lint/layers.py
check "banned calls and spellings" "$tools/python" scripts/lint/banned.py
check "files and names" "$tools/python" scripts/lint/tree.py
check objects "$tools/python" scripts/lint/objects.py
check "public headers" "$tools/python" scripts/lint/headers.py
check clang-format check_format
check shellcheck check_shell
check Dockerfiles check_dockerfiles
check ruff "$tools/ruff" check --quiet --output-format concise .
if [ "${1:-}" != quick ]; then
    check "release build" build_release
    check exports check_exports
    check clang-tidy check_tidy
fi
check "the checks themselves" "$tools/python" -m pytest -q -p no:cacheprovider tests/lint

if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: failed: ${failed[*]}"
    exit 1
fi

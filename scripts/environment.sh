#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes or refreshes a virtual environment: its requirements, and for new and old this package, built from the tree.
# Does nothing when neither has changed. PYTHON_NEW, PYTHON_OLD ... choose the interpreter.
# usage: environment.sh new|old|lint|docs|dist
# exit status: 3 when this machine has no Python of a version that the environment can use.
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1
case "$name" in
new) folder=.venv oldest=10 newest=13 ;;   # TensorFlow 2.21, Spark 4.3
old) folder=.venv-old oldest=9 newest=11 ;; # TensorFlow 2.15, Spark 3.5
lint | docs | dist) folder=.venv-$name oldest=9 newest=99 ;;
*)
    echo "usage: environment.sh new|old|lint|docs|dist" >&2
    exit 2
    ;;
esac
requirements=scripts/requirements/$name.txt
without_dependencies=scripts/requirements/$name-nodeps.txt

find_python() {
    local variable=PYTHON_${name^^} candidate
    for candidate in "${!variable:-}" python3 python3.{13,12,11,10,9} \
        /usr/local/bin/python3.{13,12,11,10,9} "$HOME"/.pyenv/versions/*/bin/python3; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c "import sys; sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))" \
            2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

explain_missing_python() {
    echo "No Python 3.$oldest to 3.$newest was found, and the \"$name\" environment needs one." >&2
    echo "Install one (a package python3.$newest, or pyenv install 3.$newest), or name it: PYTHON_${name^^}=/path/to/python3 make ..." >&2
}

# Debian keeps venv and the headers apart from the interpreter.
complete_python() { # PYTHON
    local version
    version=$("$1" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    "$1" -c 'import ensurepip, venv' 2>/dev/null || scripts/system.sh "$version-venv"
    "$1" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
        scripts/system.sh "$version-dev"
}

checksum() {
    sha256sum | cut -d ' ' -f 1
}

requirements_state() {
    cat scripts/requirements/"$name"*.txt | checksum
}

package_state() {
    {
        cat CMakeLists.txt pyproject.toml README.md LICENSE
        find include src cli deploy java tensorflow python/src python/tensorflowonspark* python/spark_tensorflow_distributor python/hops -type f ! -name '*.pyc' -print0 |
            sort -z | xargs -0 sha256sum
    } | checksum
}

install_requirements() {
    local state python
    state=$(requirements_state)
    [ "$(cat "$folder/.requirements" 2>/dev/null)" != "$state" ] || return 0
    scripts/system.sh python
    if ! python=$(find_python); then
        explain_missing_python
        exit 3
    fi
    complete_python "$python"
    echo "Setting up $folder with $("$python" --version) (the first time takes minutes)"
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    if [ -e "$without_dependencies" ]; then
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$without_dependencies"
    fi
    echo "$state" >"$folder/.requirements"
}

spark_jars() {
    "$folder/bin/python" -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "jars"))'
}

install_package() {
    local state
    state=$(package_state)
    [ "$(cat "$folder/.package" 2>/dev/null)" != "$state" ] || return 0
    scripts/system.sh build java
    echo "Building and installing tfos into $folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        --force-reinstall --config-settings=cmake.define.TFOS_JAVA=ON \
        --config-settings=cmake.define.TFOS_SPARK_JARS="$(spark_jars)" .
    echo "$state" >"$folder/.package"
}

mkdir -p build
exec 9>"build/.environment-$name.lock"
flock -w 1800 9 || {
    echo "Another make has been setting up $folder for half an hour; giving up." >&2
    exit 1
}
install_requirements
case "$name" in new | old) install_package ;; esac

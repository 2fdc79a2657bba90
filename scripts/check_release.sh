#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries a release as its user would: in a new virtual environment, with a PATH that has Java but neither compiler, CMake nor JDK,
# it installs the wheel and runs `tfos --version`, `tfos doctor` and the README's nine lines. The wheel is then loaded by each Python
# 3.9 and later that is here. What is for another machine is looked at (scripts/release/audit.py), and runs as far as qemu-user goes.
# usage: check_release.sh DIST [PACKAGE...]
#   PACKAGE  what is installed beside the wheel, for pip: pyspark and tensorflow-cpu (tensorflow on arm64)
set -euo pipefail

if [ $# -lt 1 ] || [ ! -e "$1/SHA256SUMS" ]; then
    echo "usage: check_release.sh DIST [PACKAGE...]: DIST is a folder that make dist has made" >&2
    exit 2
fi
dist=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
packages=("$@")
if [ $# -eq 0 ]; then
    packages=(pyspark tensorflow)
    [ "$(uname -m)" != x86_64 ] || packages=(pyspark tensorflow-cpu)
fi
version=$(basename "$dist"/tfos-*.tar.gz .tar.gz)
version=${version#tfos-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Programs that Spark's scripts and Python's packages start.
programs=(bash sh env dirname basename cat uname ps nice ls tr sed grep awk readlink mkdir rm hostname id date sleep head cut chmod ln getconf)
forbidden=(cc gcc clang c++ cmake make ninja pkg-config javac jar)

say() {
    echo "check_release: $*"
}

limit_path() {
    local program
    mkdir "$work/programs"
    for program in "${programs[@]}"; do
        if command -v "$program" >/dev/null; then ln -s "$(command -v "$program")" "$work/programs/$program"; fi
    done
    local java=${JAVA_HOME:+$JAVA_HOME/bin/java}
    ln -s "$(readlink -f "${java:-$(command -v java)}")" "$work/programs/java"
    for program in "${forbidden[@]}"; do
        if PATH=$work/programs command -v "$program" >/dev/null; then
            echo "check_release: $program is in the PATH that was to have none" >&2
            exit 1
        fi
    done
}

as_user() { # COMMAND...
    env -u JAVA_HOME -u SPARK_HOME -u PYTHONPATH -u LD_LIBRARY_PATH -u CC -u PYSPARK_PYTHON PATH="$work/environment/bin:$work/programs" "$@"
}

check_install() {
    say "wheel into a new environment of $(python3 --version)"
    python3 -m venv "$work/environment"
    as_user pip install --quiet --disable-pip-version-check --no-index --no-deps --find-links "$dist" "tfos==$version"
    as_user pip install --quiet --disable-pip-version-check "tfos==$version" "${packages[@]}"
    [ "$(as_user tfos --version)" = "tfos $version" ]
    [ -e "$work/environment/share/man/man1/tfos.1" ]
    [ -e "$work/environment/share/bash-completion/completions/tfos" ]
    as_user tfos doctor
}

check_demo() {
    say "the README's nine lines on two Spark executors"
    as_user python -c 'import importlib.metadata as m; print(m.metadata("tfos").get_payload())' >"$work/README.md"
    cp scripts/release/nine_lines.py "$work"
    (cd "$work" && as_user python nine_lines.py README.md) >"$work/demo.log" 2>&1 || {
        tail -n 40 "$work/demo.log" >&2
        exit 1
    }
    tail -n 1 "$work/demo.log"
}

# Reads by the extension what the command has made of a table.
printf '%s\n' number,name 1,a 2,b 3,c >"$work/table.csv"
cat >"$work/records.py" <<'END'
import sys
from tensorflowonspark import tfrecord

batch, = tfrecord.read(sys.argv[1], form="numpy")
assert batch["number"].tolist() == [1, 2, 3], batch
END

find_python() { # MINOR
    local candidate
    for candidate in "python3.$1" "/usr/local/bin/python3.$1" "$HOME"/.pyenv/versions/3."$1".*/bin/python3; do
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

check_pythons() {
    local python minor
    for minor in 9 10 11 12 13; do
        python=$(find_python "$minor") || {
            say "Python 3.$minor is not here: not tried"
            continue
        }
        "$python" -m venv "$work/python"
        "$work/python/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$dist"/tfos-*_"$(uname -m)".whl pyarrow
        "$work/python/bin/tfos" record convert "$work/table.csv" "$work/records"
        "$work/python/bin/python" "$work/records.py" "$work/records"
        say "Python 3.$minor: ok"
        rm -rf "$work/python"
    done
}

check_emulated() {
    local sysroot=$PWD/build/arm64/sysroot
    if [ "$(uname -m)" != x86_64 ]; then
        say "the wheel for x86-64 was looked at and not run"
        return
    fi
    if ! command -v qemu-aarch64 >/dev/null || [ ! -d "$sysroot" ]; then
        say "no qemu-aarch64 with build/arm64/sysroot: the wheel for arm64 was looked at and not run"
        return
    fi
    local python glibc platforms=()
    for glibc in 34 28 27 17; do platforms+=(--platform "manylinux_2_${glibc}_aarch64"); done
    python=$(find "$sysroot/usr/bin" -regex '.*/python3\.[0-9]+' | sort -V | tail -n 1)
    as_user pip install --quiet --disable-pip-version-check --only-binary :all: --target "$work/arm64" "${platforms[@]}" \
        --python-version "$(basename "$python" | tr -d python)" "$dist"/tfos-*_aarch64.whl pyarrow
    local run=(qemu-aarch64 -L "$sysroot")
    [ "$("${run[@]}" "$work/arm64/bin/tfos" --version)" = "tfos $version" ]
    "${run[@]}" "$work/arm64/bin/tfos" record convert "$work/table.csv" "$work/records"
    "${run[@]}" -E PYTHONPATH="$work/arm64" "$python" "$work/records.py" "$work/records"
    say "arm64 under qemu: the command and the extension run; Spark and TensorFlow were not tried there"
}

say "checksums"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
scripts/environment.sh dist
.venv-dist/bin/python scripts/release/audit.py "$dist"
limit_path
check_install
check_demo
check_pythons
check_emulated
say "ok"

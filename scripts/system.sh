#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sees to the system packages that the named parts need: installs what is missing with apt-get where it may, else
# prints the command to type and fails.
# usage: system.sh [build] [java] [lint] [python] [PACKAGE...]
set -euo pipefail

missing=()

need_command() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || missing+=("$2")
}

need_library() { # PKG-CONFIG-EXPRESSION PACKAGE
    pkg-config --exists "$1" 2>/dev/null || missing+=("$2")
}

java_command() {
    if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi
}

java_is_enough() { # Spark 4 needs Java 17, and tfos.jar a compiler and jni.h
    local version
    version=$("$(java_command)" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$version" ] && [ "$version" -ge 17 ] || return 1
    [ -e "$(dirname "$(readlink -f "$(command -v "$(java_command)c")")")/../include/jni.h" ]
}

collect() {
    local part
    missing=()
    for part in "$@"; do
        case "$part" in
        build)
            need_command gcc "gcc"
            [ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
            need_command cmake cmake
            need_command ninja ninja-build
            need_command pkg-config pkg-config
            need_library "openssl >= 3" libssl-dev
            need_library "jansson >= 2.13" libjansson-dev
            need_library zlib zlib1g-dev
            need_library cmocka libcmocka-dev
            ;;
        java) java_is_enough || missing+=(openjdk-17-jdk-headless) ;;
        lint) need_command clang-tidy clang-tidy ;;
        python) need_command python3 python3 ;;
        *) missing+=("$part") ;;
        esac
    done
}

# Debian and Ubuntu releases differ in the JDKs that they carry.
use_present_jdk() {
    local index
    for index in "${!missing[@]}"; do
        if [ "${missing[$index]}" = openjdk-17-jdk-headless ] &&
            ! apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then
            missing[index]=default-jdk-headless
        fi
    done
}

collect "$@"
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "This machine lacks what these Debian packages hold: ${missing[*]}" >&2
    echo "Install their counterparts (OpenSSL 3, Jansson 2.13, Java 17 or later), then run make again." >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    privilege=()
elif sudo -n true 2>/dev/null; then
    privilege=(sudo -n)
else
    echo "Some system packages are missing, and only root may install them. Type:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    echo "then run make again." >&2
    exit 1
fi

"${privilege[@]}" apt-get update -qq
use_present_jdk
echo "Installing system packages: ${missing[*]}"
"${privilege[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

parts=()
for part in "$@"; do
    case "$part" in build | java | lint | python) parts+=("$part") ;; esac
done
collect "${parts[@]}"
if [ ${#missing[@]} -gt 0 ]; then
    echo "Still missing or too old after installing: ${missing[*]} (is an older one first on the PATH or in JAVA_HOME?)" >&2
    exit 1
fi

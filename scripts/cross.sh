#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds all C for arm64 on a Debian machine of another kind, in build/arm64, and runs the C tests under qemu-user. The
# libraries for arm64 are unpacked below build/arm64; only the compiler and the emulator are installed.
# usage: cross.sh [CTEST-ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/build/arm64
sysroot=$folder/sysroot
packages=(libc6-dev libssl-dev libjansson-dev libcmocka-dev)

# qemu-user 7.2 lacks mremap() of a size of 0 (moving batches that are held), PR_SET_CHILD_SUBREAPER (every node) and vfork(),
# moves signals, and names processes after itself. Programs that start the command need a kernel that runs arm64's.
not_emulated='^(node_|trainer_|cli\.|feed_(batch_detach|lending)\.)'
not_emulated+='|\.(batches_may_be_larger_than_the_ring|s14_who_waits_for_rows_holds_up_nobody)$'
not_emulated+='|\.(signals_are_as_new|what_cannot_be_started_is_named|a_taken_range_names_the_holders)$'
not_emulated+='|\.who_does_not_read_is_dropped$' # encrypts 200 MB: takes minutes

# With a state of its own, apt sees a bare arm64 machine and resolves what the packages need.
download() {
    local apt=$folder/apt
    mkdir -p "$apt"/{lists,cache}/partial "$apt/cache/archives/partial"
    : >"$apt/status"
    cat >"$apt/apt.conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
EOF
    APT_CONFIG=$apt/apt.conf apt-get update -qq
    APT_CONFIG=$apt/apt.conf apt-get install -qq --download-only --no-install-recommends "${packages[@]}" >/dev/null
}

make_sysroot() {
    local package
    download
    rm -rf "$sysroot.new"
    mkdir -p "$sysroot.new/usr/lib"
    ln -s usr/lib "$sysroot.new/lib"
    for package in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb --extract "$package" "$sysroot.new"
    done
    mv "$sysroot.new" "$sysroot"
}

command -v aarch64-linux-gnu-gcc >/dev/null || scripts/system.sh build gcc-aarch64-linux-gnu
command -v qemu-aarch64 >/dev/null || scripts/system.sh qemu-user
[ -d "$sysroot" ] || make_sysroot

export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_SYSROOT="$sysroot" -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
    -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
    -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;$sysroot"
cmake --build "$folder"
ctest --test-dir "$folder" --output-on-failure -E "$not_emulated" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sees to build/arm64/sysroot on a Debian machine of another kind: the libraries for arm64, and a Python to try what was built.
# Only the compiler and the emulator are installed on the machine.
# usage: sysroot.sh
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/build/arm64
sysroot=$folder/sysroot
packages=(libc6-dev libssl-dev libjansson-dev zlib1g-dev libcmocka-dev python3 libstdc++6)

# With a state of its own, apt sees a bare arm64 machine and resolves what the packages need.
download() {
    local apt=$folder/apt
    rm -rf "$apt/cache"
    mkdir -p "$apt"/{lists,cache}/partial "$apt/cache/archives/partial"
    : >"$apt/status"
    cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
END
    APT_CONFIG=$apt/apt.conf apt-get update -qq
    APT_CONFIG=$apt/apt.conf apt-get install -qq --download-only --no-install-recommends "${packages[@]}" >/dev/null
}

make_sysroot() {
    local package
    download
    rm -rf "$sysroot.new" "$sysroot"
    mkdir -p "$sysroot.new/usr/lib"
    ln -s usr/lib "$sysroot.new/lib"
    for package in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb --extract "$package" "$sysroot.new"
    done
    echo "${packages[*]}" >"$sysroot.new/.packages"
    mv "$sysroot.new" "$sysroot"
}

command -v aarch64-linux-gnu-gcc >/dev/null || scripts/system.sh build gcc-aarch64-linux-gnu
command -v qemu-aarch64 >/dev/null || scripts/system.sh qemu-user
[ "$(cat "$sysroot/.packages" 2>/dev/null)" = "${packages[*]}" ] || make_sysroot

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jansson as an archive for shared libraries, which Debian's cannot become part of, from Debian's source package: for this
# machine in FOLDER/opt/jansson, for arm64 in SYSROOT/opt/jansson.
# usage: jansson.sh FOLDER SYSROOT
set -euo pipefail

scripts=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
export TFOS_SYSROOT=$2
[ ! -e "$folder/opt/jansson/lib/libjansson.a" ] || [ ! -e "$TFOS_SYSROOT/opt/jansson/lib/libjansson.a" ] || exit 0

# The machine's own sources of packages, as sources of source packages: apt checks their signatures.
download() {
    local apt=$folder/apt file
    rm -rf "$apt"
    mkdir -p "$apt"/{sources,lists/partial,cache}
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do
        [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/sources/$(basename "$file")"
    done
    [ ! -e /etc/apt/sources.list ] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$apt/sources/main.list"
    cat >"$apt/apt.conf" <<END
APT::Sandbox::User "";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
END
    APT_CONFIG=$apt/apt.conf apt-get update -qq
    (cd "$folder" && APT_CONFIG=$apt/apt.conf apt-get source -qq --download-only jansson)
}

build() { # NAME DESTINATION CMAKE-ARGUMENT...
    local name=$1 destination=$2
    shift 2
    cmake -S "$folder/source" -B "$folder/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_C_FLAGS="-fvisibility=hidden -ffile-prefix-map=$folder=." -DCMAKE_INSTALL_PREFIX=/opt/jansson \
        -DCMAKE_INSTALL_LIBDIR=lib -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF "$@"
    DESTDIR=$destination cmake --build "$folder/$name" --target install
    # CMake writes the folder of the installation into it; pkg-config adds that of DESTDIR where it is told to.
    [ "$destination" = "$TFOS_SYSROOT" ] || sed -i "s|^prefix=.*|prefix=$destination/opt/jansson|" "$destination"/opt/jansson/lib/pkgconfig/jansson.pc
}

mkdir -p "$folder"
{
    download
    rm -rf "$folder/source"
    mkdir "$folder/source"
    tar -xf "$folder"/jansson_*.orig.tar.* -C "$folder/source" --strip-components 1
    build native "$folder"
    build arm64 "$TFOS_SYSROOT" -DCMAKE_TOOLCHAIN_FILE="$scripts/arm64.cmake"
} >"$folder/log" 2>&1 || {
    tail -n 40 "$folder/log" >&2
    echo "Jansson cannot be built; the log is $folder/log" >&2
    exit 1
}

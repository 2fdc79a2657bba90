#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a release in dist/: the source distribution, a wheel for x86-64 and one for arm64, tfos.jar for Maven, an SBOM and the
# checksums. Everything is built twice, from the source distribution, in two folders, and must be bit-equal. It needs a Debian
# machine of x86-64; docs/releasing.md says what each file is.
#   SOURCE_DATE_EPOCH  the time that the files bear: that of the last commit
#   TFOS_MANYLINUX     what the wheels promise: manylinux_2_34, glibc 2.34 or later
# usage: dist.sh
set -euo pipefail
cd "$(dirname "$0")/.."

promise=${TFOS_MANYLINUX:-manylinux_2_34}
work=$PWD/build/dist
tools=$PWD/.venv-dist/bin
sysroot=$PWD/build/arm64/sysroot
version=$(sed -n 's/^#define TFOS_VERSION "\(.*\)"/\1/p' include/tfos/version.h)
sdist=$work/tfos-$version.tar.gz

say() {
    echo "dist: $*"
}

prepare() {
    if [ "$(uname -m)" != x86_64 ] || ! command -v apt-get >/dev/null; then
        echo "A release is built on Debian for x86-64, which brings the compiler and the libraries for arm64." >&2
        exit 1
    fi
    [ -z "$(git status --porcelain 2>/dev/null)" ] || say "the tree has changes that are not committed; they are in this release"
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
    scripts/system.sh build java
    scripts/sysroot.sh
    scripts/environment.sh dist
    scripts/environment.sh new # has Spark's jars, against which Java is compiled
    spark_jars=$(.venv/bin/python -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "jars"))')
    scripts/release/jansson.sh "$work/jansson" "$sysroot"
    rm -rf "$work"/{first,second,*.tar.gz}
}

make_sdist() { # FOLDER
    "$tools/python" -m build --sdist --no-isolation --outdir "$1" . >"$work/sdist.log" 2>&1 || {
        tail -n 40 "$work/sdist.log" >&2
        exit 1
    }
}

make_wheel() { # FOLDER ARCHITECTURE
    local source=$1/tfos-$version variables=() settings=()
    local log=$1/$2.log
    if [ "$2" = aarch64 ]; then
        variables=(TFOS_SYSROOT="$sysroot" _PYTHON_HOST_PLATFORM=linux-aarch64 PKG_CONFIG_SYSROOT_DIR="$sysroot"
            PKG_CONFIG_LIBDIR="$sysroot/opt/jansson/lib/pkgconfig:$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig")
        settings=(-Ccmake.define.CMAKE_TOOLCHAIN_FILE="$source/scripts/arm64.cmake")
    else
        variables=(PKG_CONFIG_PATH="$work/jansson/opt/jansson/lib/pkgconfig")
    fi
    # With the RPATH of the installation from the start, no file depends on the folder's name.
    (cd "$source" && env CFLAGS="-ffile-prefix-map=$source=." "${variables[@]}" "$tools/python" -m build --wheel --no-isolation \
        --outdir "$1/$2" -Cbuild-dir="$1/build-$2" -Ccmake.define.TFOS_JAVA=ON -Ccmake.define.TFOS_SPARK_JARS="$spark_jars" \
        -Ccmake.define.TFOS_ARCHIVES=ON -Ccmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH=ON "${settings[@]}" .) >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        exit 1
    }
}

make_all() { # FOLDER
    mkdir -p "$1"
    tar -xf "$sdist" -C "$1"
    make_wheel "$1" x86_64
    make_wheel "$1" aarch64
    "$tools/python" scripts/release/assemble.py "$1/tfos-$version" "$1/out" --spark-jars "$spark_jars" --platform "$promise" \
        "$1"/x86_64/*.whl "$1"/aarch64/*.whl
    cp "$sdist" "$1/out"
    "$tools/python" scripts/release/sbom.py "$1/out" "$version" \
        openssl="$(pkg-config --modversion openssl)" zlib="$(pkg-config --modversion zlib)" \
        jansson="$(PKG_CONFIG_PATH=$work/jansson/opt/jansson/lib/pkgconfig pkg-config --modversion jansson)"
    (cd "$1/out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
}

mkdir -p "$work"
prepare
say "the source distribution"
make_sdist "$work"
make_sdist "$work/second"
cmp "$sdist" "$work/second/tfos-$version.tar.gz"
for folder in first second; do
    say "wheels and jar, $folder build"
    make_all "$work/$folder"
done
diff -r "$work/first/out" "$work/second/out" || {
    echo "dist: two builds differ: $work/first/out and $work/second/out" >&2
    exit 1
}
say "both builds are bit-equal"
"$tools/python" scripts/release/audit.py "$work/first/out" --platform "$promise"
rm -rf dist
cp -r "$work/first/out" dist
(cd dist && find . -type f -printf '%10s  %P\n' | sort -k 2)

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds all C for arm64 on a Debian machine of another kind, in build/arm64, and runs the C tests under qemu-user.
# scripts/sysroot.sh has what it is built against.
# usage: cross.sh [CTEST-ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/build/arm64
export TFOS_SYSROOT=$folder/sysroot

# qemu-user 7.2 lacks mremap() of a size of 0 (moving batches that are held), PR_SET_CHILD_SUBREAPER (every node) and vfork(),
# moves signals, and names processes after itself. Programs that start the command need a kernel that runs arm64's.
not_emulated='^(node_|trainer_|cli\.|feed_(batch_detach|held_batches)\.)'
not_emulated+='|\.(batches_may_be_larger_than_the_ring|s14_who_waits_for_rows_holds_up_nobody)$'
not_emulated+='|\.(signals_are_as_new|what_cannot_be_started_is_named|a_taken_range_names_the_holders)$'
not_emulated+='|\.who_does_not_read_is_dropped$' # encrypts 200 MB: takes minutes

scripts/sysroot.sh
export PKG_CONFIG_LIBDIR=$TFOS_SYSROOT/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$TFOS_SYSROOT
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/arm64.cmake"
cmake --build "$folder"
ctest --test-dir "$folder" --output-on-failure -E "$not_emulated" "$@"

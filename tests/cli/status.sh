#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tfos status where no cluster runs: in a network of its own, in which no driver's socket is to be seen. What it
# shows of a cluster is tested with a cluster (tests/c/node_command.c).
set -eu
. "$(dirname "$0")/check.inc"

if ! unshare -rn true 2>/dev/null; then
    echo "cannot make a network namespace here"
    exit 77
fi
check 1 'no cluster runs on this machine' unshare -rn "$tfos" status
check 1 '^\[\]$' unshare -rn "$tfos" status --json
check 1 'no cluster runs on this machine' unshare -rn "$tfos" status --watch

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line itself: versions, help, and what is used wrongly.
set -eu
. "$(dirname "$0")/check.inc"

check 0 '^tfos [0-9]+\.[0-9]+\.[0-9]+$' "$tfos" version
check 0 '^tfos [0-9]+\.[0-9]+\.[0-9]+$' "$tfos" --version
check 0 '^usage: tfos COMMAND' "$tfos" help
check 0 '^  doctor ' "$tfos" --help
check 0 '^  doctor ' "$tfos" status --help
check 0 '^usage: tfos record COMMAND' "$tfos" record --help
check 0 '^usage: tfos record COMMAND' "$tfos" record shuffle --help
check 2 'a command is missing' "$tfos"
check 2 'there is no command "frobnicate"' "$tfos" frobnicate
check 2 'status does not know "--yaml"' "$tfos" status --yaml
check 2 'doctor does not know "now"' "$tfos" doctor --json now
check 2 '^tfos record: does not know --output;' "$tfos" record shuffle --output x
check 2 '^tfos record: -n takes a value;' "$tfos" record head -n
check 2 'stop needs a cluster' "$tfos" stop
check 2 'stop does not know "b"' "$tfos" stop a b
check 1 'there is no cluster "nothing" here' "$tfos" stop nothing
check 2 'channels needs the pid of a node$' "$tfos" channels
check 2 'channels needs the pid of a node, not "x1"' "$tfos" channels x1
check 1 'there is no process 999999999' "$tfos" channels 999999999
check 2 'version takes no argument' "$tfos" version 2
check 2 '^usage: tfos COMMAND' "$tfos" node 7
check 2 "ps takes TensorFlow's library, and is started by a node" "$tfos" ps

# Usage goes to stderr when it is a complaint, to stdout when it was asked for; the node's own command is not for people.
[ -z "$("$tfos" frobnicate 2>/dev/null)" ]
[ -z "$("$tfos" help 2>&1 >/dev/null)" ]
if "$tfos" help | grep -qE '^  (node|ps)'; then
    echo 'tfos help shows what is not for people'
    exit 1
fi

# Started by hand it has no launcher to talk to.
check 1 'tfos: .*descriptor|tfos: .*(launcher|socket)' "$tfos" node 3<&-
check 1 'tfos: .*launcher' "$tfos" node 3</dev/null
check 1 'tfos: trainer: descriptor 3 is not open; only a node can start a trainer' "$tfos" ps libtensorflow_cc.so.2 3<&-

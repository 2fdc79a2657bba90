#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tfos gpu on machines whose driver is tests/gpu/fake_nvml.c.
set -eu
. "$(dirname "$0")/check.inc"

"${CC:-cc}" -shared -fPIC -o "$folder/libnvidia-ml.so.1" "$(dirname "$0")/../gpu/fake_nvml.c"
cat >"$folder/gpus" <<'END'
gpu busy memory=40000 used=12000 load=63 pid=77 nvlink=1
gpu free nvlink=0
gpu lost
gpu free
mig free memory=5000
END
run() {
    env LD_LIBRARY_PATH="$folder" TFOS_RUNTIME_DIR="$folder/locks" FAKE_GPUS="$folder/gpus" "$@"
}

check 0 '^ *0 Fake A100 +used +12000 +40000 +63%' run "$tfos" gpu
check 0 'computes: process 77 with 6000 MiB' run "$tfos" gpu
check 0 'GPU is lost \(NVML 15\)' run "$tfos" gpu
check 0 '^ *3 Fake A100 +divided' run "$tfos" gpu
check 0 '^ +Fake A100 MIG 1g.5gb +free' run "$tfos" gpu
check 0 'MIG-fa4e0000' run "$tfos" gpu
check 0 '"1": "NVLink"' run "$tfos" gpu --json
check 1 'the driver lists no GPU' run FAKE_GPUS= "$tfos" gpu
check 1 'the driver does not answer' run env -u FAKE_GPUS "$tfos" gpu
check 2 'gpu does not know "--all"' run "$tfos" gpu --all

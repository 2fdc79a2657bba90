# bench: env=c
# SPDX-License-Identifier: Apache-2.0
"""The ring in C (ring.c): batches of 1 MB between two processes against one process's memcpy."""

import os
import subprocess
import sys

if __name__ == "__main__":
    sys.exit(subprocess.call([os.path.join(os.environ["TFOS_BENCH_BUILD"], "bench", "bench_ring")]))

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what the demonstration needs, then runs it. Arguments go to examples/mnist/demo.py.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/system.sh build java
scripts/environment.sh new
exec .venv/bin/python examples/mnist/demo.py "$@"

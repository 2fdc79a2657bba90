#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# HTML from docs/, the public headers and the Python package's docstrings.
set -euo pipefail
cd "$(dirname "$0")/.."
for header in include/tfos/*.h; do
    grep -q "literalinclude} ../$header\$" docs/headers.md || {
        echo "docs/headers.md does not show $header" >&2
        exit 1
    }
done
scripts/environment.sh docs
.venv-docs/bin/sphinx-build -q -W --keep-going -b html docs build/docs
echo "build/docs/index.html"

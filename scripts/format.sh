#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats in place what `make lint` would complain about.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/environment.sh lint
find include src cli tensorflow java python/src tests bench examples -name '*.[ch]' -print0 | xargs -0 .venv-lint/bin/clang-format -i
.venv-lint/bin/ruff check --quiet --fix .

# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that run others' test suites. Takes --old from the arguments, sets `environment` and `venv`, and
# ends with the usage line of the script where no argument is left.
environment=new venv=.venv
if [ "${1:-}" = --old ]; then
    environment=old venv=.venv-old
    shift
fi
if [ $# -eq 0 ]; then
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
fi

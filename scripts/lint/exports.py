# SPDX-License-Identifier: Apache-2.0
"""What a shared library exports: only symbols that match the pattern, and at least one."""

import argparse
import re
import subprocess
import sys

from tree import report


def exported(library):
    """The names that ``library`` defines for others."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout
    return [line.split()[-1].split("@")[0] for line in listing.splitlines()]


def check(library, pattern):
    names = exported(library)
    if not any(re.fullmatch(pattern, name) for name in names):
        yield f"{library}: exports nothing that matches {pattern}"
    for name in names:
        if not re.fullmatch(pattern, name):
            yield f"{library}: exports {name}, which does not match {pattern}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("pattern")
    arguments = parser.parse_args()
    return report(check(arguments.library, arguments.pattern))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The files of a source tree, and the rules that each must keep: a licence line, a size, a name of its own."""

import argparse
import os
import re
import sys
from pathlib import Path

MAX_LINES = 600
SOURCES = {".c", ".h", ".py", ".sh", ".java"}
SKIPPED = re.compile(r"^(\.(?!ci$).*|build|dist|__pycache__|.*\.egg-info)$")
SPDX = re.compile(r"^(//|#) SPDX-License-Identifier: Apache-2\.0$")
DRAWERS = re.compile(r"(^|_)(utils?|common|misc|helpers?)(_|$)")
# Names that a tool or an interface asks for.
REPEATED = {"DefaultSource.java", "__init__.py", "__main__.py", "conftest.py", "util.py"}
ALLOWED_DRAWERS = {"python/tensorflowonspark/util.py", "python/hops/util.py"}


def sources(root, suffixes=frozenset(SOURCES)):
    """Yields the paths, relative to ``root`` and sorted, of the source files below it."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not SKIPPED.match(name))
        for name in sorted(files):
            if Path(name).suffix in suffixes:
                yield (Path(folder) / name).relative_to(root)


def check_file(root, path):
    """Yields what is wrong with one file."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if not lines:
        return
    if not any(SPDX.match(line) for line in lines[:3]):
        yield f"{path}:1: no line 'SPDX-License-Identifier: Apache-2.0' among the first three"
    if len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines, {MAX_LINES} at most: it is two files"
    if DRAWERS.search(path.stem) and str(path) not in ALLOWED_DRAWERS:
        yield f"{path}: the name says nothing about what is inside; name it as a noun"


def check(root):
    """Yields what is wrong with the tree."""
    seen = {}
    for path in sources(root):
        yield from check_file(root, path)
        # A public header, and the interface of a module, src/<module>/<module>.h, are named after the module.
        if path.name in REPEATED or path.parts[0] == "include" or path.parts[-2:] == (path.stem, f"{path.stem}.h"):
            continue
        if path.name in seen:
            yield f"{path}: {seen[path.name]} has the same name"
        seen.setdefault(path.name, path)
    if not seen:
        yield f"{root}: no source files found"


def root_argument(description):
    """The root of the tree, from the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root", nargs="?", default=".", type=Path)
    return parser.parse_args().root


def report(problems):
    """Prints the problems, a line each; returns the exit status."""
    status = 0
    for problem in problems:
        print(problem)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(report(check(root_argument(__doc__))))

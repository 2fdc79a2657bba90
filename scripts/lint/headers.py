# SPDX-License-Identifier: Apache-2.0
"""Every public header compiles alone, as strict C11 and without our build's definitions, and declares only functions
that a program outside src calls: the bindings, the command, a bench or an example."""

import os
import re
import subprocess
import sys

from tree import report, root_argument, sources

CALLERS = {"bench", "cli", "examples", "java", "python", "tensorflow"}
FUNCTION = re.compile(r"TFOS_API\b[^;]*?\b(tfos_\w+)\s*\(")
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror", "-fsyntax-only", "-x", "c", "-"]


def uncalled(root, headers):
    """Yields the public functions that nobody outside src calls."""
    called = set()
    for path in sources(root, {".c", ".h"}):
        if path.parts[0] in CALLERS:
            called.update(re.findall(r"\btfos_\w+", (root / path).read_text(encoding="utf-8")))
    for header in headers:
        for name in FUNCTION.findall((root / "include" / header).read_text(encoding="utf-8")):
            if name not in called:
                yield f"include/{header}: {name}() has no caller outside src: it belongs into an internal header"


def check(root):
    headers = list(sources(root / "include", {".h"})) if (root / "include").is_dir() else []
    if not headers:
        yield f"{root}/include: no headers found"
    for header in headers:
        command = [os.environ.get("CC", "gcc"), "-I", "include", *FLAGS]
        # A translation unit may not be empty, and a header of macros is.
        program = f"#include <{header}>\nint main(void)\n{{\n    return 0;\n}}\n"
        result = subprocess.run(command, cwd=root, input=program, capture_output=True, text=True)
        if result.returncode:
            yield f"include/{header}: does not compile alone:\n{result.stderr.rstrip()}"
    yield from uncalled(root, headers)


if __name__ == "__main__":
    sys.exit(report(check(root_argument(__doc__))))

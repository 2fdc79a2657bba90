# SPDX-License-Identifier: Apache-2.0
"""Every public header compiles alone, as strict C11 and without our build's definitions."""

import os
import subprocess
import sys

from tree import report, root_argument, sources

FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror", "-fsyntax-only", "-x", "c", "-"]


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


if __name__ == "__main__":
    sys.exit(report(check(root_argument(__doc__))))

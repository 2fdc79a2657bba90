# SPDX-License-Identifier: Apache-2.0
"""Calls that our C does not make: unsafe ones anywhere, and in the library the bare heap, printing and exiting.

And of what C writes in two ways, the one that it does not use: sizeof without parentheses, pointers compared with NULL for being null.
"""

import re
import sys

from tree import report, root_argument, sources

UNSAFE = {
    "strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "atoi", "atol", "atoll", "atof",
    "rand", "srand", "system", "popen", "tmpnam", "mktemp", "alloca",
}  # fmt: skip
HEAP = {"malloc", "calloc", "realloc", "free", "strdup", "strndup", "asprintf", "vasprintf", "getline"}
OUTPUT = {"printf", "vprintf", "puts", "putchar", "perror", "exit", "abort", "quick_exit"}
CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
STREAM = re.compile(r"(?<![\w.>])(?:v?fprintf|dprintf)\s*\(\s*(stdout|stderr|1|2)\b|(?<!\w)fputs\s*\(.*\b(?:stdout|stderr)\b")
SPELLINGS = {
    re.compile(r"\bsizeof\s+[\w*&]"): "sizeof without parentheses: write sizeof(x)",
    re.compile(r"== NULL\b"): "a pointer compared with NULL: write !pointer",
}
# Comments and literals, in the order in which a compiler would see them begin.
TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def blank(text):
    """The code without comments and literals; line numbers stay."""
    return TEXT.sub(lambda match: "\n" * match.group().count("\n") or '""', text)


def banned_in(path):
    """{name: reason} for a file."""
    names = dict.fromkeys(UNSAFE, "unsafe")
    if path.parts[0] == "cli":
        return names
    names.update(dict.fromkeys(OUTPUT, "the library never prints and never exits"))
    if path.parts[:2] != ("src", "base") and path.parts[0] not in ("java", "tensorflow"):  # base is not reached from there
        names.update(dict.fromkeys(HEAP, "memory comes from base/memory.h"))
    return names


def check_text(path, text):
    """Yields the banned calls of one file."""
    names = banned_in(path)
    for number, line in enumerate(blank(text).splitlines(), 1):
        for match in CALL.finditer(line):
            if match.group(1) in names:
                yield f"{path}:{number}: {match.group(1)}(): {names[match.group(1)]}"
        if path.parts[0] != "cli" and STREAM.search(line):
            yield f"{path}:{number}: writes to a standard stream: the library never prints"
        for spelling, reason in SPELLINGS.items():
            if spelling.search(line):
                yield f"{path}:{number}: {reason}"


def check(root):
    count = 0
    for path in sources(root, {".c", ".h"}):
        if path.parts[0] in ("src", "cli", "include", "java", "tensorflow") or path.parts[:2] == ("python", "src"):
            count += 1
            yield from check_text(path, (root / path).read_text(encoding="utf-8"))
    if not count:
        yield f"{root}: no C files found"


if __name__ == "__main__":
    sys.exit(report(check(root_argument(__doc__))))

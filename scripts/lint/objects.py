# SPDX-License-Identifier: Apache-2.0
"""The objects of the C tree: an object is a source file with its header.

No object includes another that includes it, by whatever way round; a struct tag and a function of the library are defined once; an internal function
bears the name of its module; and only src/arrow looks at an Arrow format string.
"""

import re
import sys
from collections import defaultdict

from banned import blank
from layers import includes, resolve
from tree import report, root_argument, sources

FOLDERS = {"include", "src", "cli", "tensorflow", "java", "python"}
TAG = re.compile(r"^(?:struct|enum|union) (tfos_\w+)\s*\{", re.MULTILINE)
DEFINITION = re.compile(r"^(?!static\b|typedef\b)\w[\w \t*]*?\b(tfos_\w+)\([^;{]*\)\s*\{", re.MULTILINE)
FORMAT = re.compile(r"(?:->|\.)format\b(?!\s*\()")
# The words of base are those of the whole tree.
UNNAMED_MODULES = {"base"}


def object_of(path):
    return str(path.with_suffix(""))


def circles(graph):
    """Yields the groups of objects that include each other (Tarjan's strongly connected components), each sorted."""
    index, low, stack, on_stack = {}, {}, [], set()
    found = []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
                on_stack.discard(group[-1])
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def module_of(path):
    return path.parts[1] if path.parts[0] == "src" else None


def check_names(path, code):
    """Yields the internal functions that do not bear their module's name."""
    module = module_of(path)
    if module is None or module in UNNAMED_MODULES:
        return
    for match in DEFINITION.finditer(code):
        name = match.group(1)
        if name.startswith("tfos__") and not name.startswith(f"tfos__{module}_"):
            yield f"{path}: {name}() is internal to src/{module}: name it tfos__{module}_..."


def check(root):
    """Yields what breaks the rules."""
    graph, defined = defaultdict(set), defaultdict(list)
    count = 0
    for path in sources(root, {".c", ".h"}):
        if path.parts[0] not in FOLDERS or path.parts[:2] == ("python", "tests"):
            continue
        count += 1
        text = (root / path).read_text(encoding="utf-8")
        code = blank(text)
        for _, is_quoted, name in includes(text):
            target = resolve(root, path, name, is_quoted)
            if target is not None and object_of(target) != object_of(path):
                graph[object_of(path)].add(object_of(target))
        for kind, pattern in (("tag", TAG), ("function", DEFINITION)):
            for name in {match.group(1) for match in pattern.finditer(code)}:
                defined[kind, name].append(path)
        yield from check_names(path, code)
        if path.parts[:2] != ("src", "arrow"):
            for number, line in enumerate(code.splitlines(), 1):
                if FORMAT.search(line):
                    yield f"{path}:{number}: looks at an Arrow format string, which is src/arrow's business"
    for group in circles(graph):
        yield f"{group[0]}: includes itself by way of {', '.join(group[1:])}"
    for (kind, name), paths in sorted(defined.items()):
        if len(paths) > 1:
            yield f"{paths[1]}: the {kind} {name} is defined in {paths[0]} too"
    if not count:
        yield f"{root}: no C files found"


if __name__ == "__main__":
    sys.exit(report(check(root_argument(__doc__))))

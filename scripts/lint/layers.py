# SPDX-License-Identifier: Apache-2.0
"""The layers, read from the #include lines: what may include what says the table in CONTRIBUTING.md, which must name each folder."""

import re
import sys

from tree import report, root_argument, sources

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[>"]')
OUTSIDE = {"cli", "examples", "java", "python", "tensorflow"}
SHARED = {"cli", "java", "python"}  # use the interface of arrow, of which each brings a copy
BASE_HEADERS = {"export", "fork", "status", "stream", "version", "memory", "wait", "arrow"}
OWN_HEADERS = {
    "io": {"stream", "file_list", "file_system"},
    "gpu": {"gpu"},
    "cluster": {"rendezvous"},
    "collective": {"collective", "collective_gpu", "dtype"},
    "feed": {"feed", "feeder"},
    "model": {"model"},
    "record": {"record", "record_index", "example", "example_file"},
    "unsafe_row": {"result_rows", "spark_schema", "unsafe_row"},
    "dataset": {"dataset", "record_dataset", "feed", "record", "example", "example_file"},
}
# The modules that put others together: whose interfaces, src/<module>/<module>.h, they may include. None: everybody's.
COMPOSERS = {"node": None, "trainer": None, "dataset": {"feed", "record"}}
TABLE = re.compile(r"^## Layers\n+```\n(.*?)^```", re.DOTALL | re.MULTILINE)
LIBRARIES = re.compile(r"^(jansson|openssl/|zlib|zstd|cmocka|jni|Python|tensorflow/|linux/)")


def includes(text):
    """Yields (line number, is quoted, name) of each include."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def resolve(root, path, name, is_quoted):
    """The included file relative to ``root``, or None for one of the system."""
    places = [root / "src", root / "include"]
    if is_quoted:
        places.insert(0, root / path.parent)
    for place in places:
        if (place / name).is_file():
            return (place / name).resolve().relative_to(root.resolve())
    return None


def complaint(path, target, name, is_quoted):
    """Why ``path`` may not include ``target`` (None: the system's ``name``), or None if it may."""
    top = path.parts[0]
    if target is None:
        if is_quoted:
            return "no such file in its folder, src or include"
        if top == "include" and LIBRARIES.match(name):
            return "a public header includes only libc and <tfos/*.h>"
        return None
    if target.parts[0] == "include":
        return public_complaint(path, target, is_quoted)
    if top == "include":
        return "a public header includes only libc and <tfos/*.h>"
    if top in OUTSIDE:
        if target.parts[0] == top or (top in SHARED and target.as_posix() == "src/arrow/arrow.h"):
            return None
        return f"{top} uses public headers, <tfos/*.h>, only"
    if target.parts[0] != "src":
        return "src includes nothing outside src and include"
    layer, other = path.parts[1], target.parts[1]
    if other in (layer, "base") or (other == "arrow" and layer != "base"):
        return None
    allowed = COMPOSERS.get(layer, set())
    if allowed is not None and other not in allowed:
        return f"{layer} may include base, arrow and its own files, not {other}"
    if target.stem != other:
        return f"{layer} may include the interface of {other}, {other}/{other}.h, only"
    return None


def public_complaint(path, target, is_quoted):
    if is_quoted:
        return "public headers are included as <tfos/...>"
    if path.parts[0] != "src" or path.parts[1] in ("node", "trainer"):
        return None
    layer = path.parts[1]
    allowed = BASE_HEADERS | (set() if layer == "base" else OWN_HEADERS.get(layer, {layer}))
    if target.stem in allowed:
        return None
    return f"{layer} may include, of the public headers, {', '.join(sorted(allowed))}"


def unnamed_folders(root):
    """Yields the folders that the table of layers lacks."""
    file = root / "CONTRIBUTING.md"
    table = TABLE.search(file.read_text(encoding="utf-8") if file.is_file() else "")
    names = set(table.group(1).split()) if table else set()
    folders = [root / name for name in sorted(OUTSIDE)] + sorted((root / "src").glob("*/"))
    for folder in folders:
        if folder.is_dir() and folder.name not in names:
            yield f"CONTRIBUTING.md: the table of layers does not name {folder.relative_to(root)}"


def check(root):
    """Yields what breaks the layers."""
    yield from unnamed_folders(root)
    count = 0
    for path in sources(root, {".c", ".h"}):
        if path.parts[0] not in OUTSIDE | {"src", "include"}:
            continue
        for number, is_quoted, name in includes((root / path).read_text(encoding="utf-8")):
            count += 1
            reason = complaint(path, resolve(root, path, name, is_quoted), name, is_quoted)
            if reason:
                yield f"{path}:{number}: includes {name}: {reason}"
    if not count:
        yield f"{root}: no #include lines found"


if __name__ == "__main__":
    sys.exit(report(check(root_argument(__doc__))))

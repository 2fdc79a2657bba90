# SPDX-License-Identifier: Apache-2.0
"""Each check of scripts/lint finds what it is for, and is content with a tree that keeps the rules."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = SPDX + "#ifndef X\n#define X\n#include <tfos/export.h>\nTFOS_API int tfos_x(void);\n#endif\n"
TABLE = "# Rules\n\n## Layers\n\n```\ncli  python  tensorflow   <tfos/*.h> and arrow\nnode dataset       base\nfeed  cluster base arrow  libc\n```\n"


@pytest.fixture
def tree(tmp_path):
    """A small tree that keeps all rules; called with {path: text} it adds files and returns the root."""

    def add(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    add({
        "include/tfos/export.h": SPDX + '#define TFOS_API __attribute__((visibility("default")))\n',
        "include/tfos/feed.h": HEADER,
        "include/tfos/rendezvous.h": SPDX,
        "src/base/clock.h": SPDX + "#include <stdint.h>\n",
        "src/arrow/type.h": SPDX,
        "src/arrow/arrow.h": SPDX + '#include "arrow/type.h"\n',
        "src/feed/feed.h": SPDX,
        "src/feed/ring.h": SPDX,
        "src/feed/ring.c": SPDX + '#include "feed/ring.h"\n#include "base/clock.h"\n#include "arrow/type.h"\n#include <tfos/feed.h>\n',
        "src/cluster/server.h": SPDX,
        "src/node/life.c": SPDX + '#include "feed/feed.h"\n#include <tfos/feed.h>\n#include <tfos/rendezvous.h>\n',
        "cli/main.c": SPDX + '#include "arrow/arrow.h"\n#include <tfos/feed.h>\n#include <stdio.h>\n\n'
        'int main(void)\n{\n    puts("free(x)");\n    return tfos_x();\n}\n',
        "CONTRIBUTING.md": TABLE,
        "scripts/run.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n",
    })
    return add


def run(check, *arguments):
    """(exit status, output) of a check."""
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "lint" / f"{check}.py"), *map(str, arguments)],
        capture_output=True, text=True, timeout=60,
    )
    assert not result.stderr, result.stderr
    return result.returncode, result.stdout


@pytest.mark.parametrize("check", ["layers", "banned", "tree", "objects", "headers"])
def test_a_tree_that_keeps_the_rules_passes(check, tree):
    assert run(check, tree({})) == (0, "")


@pytest.mark.parametrize("check", ["layers", "banned", "tree", "objects", "headers"])
def test_an_empty_tree_is_no_success(check, tmp_path):
    status, output = run(check, tmp_path)
    assert status == 1
    assert "found" in output


@pytest.mark.parametrize(
    "path, line, reason",
    [
        ("src/feed/feed_channel.c", '#include "cluster/server.h"', "not cluster"),
        ("src/feed/feed_channel.c", '#include "../cluster/server.h"', "not cluster"),
        ("src/feed/feed_channel.c", "#include <tfos/rendezvous.h>", "of the public headers"),
        ("src/feed/feed_channel.c", '#include "record/record.h"', "no such file"),
        ("src/cluster/server.c", '#include "feed/feed.h"', "not feed"),
        ("src/dataset/plan.c", '#include "feed/ring.h"', "feed/feed.h, only"),
        ("src/dataset/plan.c", '#include "cluster/server.h"', "not cluster"),
        ("src/dataset/plan.c", "#include <tfos/rendezvous.h>", "of the public headers"),
        ("src/feed/feed_channel.c", '#include "tfos/feed.h"', "included as <tfos/...>"),
        ("src/feed/feed_channel.c", '#  include "gone.h"', "no such file"),
        ("src/base/json.c", '#include "feed/ring.h"', "not feed"),
        ("src/base/json.c", "#include <tfos/feed.h>", "of the public headers"),
        ("src/node/more.c", '#include "feed/ring.h"', "feed/feed.h, only"),
        ("src/node/more.c", '#include "cluster/server.h"', "cluster/cluster.h, only"),
        ("src/base/json.c", '#include "arrow/arrow.h"', "not arrow"),
        ("src/arrow/type.c", '#include "feed/ring.h"', "not feed"),
        ("cli/status.c", '#include "arrow/type.h"', "public headers"),
        ("tensorflow/op.c", '#include "arrow/arrow.h"', "public headers"),
        ("cli/status.c", '#include "base/clock.h"', "public headers"),
        ("cli/status.c", '#include "../src/base/clock.h"', "public headers"),
        ("python/src/object.c", "#include <base/clock.h>", "public headers"),
        ("include/tfos/node.h", "#include <jansson.h>", "only libc"),
        ("include/tfos/node.h", '#include "base/clock.h"', "only libc"),
    ],
)
def test_layers_finds_an_include_across_layers(path, line, reason, tree):
    status, output = run("layers", tree({path: SPDX + line + "\n"}))
    assert status == 1
    assert output.startswith(f"{path}:2: includes ")
    assert reason in output


@pytest.mark.parametrize(
    "files, lacking",
    [
        ({"src/unsafe_row/rows.c": SPDX}, ["src/unsafe_row"]),
        ({"java/jni.c": SPDX, "src/io/file.c": SPDX}, ["java", "src/io"]),
        ({"CONTRIBUTING.md": TABLE.replace("node ", "")}, ["src/node"]),
        ({"CONTRIBUTING.md": "node cli feed cluster base\n"}, ["cli", "src/arrow", "src/base", "src/cluster", "src/feed", "src/node"]),
    ],
)
def test_layers_finds_a_folder_that_the_table_lacks(files, lacking, tree):
    status, output = run("layers", tree(files))
    assert status == 1
    assert output.splitlines() == [f"CONTRIBUTING.md: the table of layers does not name {folder}" for folder in lacking]


@pytest.mark.parametrize(
    "path, code, word",
    [
        ("src/feed/feed_channel.c", "strcpy(a, b);", "strcpy"),
        ("src/feed/feed_channel.c", "x = malloc (3);", "malloc"),
        ("src/feed/feed_channel.c", "/* why */ free(x); // free", "free"),
        ("src/feed/feed_channel.c", 'printf("x");', "printf"),
        ("src/feed/feed_channel.c", 'fprintf(stderr, "x");', "standard stream"),
        ("src/feed/feed_channel.c", "exit(1);", "exit"),
        ("src/base/json.c", "system(command);", "system"),
        ("python/src/object.c", "int n = atoi(text);", "atoi"),
        ("cli/status.c", "sprintf(a, b);", "sprintf"),
        ("cli/status.c", "size_t size = sizeof buffer;", "sizeof"),
        ("cli/status.c", "size_t size = sizeof *buffer;", "sizeof"),
        ("src/feed/lane.c", "if (lane == NULL)", "NULL"),
    ],
)
def test_banned_finds_a_call(path, code, word, tree):
    status, output = run("banned", tree({path: SPDX + "\n" + code + "\n"}))
    assert status == 1
    assert output.startswith(f"{path}:3: ")
    assert word in output


@pytest.mark.parametrize(
    "path, code",
    [
        ("src/base/memory.c", "return malloc(size);"),
        ("src/feed/feed_channel.c", "// malloc(1)\n/* system(\n   free(x) */"),
        ("src/feed/feed_channel.c", 'fail(err, "printf(x) \\" system(");'),
        ("src/feed/feed_channel.c", "array->release(array); lane.free(lane); tfos_free(x);"),
        ("src/feed/feed_channel.c", "size = sizeof(struct lane); is_open = lane != NULL; // sizeof lane == NULL"),
        ("cli/status.c", 'printf("%d", x);'),
    ],
)
def test_banned_leaves_other_code_alone(path, code, tree):
    assert run("banned", tree({path: SPDX + code + "\n"})) == (0, "")


@pytest.mark.parametrize(
    "path, text, reason",
    [
        ("src/feed/feed_channel.c", "int x;\n", "no line 'SPDX"),
        ("python/pkg/thing.py", '"""Docs."""\n', "no line 'SPDX"),
        ("src/feed/feed_channel.c", SPDX + "\n" * 600, "601 lines"),
        ("src/cluster/ring.c", SPDX, "same name"),
        ("src/feed/feed_util.c", SPDX, "says nothing"),
        ("src/feed/helpers.h", SPDX, "says nothing"),
    ],
)
def test_tree_finds_a_bad_file(path, text, reason, tree):
    status, output = run("tree", tree({path: text}))
    assert status == 1
    assert reason in output


LANE = SPDX + "struct tfos__feed_lane {\n    int x;\n};\n"


@pytest.mark.parametrize(
    "files, complaint",
    [
        ({"src/feed/lane.h": LANE, "src/node/lane.h": LANE}, "src/node/lane.h: the tag tfos__feed_lane is defined in src/feed/lane.h too"),
        (
            {f"src/base/{name}.c": SPDX + "int tfos__first(\n    int x)\n{\n    return x;\n}\n" for name in "ab"},
            "src/base/b.c: the function tfos__first is defined in src/base/a.c too",
        ),
        (
            {"src/feed/lane.c": SPDX + "bool tfos__lane_open(void)\n{\n}\n"},
            "src/feed/lane.c: tfos__lane_open() is internal to src/feed: name it tfos__feed_...",
        ),
        (
            {"src/base/a.c": SPDX + '#include "base/b.h"\n', "src/base/b.h": SPDX + '#include "base/c.h"\n', "src/base/c.h": SPDX + '#include "base/a.h"\n'}
            | {"src/base/a.h": SPDX},
            "src/base/a: includes itself by way of src/base/b, src/base/c",
        ),
        (
            {"src/feed/lane.c": SPDX + "bool is_text = schema->format[0] == 'u';\n"},
            "src/feed/lane.c:2: looks at an Arrow format string, which is src/arrow's business",
        ),
    ],
)
def test_objects_finds(files, complaint, tree):
    assert run("objects", tree(files)) == (1, complaint + "\n")


@pytest.mark.parametrize(
    "code",
    [
        "static int lane_open(void)\n{\n}\n",
        "int tfos__node_open(void);\nint tfos_feed_open(void)\n{\n}\n",
        "struct tfos__node_lane *tfos__feed_lane(void)\n{\n    schema->format(1); // ->format\n}\n",
    ],
)
def test_objects_leaves_other_code_alone(code, tree):
    assert run("objects", tree({"src/feed/lane.c": SPDX + code})) == (0, "")


def test_headers_finds_one_that_needs_another(tree):
    status, output = run("headers", tree({"include/tfos/node.h": SPDX + "uint32_t tfos_count(void);\n"}))
    assert status == 1
    assert "include/tfos/node.h: does not compile alone" in output


def test_headers_finds_a_function_that_nobody_calls(tree):
    header = HEADER.replace("tfos_x", "tfos_y").replace("X", "Y")
    root = tree({"include/tfos/y.h": header, "src/node/y.c": SPDX + "int y(void)\n{\n    return tfos_y();\n}\n"})
    status, output = run("headers", root)
    assert status == 1
    assert output.splitlines() == [
        "include/tfos/y.h: tfos_y() has no caller outside src: it belongs into an internal header"
    ]
    tree({"bench/y.c": SPDX + "int main(void)\n{\n    return tfos_y();\n}\n"})
    assert run("headers", root) == (0, "")


@pytest.fixture
def library(tmp_path):
    """Compiles code to a shared library and returns its path."""

    def build(code):
        (tmp_path / "code.c").write_text(code)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "code.so", "code.c"], cwd=tmp_path, check=True, timeout=60)
        return tmp_path / "code.so"

    return build


PATTERN = "tfos_[a-z][a-z0-9_]*"


def test_exports_passes_a_library_with_our_names_only(library):
    code = "int tfos_x(void) { return 1; }\nstatic int hidden(void) { return 2; }\nint (*tfos_y)(void) = hidden;\n"
    assert run("exports", library(code), PATTERN) == (0, "")


@pytest.mark.parametrize("name", ["tfos__internal", "helper", "tfos_"])
def test_exports_finds_a_symbol(name, library):
    status, output = run("exports", library(f"int tfos_x;\nint {name}(void) {{ return 1; }}\n"), PATTERN)
    assert status == 1
    assert f"exports {name}," in output


def test_exports_of_nothing_are_no_success(library):
    status, output = run("exports", library("static int x;\nint *const *y(void);\n"), PATTERN)
    assert status == 1
    assert "exports nothing" in output


@pytest.mark.parametrize("lines, status", [(80, 0), (81, 1)])
def test_tidy_finds_a_long_function(lines, status, tmp_path):
    path = tmp_path / "long.c"
    path.write_text("int f(int x);\nint f(int x)\n{\n" + "    // why\n" * (lines - 2) + "    return x;\n}\n")
    result = subprocess.run(
        ["clang-tidy", f"--config-file={ROOT / '.clang-tidy'}", "--quiet", str(path), "--"],
        capture_output=True, text=True, timeout=60,
    )
    assert result.returncode == status
    assert ("readability-function-size" in result.stdout) == bool(status)

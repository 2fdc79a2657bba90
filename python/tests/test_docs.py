# SPDX-License-Identifier: Apache-2.0
"""The documentation: its examples run, every public call has one, its code is Python, and the messages that it explains are there."""

import ast
import doctest
import importlib
import inspect
import io
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
REFERENCE = [path for path in PAGES if path.parent.name == "reference" and path.stem != "index"]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# What is kept for programs that call it, and does nothing but tell them what to call.
REPLACED = {"batch_results", "next_batch", "terminate"}


def blocks(path, language="python"):
    """The code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)


def examples_of(path):
    return "\n".join(block for block in blocks(path) if ">>>" in block)


def is_cheap(path):
    """Whether the examples of a page run without Spark and TensorFlow."""
    return re.search(r"\b(sc|spark|MirroredStrategyRunner|tensorflow|fs|gpus)\b", examples_of(path)) is None


def run_examples(path, **names):
    test = doctest.DocTestParser().get_doctest(examples_of(path), {"__name__": "__main__", **names}, path.stem, str(path), 0)
    output = io.StringIO()
    results = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=output.write)
    assert results.attempted and not results.failed, output.getvalue()


def test_examples(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for path in filter(is_cheap, REFERENCE):
        run_examples(path)


@pytest.mark.long
@pytest.mark.parametrize("path", list(itertools.filterfalse(is_cheap, REFERENCE)), ids=lambda path: path.stem)
def test_examples_on_spark(path, sc, monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run_examples(path, sc=sc, spark=SparkSession(sc))


@pytest.mark.long
def test_ten_minute_start(sc):
    names = {"__name__": "__main__"}
    for block in blocks(DOCS / "start.md"):
        exec(compile(block, "start.md", "exec"), names)
    accuracies = names["cluster"].results()
    assert accuracies[0] == accuracies[1] > 0.8
    assert names["right"] > 0.8


MODULES = {page: f"tensorflowonspark.{page}" for page in (
    "TFCluster", "restarts", "TFSparkNode", "TFNode", "TFParallel", "dataset", "keras", "pipeline", "reservation", "errors", "tfrecord", "dfutil", "compat",
    "fs",
    "gpu_info", "util")}  # fmt: skip


@pytest.mark.parametrize("page, module", [
    *MODULES.items(), ("TFSparkNode", "tensorflowonspark.TFManager"), ("gpu_info", "tensorflowonspark.gpus"),
    ("distributor", "spark_tensorflow_distributor.mirrored_strategy_runner"),
])  # fmt: skip
def test_every_public_call_has_an_example(page, module):
    examples, text = "".join(map(examples_of, REFERENCE)), (DOCS / "reference" / f"{page}.md").read_text()
    for name in importlib.import_module(module).__all__:
        value = getattr(importlib.import_module(module), name)
        if module.endswith(".gpus") and f"{module}.{name}" not in text:
            continue  # for other modules of the package
        assert name in text or f"automodule:: {module}" in text, f"{module}.{name}"
        if inspect.isfunction(value) and name not in REPLACED:
            assert re.search(rf"\b{name}\b", examples), f"{module}.{name}"
        elif inspect.isclass(value):
            methods = [key for key, method in vars(value).items() if inspect.isfunction(method) and not key.startswith("_")]
            assert not [key for key in methods if f".{key}(" not in examples and key not in REPLACED], f"{module}.{name}"


def test_every_page_of_the_reference_is_of_a_module():
    assert {path.stem for path in REFERENCE} == {*MODULES, "distributor"}


def test_code_is_python():
    for path in PAGES:
        for block in blocks(path):
            if ">>>" not in block:
                ast.parse(block)


def test_first_page_has_the_lines_of_the_readme():
    lines = next(block for block in blocks(ROOT / "README.md") if "# 9" in block)
    assert lines in blocks(DOCS / "index.md")


def test_messages_that_are_explained_are_those_of_the_sources():
    sources = [path for folder in ("src", "python/src", "python/tensorflowonspark") for path in (ROOT / folder).rglob("*.[chp]*")]
    text = "\n".join(re.sub(r'"\s*f?"', "", path.read_text()) for path in sources if path.suffix in (".c", ".h", ".py"))
    rows = re.findall(r"^\| (`.*?) \|", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    messages = [message for row in rows for message in re.findall(r"`(.*?)`(?= or |$)", row)]
    assert len(messages) > 25
    assert not [message for message in messages if message.replace('"', '\\"') not in text and message not in text]

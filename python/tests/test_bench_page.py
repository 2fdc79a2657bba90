# SPDX-License-Identifier: Apache-2.0
"""scripts/bench_page.py: from make bench's lines to the page and its plots."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/bench_page.py"
LINE = {"bench": "feed_df", "case": "get_dataset", "unit": "rows/s", "ours": 201300.0,
        "anchor": 1197.0, "anchor_name": "original", "ratio": 168.149, "goal": 100, "met": True}


def make_page(folder, *lines):
    (folder / "images").mkdir(exist_ok=True)
    (folder / "lines.json").write_text("a line of progress\n" + "\n".join(json.dumps(line) for line in lines))
    return subprocess.run([sys.executable, str(SCRIPT), str(folder / "lines.json"), "--docs", str(folder)], capture_output=True, text=True)


def test_a_page_is_made_of_lines(tmp_path):
    slower = {**LINE, "bench": "ring", "case": "<1 MB>", "unit": "MB/s", "ours": 10.5, "anchor": 20.0, "ratio": 0.525, "goal": 0.6, "met": False}
    unknown = {**LINE, "bench": "of_tomorrow", "goal": None, "met": None, "ratio": 1.0}
    result = make_page(tmp_path, {**LINE, "ours": 1.0}, slower, LINE, unknown)
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| `feed_df` | get_dataset | 201,300 rows/s | `original` | 1,197 | 168 | 100 |" in page and page.count("`feed_df`") == 1
    assert "| 0.525 | 0.6, missed |" in page and "| processor | " in page
    plots = re.findall(r"\]\((.*?\.svg)\)", page)
    assert plots == ["images/benchmarks_feeding.svg", "images/benchmarks_others.svg"]
    texts = [text.text for text in xml.parse(tmp_path / plots[0]).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["feed_df: get_dataset / original", "168", "ring: <1 MB> / original", "0.525"]


def test_what_is_no_line_is_said(tmp_path):
    assert "no line of make bench in these files" in make_page(tmp_path).stderr
    assert re.search(r"lines\.json:2: no line of make bench: KeyError\('case'\)", make_page(tmp_path, {"bench": "ring"}).stderr)


def test_the_first_page_has_the_ratios_of_the_page():
    """Against the original, or TensorFlow's own all-reduce."""
    page = (ROOT / "docs/benchmarks.md").read_text()
    rows = re.findall(r"^\| (`\w+`) \| (.+?) \| .+? \| `(?:original|original_df_rdd|tensorflow_ring)` \| .+? \| ([\d.,]+) \|", page, re.MULTILINE)
    ratios = {f"{bench}: {case}": ratio for bench, case, ratio in rows}
    shown = re.findall(r"^\| .+? \| ([\d.,]+) \| (`\w+`: .+?) \|$", (ROOT / "docs/index.md").read_text(), re.MULTILINE)
    assert len(shown) > 5
    assert [f"{row}: {ratio}" for ratio, row in shown] == [f"{row}: {ratios.get(row)}" for _, row in shown]

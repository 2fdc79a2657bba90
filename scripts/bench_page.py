# SPDX-License-Identifier: Apache-2.0
"""Makes docs/benchmarks.md and its plots from the JSON lines that make bench prints, on the machine where they were measured.

    make bench | tee lines.json
    python3 scripts/bench_page.py lines.json

Where several lines are of one case and anchor the last one counts.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
PARTS = {
    "feeding": ("Rows from Spark into trainers", ["feed_rows", "feed_df", "feed_parquet", "feed_arrow", "feed_scale", "ring", "remote_feed",
                                                "dataset_op", "balance"]),
    "inference": ("Inference", ["infer_df", "pipeline_transform"]),
    "files": ("TFRecord files", ["dfutil_records", "spark_read", "spark_write", "record_decode", "record_encode", "frame_checks", "schema", "hdfs_files"]),
    "training": ("Training", ["cluster_cycle", "mnist_epoch", "estimator_fit", "keras_step", "keras_fit", "first_step", "step_agreement"]),
    "collectives": ("Gradients among trainers", ["allreduce", "allreduce_core", "scale"]),
}
# Asked of the Python of the benches.
QUESTION = """import importlib.metadata as metadata, platform
print("Python", platform.python_version())
for name in ("pyspark", "tensorflow", "tensorflow-cpu", "keras", "numpy", "pyarrow"):
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""
BAR, GAP, WIDTH, RIGHT, LETTER = 16, 8, 420, 70, 6.6


def read_lines(paths):
    """The figures, in the order in which their cases first came."""
    figures = {}
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("{"):
                try:
                    figure = json.loads(line)
                    figures[figure["bench"], figure["case"], figure["unit"], figure["anchor_name"]] = figure
                except (ValueError, KeyError) as error:
                    raise SystemExit(f"{path}:{number}: no line of make bench: {error!r}") from error
    return list(figures.values())


def draw(figures):
    """An SVG of a bar for each figure's ratio, on a logarithmic scale on which 1, the anchor itself, is a line."""
    names = [f"{figure['bench']}: {figure['case']} / {figure['anchor_name']}" for figure in figures]
    ratios = [figure["ratio"] for figure in figures]
    low, high = (math.log10(bound) for bound in (min(0.5, *ratios), max(2, *ratios)))
    left = LETTER * max(map(len, names)) + 2 * GAP

    def place(ratio):
        return left + WIDTH * (math.log10(ratio) - low) / (high - low)

    width, height = left + WIDTH + RIGHT, len(figures) * (BAR + GAP) + GAP
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>']
    for i, (name, ratio) in enumerate(zip(names, ratios)):
        top, start, end = GAP + i * (BAR + GAP), min(place(1), place(ratio)), max(place(1), place(ratio))
        color = "#2b6cb0" if ratio >= 1 else "#b7791f"
        parts += [f'<text x="{left - GAP:.0f}" y="{top + 12}" text-anchor="end">{escape(name)}</text>',
                  f'<rect x="{start:.1f}" y="{top}" width="{end - start:.1f}" height="{BAR}" fill="{color}"/>',
                  f'<text x="{end + 6:.1f}" y="{top + 12}">{round_figure(ratio)}</text>']
    parts += [f'<line x1="{place(1):.1f}" y1="0" x2="{place(1):.1f}" y2="{height}" stroke="#1a202c"/>', "</svg>", ""]
    return "\n".join(parts)


def round_figure(value):
    """Three digits, or all of a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def describe_machine(paths):
    """(name, value) pairs: what the figures were measured on."""
    days = sorted({datetime.date.fromtimestamp(path.stat().st_mtime).isoformat() for path in paths})
    measured = " to ".join(days if len(days) == 1 else (days[0], days[-1]))
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()
    python = ROOT / ".venv/bin/python"
    packages = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True).stdout.splitlines() if python.exists() else []
    return [("processor", f"{cpu.group(1) if cpu else platform.machine()}, {len(os.sched_getaffinity(0))} cores"),
            ("memory", f"{int(memory.group(1)) / 2**20:.0f} GiB"), ("kernel", f"{platform.system()} {platform.release()}"),
            ("Java", java[0] if java else "?"), ("packages", ", ".join(packages)), ("measured", measured)]


def rows_of(figures):
    yield "| bench | case | ours | against | theirs | ratio | goal |\n| --- | --- | --- | --- | --- | --- | --- |"
    for figure in figures:
        goal = "" if figure["goal"] is None else f"{round_figure(figure['goal'])}{'' if figure['met'] else ', missed'}"
        ours, anchor, ratio = (round_figure(figure[name]) for name in ("ours", "anchor", "ratio"))
        yield f"| `{figure['bench']}` | {figure['case']} | {ours} {figure['unit']} | `{figure['anchor_name']}` | {anchor} | {ratio} | {goal} |"


def make_page(figures, machine):
    """(the page, {name: SVG})."""
    page, plots = [OPENING, *(f"| {name} | {value} |" for name, value in machine), ""], {}
    known = {bench for _, benches in PARTS.values() for bench in benches}
    others = sorted({figure["bench"] for figure in figures} - known)
    for name, (title, benches) in {**PARTS, "others": ("Others", others)}.items():
        chosen = [figure for figure in figures if figure["bench"] in benches]
        if chosen:
            plots[f"benchmarks_{name}.svg"] = draw(chosen)
            page += [f"## {title}\n", f"![{title}: the ratios](images/benchmarks_{name}.svg)\n", *rows_of(chosen), ""]
    return "\n".join(page), plots


OPENING = """# Benchmarks

`make bench` measures ours and an anchor in the same run, the sides in turn, and takes the medians. An anchor is the original
(TensorFlowOnSpark 2.2.5), what else one would use, or a limit of the machine such as `memcpy`. A ratio over 1 means that ours
is faster. `bench/README.md` says what each case is and what bounds it; `scripts/bench_page.py` makes this page. Figures of
another machine differ; the ratios do less.

| | |
| --- | --- |"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="+", type=Path, help="a file with what make bench printed")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    args = parser.parse_args()
    figures = read_lines(args.lines)
    if not figures:
        raise SystemExit("no line of make bench in these files")
    page, plots = make_page(figures, describe_machine(args.lines))
    for name, svg in plots.items():
        (args.docs / "images" / name).write_text(svg, encoding="utf-8")
    (args.docs / "benchmarks.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""``tfos record convert`` from and to Parquet and Arrow IPC, which the command becomes Python for."""

import contextlib
import datetime
import decimal
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import types

import pytest

from conftest import wait_until

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from tensorflowonspark import columnar_file, tfrecord  # noqa: E402

COMMAND = os.path.join(os.path.dirname(sys.executable), "tfos")
FULL = "No space left on device"
ALL = pa.table({
    "number": pa.array([1, None, -(2**63)]), "ratio": pa.array([0.5, None, float("inf")], pa.float32()),
    "text": ["ä", None, ""], "bytes": pa.array([b"\xff", None, b""], pa.binary()),
    "numbers": pa.array([[1, 2], None, []]), "ratios": pa.array([[0.5, 2], None, []], pa.list_(pa.float32())), "texts": [["ä", ""], None, []],
    "several bytes": pa.array([[b"\xff", b""], None, []], pa.list_(pa.binary())),
})


def run(*words, command=COMMAND, **options):
    return subprocess.run([command, "record", "convert", *map(str, words)], timeout=120,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})


def convert(*words, **options):
    """What it said, and what it wrote to its standard output."""
    done = run(*words, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode(), done.stdout


def refuse(status, pattern, *words, **options):
    done = run(*words, **options)
    said = done.stderr.decode()
    assert done.returncode == status and pattern in said, (done.returncode, said)
    return said


def here(form, target_form, source, target):
    """Converts in this process, without options."""
    asked = {"from": form, "to": target_form, "columns": None, "record_type": "Example", "compression": "none", "on_damage": "error",
             "allow_rounding": False, "exact": True, "max_record_size": 0}
    return columnar_file.main(str(source), str(target), json.dumps(asked))


def write(path, table):
    if str(path).endswith(".parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


def read(path):
    return pq.read_table(path) if str(path).endswith(".parquet") else pa.ipc.open_file(pa.OSFile(str(path))).read_all()


def records(path, **options):
    return [row for batch in tfrecord.read(path, **options) for row in batch.to_pylist()]


@pytest.fixture
def source(tmp_path):
    """A file of 5,000 records."""
    path = tmp_path / "source.tfrecord"
    tfrecord.write(path, pa.table({"x": range(5000), "s": [f"row {i}" for i in range(5000)]}))
    return path


# ---- there and back

@pytest.mark.parametrize("ending, records_ending", [("parquet", "tfrecord"), ("arrow", "tfrecord.gz"), ("ipc", "b"), ("feather", "c")])
def test_all_types_go_there_and_back(tmp_path, ending, records_ending):
    there, between, back = write(tmp_path / f"a.{ending}", ALL), tmp_path / f"b.{records_ending}", tmp_path / f"c.{ending}"
    assert convert(there, between) == ("3 records written; 0 numbers rounded\n", b"")
    assert (between.read_bytes()[:2] == b"\x1f\x8b") == records_ending.endswith(".gz")
    assert convert(between, back) == ("3 records written\n", b"")
    found = read(back)
    assert found.column_names == ALL.column_names
    for field in ALL.schema:
        values = found[field.name].to_pylist()
        assert values == ALL[field.name].to_pylist() and found.schema.field(field.name).type == field.type, field
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in (there, between, back))


def test_sequences_and_bytes(tmp_path):
    table = pa.table({"id": [1, 2], "frames": [[["a", "b"], []], [["c"]]]})
    convert("--type=sequence", write(tmp_path / "a.parquet", table), tmp_path / "b")
    convert("--type=sequence", "--to=parquet", tmp_path / "b", tmp_path / "c")
    assert pq.read_table(tmp_path / "c").equals(table)
    tfrecord.write(tmp_path / "d", [b"one", b"\xff"], record_type="ByteArray")
    convert("--type=bytes", tmp_path / "d", tmp_path / "e.parquet")
    convert("--type=bytes", tmp_path / "e.parquet", tmp_path / "f")
    assert pq.read_table(tmp_path / "e.parquet").to_pydict() == {"byteArray": [b"one", b"\xff"]}
    assert (tmp_path / "d").read_bytes() == (tmp_path / "f").read_bytes()


def test_pipes(source):
    data = source.read_bytes()
    stream = convert("--to=arrow", source, "-")[1]
    assert pa.ipc.open_stream(stream).read_all().num_rows == 5000
    assert convert("--from=arrow", "-", "-", input=stream) == ("5000 records written; 0 numbers rounded\n", data)
    assert convert("--to=ipc", "-", "-", input=data)[1] == stream  # read twice, for its columns
    with open(source, "rb") as file:
        assert convert("--to=ipc", "-", "-", stdin=file)[1] == stream
    file = convert("--to=arrow", source, source.parent / "a.arrow")[1]
    assert file == b""
    with open(source.parent / "a.arrow", "rb") as file:
        assert convert("--from=arrow", "-", "-", stdin=file)[1] == data
    refuse(1, "the standard input: through a pipe comes an Arrow stream", "--from=arrow", "-", "-", input=(source.parent / "a.arrow").read_bytes())
    refuse(2, "Parquet needs a file", "--to=parquet", source, "-")
    refuse(2, "Parquet needs a file", "--from=parquet", "-", source)


def test_files_without_rows_or_columns(tmp_path):
    (tmp_path / "empty").touch()
    assert convert(tmp_path / "empty", tmp_path / "empty.parquet")[0] == "0 records written\n"
    assert convert(write(tmp_path / "none.arrow", ALL.slice(0, 0)), tmp_path / "none")[0] == "0 records written; 0 numbers rounded\n"
    assert convert(tmp_path / "empty.parquet", tmp_path / "none")[0] == "0 records written; 0 numbers rounded\n"
    assert (tmp_path / "none").read_bytes() == b""


def test_row_groups_and_batches(tmp_path, monkeypatch, capfd):
    """Rows keep their order over the limits of what is held at a time."""
    tfrecord.write(tmp_path / "a", pa.table({"x": range(10_000), "s": ["x" * 100] * 10_000}))
    monkeypatch.setattr(columnar_file, "_ROWS", 1000)
    monkeypatch.setattr(columnar_file, "_GROUP_SIZE", 200_000)
    assert here("tfrecord", "parquet", tmp_path / "a", tmp_path / "b") == 0
    parquet = pq.ParquetFile(tmp_path / "b")
    assert 4 <= parquet.num_row_groups <= 6 and parquet.read()["x"].to_pylist() == list(range(10_000))
    assert here("parquet", "tfrecord", tmp_path / "b", tmp_path / "c") == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    assert capfd.readouterr().err == "10000 records written\n10000 records written; 0 numbers rounded\n"

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, ticks = Terminal(), iter(range(1000))
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(columnar_file, "time", types.SimpleNamespace(monotonic=lambda: next(ticks)))
    assert here("tfrecord", "parquet", tmp_path / "a", tmp_path / "b") == 0
    line = f"converted: 1000 records, 0 MiB of {tmp_path / 'a'}"
    assert terminal.getvalue().startswith(f"\r{line}\r") and terminal.getvalue().endswith("\r10000 records written\n")


# ---- types

STAMP = datetime.datetime(2026, 11, 28, 1, 2, 3)
TAKEN = {  # a column of two rows, and what its records have
    "categories": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "lists of categories": (pa.ListArray.from_arrays([0, 1, 3], pa.array(["a", "b", "a"]).dictionary_encode()), [["a"], ["b", "a"]]),
    "nothing": (pa.nulls(2), None),
    "halves": (pa.array([1, None], pa.float32()).cast(pa.float16()), [1.0, None]),
    "fixed bytes": (pa.array([b"\xffa", None], pa.binary(2)), [b"\xffa", None]),
    "large text": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "large bytes": (pa.array([b"\xff", None], pa.large_binary()), [b"\xff", None]),
    "large lists": (pa.array([[1], []], pa.large_list(pa.int8())), [[1], []]),
    "vectors": (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), [[1.0, 2.0], [3.0, 4.0]]),
    "truth": (pa.array([True, None]), [1, None]),
    "times": (pa.array([STAMP, None], pa.timestamp("ms", "UTC")), [1795827723000, None]),
    "days": (pa.array([STAMP.date(), None]), [20785, None]),
    "decimals": (pa.array([decimal.Decimal("1.50"), None]), [1.5, None]),
    "doubles": (pa.array([0.5, None], pa.float64()), [0.5, None]),
    "unsigned": (pa.array([2**63 - 1, None], pa.uint64()), [2**63 - 1, None]),
}
REFUSED = {
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "column map: records cannot hold map<string, int64>: cast"),
    "empty lists": (pa.array([[]], pa.list_(pa.null())), "column empty lists: records cannot hold list<item: null>"),
    "long decimal": (pa.array([decimal.Decimal("1.5")], pa.decimal256(50, 2)), "column long decimal: records cannot hold decimal256(50, 2)"),
    "double": (pa.array([1, 0.1]), "row 1: column double: 0.1 is no float"),
    "decimal": (pa.array([decimal.Decimal("1.23456789012")]), "row 0: column decimal: "),
    "unsigned": (pa.array([2**63], pa.uint64()), "row 0: column unsigned: 9223372036854775808 is more than"),
    "null in list": (pa.array([[1, None]]), "row 0: column null in list: a null within a list"),
    "frames": (pa.array([[[1]]]), "column frames"),
}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_types_that_records_have_otherwise(tmp_path, ending):
    convert(write(tmp_path / f"a.{ending}", pa.table({name: column for name, (column, _) in TAKEN.items()})), tmp_path / "out")
    found = pa.Table.from_batches(tfrecord.read(tmp_path / "out")).to_pydict()
    assert found == {name: values for name, (_, values) in TAKEN.items() if values}


def test_types_that_records_cannot_hold(tmp_path, capfd):
    for name, (column, words) in REFUSED.items():
        assert here("arrow", "tfrecord", write(tmp_path / "a.arrow", pa.table({name: column})), tmp_path / "out") == 1
        assert words in capfd.readouterr().err
        assert os.listdir(tmp_path) == ["a.arrow"]


def test_structs_and_columns_of_one_name(tmp_path):
    convert(write(tmp_path / "a.parquet", pa.table({"s": [{"a": 1, "b": {"c": "x"}}]})), tmp_path / "out")
    assert records(tmp_path / "out") == [{"s.a": 1, "s.b.c": "x"}]
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    refuse(1, "two columns have the name x", write(tmp_path / "b.arrow", twice), tmp_path / "out")
    refuse(1, "b.arrow: two columns have the name x", "--schema=x bigint", tmp_path / "b.arrow", tmp_path / "out")


def test_s94_rounding(tmp_path):
    write(tmp_path / "a.parquet", pa.table({"x": [0.1, 0.5]}))
    assert convert("--allow-rounding", tmp_path / "a.parquet", tmp_path / "out")[0] == "2 records written; 1 numbers rounded\n"
    assert convert(tmp_path / "a.parquet", tmp_path / "out")[0] == "2 records written; 1 numbers rounded (column x: 1); --exact refuses them\n"
    write(tmp_path / "b.arrow", pa.table({"x": [0.1, 1e300], "y": [0.5, 1.1]}))
    assert convert(tmp_path / "b.arrow", tmp_path / "out")[0].endswith("3 numbers rounded (column x: 2, y: 1; 1 became infinite); --exact refuses them\n")
    refuse(1, "row 0: column x: 0.1 is no float", "--exact", tmp_path / "a.parquet", tmp_path / "out")


def test_columns_of_a_schema(tmp_path):
    write(tmp_path / "a.parquet", pa.table({"x": pa.array([1, 2], pa.int8()), "a.b": [["u"], []], "n": pa.nulls(2), "a": [{"b": 1}] * 2}))
    convert("--schema=`a.b` array<string>, n float, x bigint", tmp_path / "a.parquet", tmp_path / "out")
    assert records(tmp_path / "out") == [{"a.b": ["u"], "x": 1}, {"a.b": [], "x": 2}]
    refuse(1, "a.parquet: there is no column y", "--schema=y bigint", tmp_path / "a.parquet", tmp_path / "out")
    refuse(1, "a.parquet: column x is int8, and --schema says string", "--schema=x string", tmp_path / "a.parquet", tmp_path / "out")
    refuse(2, "--schema: character 3: a type is bigint", "--schema=x int", tmp_path / "a.parquet", tmp_path / "out")
    convert("--schema=x bigint, y array<array<float>>", "--type=sequence", tmp_path / "out", tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"x": [1, 2], "y": [None, None]}
    assert pq.read_schema(tmp_path / "b.parquet").field("y").type == pa.list_(pa.list_(pa.float32()))


# ---- what goes wrong

def test_damaged_records(source):
    data = bytearray(source.read_bytes())
    data[20] ^= 1
    source.write_bytes(data)
    target = source.parent / "out.parquet"
    assert f"{source}: offset 0: the checksum of a record is wrong" in refuse(1, "tfos: ", source, target)
    assert not target.exists()
    said = convert("--skip-damaged", source, target)[0].splitlines()
    assert "offset 0: the checksum of a record is wrong" in said[0] and said[1:] == ["4999 records written"]
    refuse(1, "offset", "--max-record-size=5", source, source.parent / "out.arrow")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_damaged_tables(source, ending):
    path = source.parent / f"a.{ending}"
    convert(source, path)
    data = path.read_bytes()
    for damaged in (data[:-10], data[: len(data) // 2], b"", b"no table at all, but some text"):
        path.write_bytes(damaged)
        assert "Traceback" not in refuse(1, f"tfos: {path}: ", path, source.parent / "out")
    if ending == "parquet":  # whose pages have checksums
        path.write_bytes(data[:1000] + bytes([data[1000] ^ 1]) + data[1001:])
        refuse(1, f"tfos: {path}: ", path, source.parent / "out")
    assert sorted(os.listdir(source.parent)) == [path.name, "source.tfrecord"]


def test_files_that_are_not_there(source):
    refuse(1, "tfos: /nowhere.parquet: No such file or directory", "/nowhere.parquet", "out")
    refuse(1, "tfos: /nowhere: No such file or directory", "/nowhere", "out.parquet")
    refuse(1, "tfos: stream: cannot write to /nowhere/out.parquet: No such file or directory", source, "/nowhere/out.parquet")
    convert(source, source.parent / "a.arrow")
    refuse(1, "/nowhere/out: No such file or directory", source.parent / "a.arrow", "/nowhere/out")
    refuse(2, "it takes one file, and there are 2", "--to=arrow", source.parent, "out.arrow")


@pytest.mark.parametrize("words, at", [(["--to=parquet", "SOURCE", "LINK"], "LINK"), (["--to=arrow", "SOURCE", "LINK"], "LINK"),
                                       (["TABLE", "LINK"], "LINK"), (["--to=arrow", "SOURCE", "-"], "the standard output"),
                                       (["TABLE", "-"], "the standard output")])
def test_a_full_disk(source, words, at):
    link, table = source.parent / "full", source.parent / "a.parquet"
    link.symlink_to("/dev/full")
    convert(source, table)
    words = [{"SOURCE": source, "LINK": link, "TABLE": table}.get(word, word) for word in words]
    with open("/dev/full", "w") as full:
        said = refuse(1, f"{at.replace('LINK', str(link))}: {FULL}", *words, stdout=full)
    assert said.count("\n") == 1, said
    assert link.is_char_device() and sorted(os.listdir(source.parent)) == ["a.parquet", "full", "source.tfrecord"]


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"before")
    for _ in range(2):
        with columnar_file._open_output(str(path)) as file:
            file.write(b"after")
            assert os.listdir(tmp_path) == ["out"]
        assert path.read_bytes() == b"after" and os.listdir(tmp_path) == ["out"]
    with pytest.raises(KeyError), columnar_file._open_output(str(path)) as file:
        file.write(b"not")
        raise KeyError
    assert path.read_bytes() == b"after" and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing(source, number):
    process = subprocess.Popen([COMMAND, "record", "convert", "--schema=x bigint, s string", "--to=parquet", "-", source.parent / "out"],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        process.stdin.write(source.read_bytes())
        process.stdin.flush()

        def is_writing():
            assert process.poll() is None, process.stderr.read()
            folder = f"/proc/{process.pid}/fd"
            with contextlib.suppress(FileNotFoundError):  # one was closed meanwhile
                return any(os.readlink(f"{folder}/{fd}").startswith(f"{source.parent}/#") for fd in os.listdir(folder))

        wait_until(is_writing, 60, "the file that is written")
        process.send_signal(number)
        assert process.wait(60) == -number and process.stderr.read() == b""
    assert os.listdir(source.parent) == ["source.tfrecord"]


def test_a_reader_that_leaves(source):
    """Ends as the rest of the command does, silently."""
    process = subprocess.Popen([COMMAND, "record", "convert", "--to=arrow", source, "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    with process:
        assert process.wait(60) == -signal.SIGPIPE and process.stderr.read() == b""


# ---- the Python that does it

@pytest.fixture
def bare(tmp_path):
    """A command beside which there is no python3, unless one is made of a script."""
    (tmp_path / "bin").mkdir()
    shutil.copy(COMMAND, tmp_path / "bin" / "tfos")

    def bare(script, path=""):
        if script:
            (tmp_path / "bin" / "python3").write_text(f"#!/bin/sh\nexec {script}\n")
            (tmp_path / "bin" / "python3").chmod(0o755)
        return {"command": tmp_path / "bin" / "tfos", "env": {**os.environ, "PATH": path}}

    return bare


def test_no_python(bare):
    refuse(1, "and python3 cannot be run: No such file or directory: install Python", "a.parquet", "b", **bare(None))


def test_python_in_path(bare, source):
    convert(source, source.parent / "a.parquet", **bare(None, os.path.dirname(sys.executable)))


def test_a_python_without_the_package(bare):
    said = refuse(1, "lacks one: No module named 'tensorflowonspark': install tfos", "a.parquet", "b", **bare(f"{sys.executable} -I -S \"$@\""))
    assert said.count("\n") == 1


def test_a_python_without_pyarrow(bare, tmp_path):
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "pyarrow.py").write_text("raise ModuleNotFoundError(\"No module named 'pyarrow'\", name='pyarrow')")
    script = f"env PYTHONPATH={tmp_path / 'blocked'} {sys.executable} \"$@\""
    said = refuse(1, "lacks one: No module named 'pyarrow'", "a.parquet", "b", **bare(script, os.environ["PATH"]))
    assert said.endswith(f"{sys.executable} -m pip install pyarrow\n") and said.count("\n") == 1


def test_names_and_folders(source):
    """No module comes from the folder where it runs, and a file's name may have any bytes."""
    for name in ("json.py", "pyarrow.py", "tensorflowonspark.py"):
        (source.parent / name).write_text("raise SystemExit('a stranger')")
    for name in (b"-x.parquet", b"\xff.arrow", "größe*\n.parquet".encode()):
        table, target = os.fsdecode(name), os.fsdecode(name + b".tfrecord")
        assert convert("--", "source.tfrecord", table, cwd=source.parent)[0] == "5000 records written\n"
        assert convert("--", table, target, cwd=source.parent)[0].startswith("5000 records written;")
    assert convert("--", os.fsdecode(b"\xff.arrow.tfrecord"), "out.arrow", cwd=source.parent)[0] == "5000 records written\n"


@pytest.mark.parametrize("words", [["--json", "a.parquet", "b"], ["--number=3", "a", "b.arrow"], ["--seed=3", "a", "b.arrow"], ["--memory=3", "a", "b.arrow"],
                                   ["--skip-damaged", "a.parquet", "b"], ["--max-record-size=9", "a.arrow", "b"], ["--compress=gzip", "a", "b.parquet"],
                                   ["--allow-rounding", "a", "b.arrow"], ["--exact", "a", "b.arrow"], ["--no-header", "a.parquet", "b"]])
def test_options_without_meaning(words):
    refuse(2, words[0].split("=")[0] + " is for ", *words)


def test_formats(source):
    for ending in ("orc", "avro"):
        refuse(2, f"a.{ending} is none of its formats", f"a.{ending}", "b")
    refuse(2, "a.parquet.gz: Parquet and Arrow files are compressed within, not by gzip", "a.parquet.gz", "b")
    refuse(2, "one of a.parquet and b.csv is to be a TFRecord file", "a.parquet", "b.csv")
    refuse(2, "--to takes tfrecord, csv, json, parquet or arrow", "--to=xml", source, "b")

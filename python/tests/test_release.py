# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/release that need no build."""

import importlib.util
import io
import re
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def assemble():
    spec = importlib.util.spec_from_file_location("assemble", ROOT / "scripts/release/assemble.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pom_has_the_version(assemble):
    version, = re.findall(r'#define TFOS_VERSION "(.*)"', (ROOT / "include/tfos/version.h").read_text())
    assert all(assemble.read_coordinates(ROOT / "java/pom.xml", version))
    with pytest.raises(ValueError, match="is of version"):
        assemble.read_coordinates(ROOT / "java/pom.xml", version + "1")


def test_zip_files_depend_on_their_contents_alone(assemble, monkeypatch):
    contents = {"b/c": b"2", "META-INF/MANIFEST.MF": b"m", "a": b"1" * 5000}
    written = []
    for moment, order in [("1700000000", 1), ("1700000000", -1), ("0", 1)]:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
        file = io.BytesIO()
        assemble.write_zip(file, dict(list(contents.items())[::order]))
        written.append(file)
    assert written[0].getvalue() == written[1].getvalue()
    assert [assemble.read_zip(file) for file in written] == [contents] * 3
    with zipfile.ZipFile(written[2]) as archive:
        assert archive.namelist() == ["META-INF/MANIFEST.MF", "a", "b/c"] and archive.infolist()[0].date_time[0] == 1980


def test_jars_may_differ_in_native_libraries_alone(assemble):
    one, other = {"A.class": b"a", "native/linux-x86_64/l.so": b"1"}, {"A.class": b"a", "native/linux-aarch64/l.so": b"2"}
    assert assemble.merge_jars([one, other]) == {**one, **other}
    for wrong, message in [({"A.class": b"b"}, "differ in A.class"), ({**one, "native/linux-x86_64/l.so": b"2"}, "two jars have"), ({}, "lacks A.class"),
                           ({**other, "B.class": b""}, "lacks B.class")]:
        with pytest.raises(ValueError, match=message):
            assemble.merge_jars([one, wrong])

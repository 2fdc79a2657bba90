# SPDX-License-Identifier: Apache-2.0
"""From a wheel for each machine: one jar with the native libraries of all, the files for Maven, and the wheels with that jar and their final tags.

What it writes depends on its input and SOURCE_DATE_EPOCH alone.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
import zipfile
from pathlib import Path

JAR = "tensorflowonspark/tfos.jar"
NATIVE = "native/"
POM = "{http://maven.apache.org/POM/4.0.0}"


def write_zip(path, contents):
    """Writes a zip file of {name: bytes}, in the order of the names, each with the time SOURCE_DATE_EPOCH."""
    moment = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315619200))[:6]  # a zip file knows no time before 1980
    manifest = "META-INF/MANIFEST.MF"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents, key=lambda name: (name != manifest, name)):  # readers of jars look for it in front
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents[name])


def read_zip(file):
    """{name: bytes} of the files of a zip file."""
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def merge_jars(jars):
    """The contents of the jars, which may differ in their native libraries alone.

    Raises:
        ValueError: they differ in something else, or two have a native library of the same machine.
    """
    merged = {}
    for jar in jars:
        for name, data in jar.items():
            if name.startswith(NATIVE) and name in merged:
                raise ValueError(f"two jars have {name}")
            if merged.setdefault(name, data) != data:
                raise ValueError(f"the jars differ in {name}")
    for jar in jars:
        missing = {name for name in merged if not name.startswith(NATIVE)} - set(jar)
        if missing:
            raise ValueError(f"a jar lacks {min(missing)}")
    return merged


def read_folder(folder, prefix=""):
    """{name: bytes} of the files below a folder."""
    return {prefix + path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_coordinates(pom, version):
    """(groupId, artifactId) of a POM.

    Raises:
        ValueError: it is of another version.
    """
    root = xml.parse(pom).getroot()
    group, artifact, its_version = (root.findtext(POM + name) for name in ("groupId", "artifactId", "version"))
    if its_version != version:
        raise ValueError(f"{pom} is of version {its_version}, include/tfos/version.h of {version}")
    return group, artifact


def make_javadoc(source, spark_jars):
    """{name: bytes} of the API's pages."""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(path) for path in sorted((source / "java/src/main/java").rglob("*.java"))]
        subprocess.run(["javadoc", "-quiet", "-notimestamp", "-encoding", "UTF-8", "-Xdoclint:none", "-cp", f"{spark_jars}/*", "-d", folder, *files],
                       check=True, stdout=subprocess.DEVNULL)
        return read_folder(Path(folder))


def write_maven(source, out, jar, version, spark_jars):
    """Writes the files of a Maven repository, with their checksums; returns the jar's path."""
    group, artifact = read_coordinates(source / "java/pom.xml", version)
    folder = out / "maven" / group.replace(".", "/") / artifact / version
    folder.mkdir(parents=True)
    legal = {f"META-INF/{name}": (source / name).read_bytes() for name in ("LICENSE", "NOTICE")}
    pom = (source / "java/pom.xml").read_bytes()
    manifest = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\nCreated-By: tfos\r\n\r\n"}
    for suffix, contents in (
        ("", {**jar, f"META-INF/maven/{group}/{artifact}/pom.xml": pom}),
        ("-sources", read_folder(source / "java/src/main/java")),
        ("-javadoc", make_javadoc(source, spark_jars)),
    ):
        write_zip(folder / f"{artifact}-{version}{suffix}.jar", {**contents, **manifest, **legal})
    (folder / f"{artifact}-{version}.pom").write_bytes(pom)
    for path in sorted(folder.iterdir()):
        for algorithm in ("md5", "sha1"):  # which Maven's repositories ask for
            path.with_name(f"{path.name}.{algorithm}").write_text(hashlib.new(algorithm, path.read_bytes()).hexdigest())
    return folder / f"{artifact}-{version}.jar"


def finish_wheel(wheel, jar, platform, out):
    """Writes the wheel with that jar and the tag of its platform."""
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-m", "wheel"]
        subprocess.run([*run, "unpack", "--dest", folder, wheel], check=True, stdout=subprocess.DEVNULL)
        unpacked, = Path(folder).iterdir()
        shutil.copyfile(jar, unpacked / JAR)
        packed = Path(folder) / "packed"
        packed.mkdir()
        subprocess.run([*run, "pack", "--dest-dir", packed, unpacked], check=True, stdout=subprocess.DEVNULL)
        whole, = packed.iterdir()
        machine, = re.findall(r"linux_(\w+)\.whl$", whole.name)
        subprocess.run([*run, "tags", "--remove", "--platform-tag", f"{platform}_{machine}", whole], check=True, stdout=subprocess.DEVNULL)
        tagged, = packed.iterdir()
        shutil.move(tagged, out / tagged.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the tree")
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--spark-jars", required=True)
    parser.add_argument("--platform", required=True, help="what the wheels' tags promise, such as manylinux_2_34")
    args = parser.parse_args()
    version, = re.findall(r'#define TFOS_VERSION "(.*)"', (args.source / "include/tfos/version.h").read_text())
    args.out.mkdir(parents=True)
    contents = [read_zip(zipfile.ZipFile(wheel).open(JAR)) for wheel in args.wheels]
    jar = write_maven(args.source, args.out, merge_jars(contents), version, args.spark_jars)
    for wheel in args.wheels:
        finish_wheel(wheel, jar, args.platform, args.out)


if __name__ == "__main__":
    main()

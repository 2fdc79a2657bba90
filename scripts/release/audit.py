# SPDX-License-Identifier: Apache-2.0
"""What can be said of a release's files without running them: the machine and the libraries of each ELF file, auditwheel's and abi3audit's checks."""

import argparse
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

# What each machine's C library brings, and nothing else.
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}


def describe_elf(data):
    """(machine, needed libraries, newest (2, 34) of glibc, RPATHs) of an ELF file."""
    elf = ELFFile(io.BytesIO(data))
    needed, paths, versions = set(), set(), {(0,)}
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        if tag.entry.d_tag == "DT_NEEDED":
            needed.add(tag.needed)
        elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            paths.add(getattr(tag, "rpath", None) or tag.runpath)
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for _, symbols in section.iter_versions():
                versions |= {tuple(map(int, symbol.name[6:].split("."))) for symbol in symbols if re.match(r"GLIBC_[\d.]+$", symbol.name)}
    return elf.header.e_machine, needed, max(versions), paths


def check_elf(name, data, machine, limit, own):
    """Yields what is wrong with an ELF file, and prints what it is."""
    its_machine, needed, glibc, paths = describe_elf(data)
    print(f"  {name}: {its_machine}, glibc {'.'.join(map(str, glibc))}, {' '.join(sorted(needed))}")
    if its_machine != MACHINES[machine]:
        yield f"{name} is for {its_machine}, not {MACHINES[machine]}"
    if needed - LIBRARIES - own:
        yield f"{name} needs {', '.join(sorted(needed - LIBRARIES - own))}"
    if glibc > limit:
        yield f"{name} needs glibc {'.'.join(map(str, glibc))}"
    if paths - {"$ORIGIN"}:
        yield f"{name} has the RPATH {paths}"


def elf_files(contents):
    """(name, bytes) of the ELF files of a zip file."""
    with zipfile.ZipFile(contents) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    return [(name, data) for name, data in sorted(found.items()) if data[:4] == b"\x7fELF"]


def check_wheel(wheel, platform, limit):
    machine, = (machine for machine in MACHINES if wheel.stem.endswith(machine))
    files = elf_files(wheel)
    own = {Path(name).name for name, _ in files}
    print(wheel.name)
    if not files:
        yield f"{wheel.name} has no ELF file"
    for name, data in files:
        yield from check_elf(name, data, machine, limit, own)
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    text = re.sub(r"\s+", " ", shown.stdout)
    tags = re.findall(r'platform tag: "(\w+)"', text)
    print(f"  auditwheel: {', '.join(tags) or shown.stderr}")
    if not tags or tuple(map(int, re.findall(r"\d+", tags[0])[:2])) > limit:
        yield f"{wheel.name}: auditwheel does not find it consistent with {platform}_{machine}: {shown.stdout}{shown.stderr}"
    checked = subprocess.run([sys.executable, "-m", "abi3audit", "--strict", wheel], capture_output=True, text=True)
    print(f"  abi3audit: {'ok' if checked.returncode == 0 else 'failed'}")
    if checked.returncode != 0:
        yield f"{wheel.name}: abi3audit: {checked.stdout}{checked.stderr}"


def check_jar(jar, limit):
    files = dict(elf_files(jar))
    print(jar.name)
    for machine in MACHINES:
        name = f"native/linux-{machine}/libtfos_jni.so"
        if name not in files:
            yield f"{jar.name} lacks {name}"
        else:
            yield from check_elf(name, files[name], machine, limit, set())


def check(dist, platform):
    """Yields what is wrong with the release in a folder."""
    limit = tuple(map(int, re.findall(r"\d+", platform)))
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != len(MACHINES):
        yield f"{dist} has {len(wheels)} wheels, not one for each of {', '.join(MACHINES)}"
    jar, = (path for path in dist.glob("maven/**/*.jar") if not re.search("-(sources|javadoc).jar$", path.name))
    for wheel in wheels:
        yield from check_wheel(wheel, platform, limit)
        with zipfile.ZipFile(wheel) as archive:
            if archive.read("tensorflowonspark/tfos.jar") != jar.read_bytes():
                yield f"{wheel.name} has another tfos.jar than {jar}"
    yield from check_jar(jar, limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--platform", default="manylinux_2_34", help="what the wheels' tags promise")
    args = parser.parse_args()
    problems = list(check(args.dist, args.platform))
    for problem in problems:
        print(f"audit: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

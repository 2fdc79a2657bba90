# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release, CycloneDX 1.6 as JSON: what its files have inside, what the wheel asks for, and the files themselves."""

import argparse
import datetime
import email
import hashlib
import os
import re
import uuid
import zipfile
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

# Licences of what is linked into the files.
LINKED = {"openssl": "Apache-2.0", "zlib": "Zlib", "jansson": "MIT"}


def linked_components(versions):
    """The libraries whose archives are in the files."""
    licences = LicenseFactory()
    for name, version in sorted(versions.items()):
        yield Component(name=name, version=version, type=ComponentType.LIBRARY, bom_ref=f"linked/{name}", scope=ComponentScope.REQUIRED,
                        licenses=[licences.make_from_string(LINKED[name])], purl=PackageURL("generic", None, name, version))


def required_components(wheel):
    """The packages that the wheel asks for, and those that its extras do."""
    with zipfile.ZipFile(wheel) as archive:
        metadata, = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        message = email.message_from_bytes(archive.read(metadata))
    for line in message.get_all("Requires-Dist", []):
        name = re.match(r"[\w.-]+", line).group().lower()
        scope = ComponentScope.OPTIONAL if "extra ==" in line else ComponentScope.REQUIRED
        yield Component(name=name, type=ComponentType.LIBRARY, bom_ref=f"pypi/{name}", scope=scope, purl=PackageURL("pypi", None, name),
                        properties=[Property(name="tfos:requirement", value=line)])


def file_components(dist):
    for path in sorted(dist.rglob("*")):
        if path.is_file() and path.suffix in (".whl", ".gz", ".jar", ".pom"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield Component(name=path.relative_to(dist).as_posix(), type=ComponentType.FILE, bom_ref=f"file/{path.name}",
                            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)])


def make_bom(dist, version, versions):
    """The same for the same files."""
    root = Component(name="tfos", version=version, type=ComponentType.LIBRARY, bom_ref="tfos", licenses=[LicenseFactory().make_from_string("Apache-2.0")])
    linked, required = list(linked_components(versions)), list(required_components(min(dist.glob("*.whl"))))
    files = list(file_components(dist))
    bom = Bom(components=[*linked, *required, *files])
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    hashes = "".join(str(one.content) for file in files for one in file.hashes)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, hashes)
    bom.register_dependency(root, [*linked, *(one for one in required if one.scope is ComponentScope.REQUIRED)])
    return bom


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    parser.add_argument("version")
    parser.add_argument("linked", nargs="+", help="NAME=VERSION of a library that is linked into the files")
    args = parser.parse_args()
    text = JsonV1Dot6(make_bom(args.dist, args.version, dict(one.split("=") for one in args.linked))).output_as_string(indent=2)
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault:
        raise SystemExit(f"the bill of materials is not CycloneDX: {fault}")
    (args.dist / f"tfos-{args.version}.cdx.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

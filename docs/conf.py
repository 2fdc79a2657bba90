# SPDX-License-Identifier: Apache-2.0
"""Sphinx settings, for `make docs`. The modules are read without what only a cluster has."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

project = "tfos"
copyright = "the tfos authors, Apache License 2.0"
version = release = re.search(r'TFOS_VERSION "([^"]+)"', (ROOT / "include/tfos/version.h").read_text()).group(1)
myst_heading_anchors = 3
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_mock_imports = ["tensorflowonspark._tfos", "pyspark", "tensorflow", "numpy"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
html_theme = "alabaster"

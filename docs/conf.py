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
myst_enable_extensions = ["colon_fence"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
autodoc_mock_imports = ["tensorflowonspark._tfos", "pyspark", "tensorflow", "numpy"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
html_title = f"tfos {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("versions.js", {"defer": "defer"})]
templates_path = ["templates"]

# Made by functions, not by users.
_WITHOUT_CONSTRUCTOR = ("tensorflowonspark.TFCluster.TFCluster", "tensorflowonspark.TFSparkNode.TFNodeContext",
                        "tensorflowonspark.TFManager.TFManager", "tensorflowonspark.TFManager.RowQueue", "tensorflowonspark.restarts.RestartingCluster")


def _hide_constructor(app, what, name, obj, options, signature, return_annotation):
    return ("", None) if name in _WITHOUT_CONSTRUCTOR else None


def setup(app):
    app.connect("autodoc-process-signature", _hide_constructor)

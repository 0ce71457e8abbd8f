"""The documentation site: `make docs` builds it into docs/_build/html, warnings being errors."""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import generated  # the pages that are made from the package, beside this file

import optdp

logging.getLogger("optdp").setLevel(logging.WARNING)

project = "optdp"
author = "The optdp authors"
copyright = "2026, The optdp authors"
version = release = optdp.__version__

# Mathematics is typeset by the MathJax that the package sphinx-mathjax-offline brings: pages need no network.
extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx-mathjax-offline", "matplotlib.sphinxext.plot_directive",
]  # fmt: skip
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["_build", "figures", "examples.md"]
master_doc = "index"

myst_enable_extensions = ["amsmath", "attrs_inline", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks are shown with the outputs that they are stored with; the tests execute them
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the arguments are described in words; signatures show their types in the source
autodoc_default_options = {"members": True, "show-inheritance": False}
add_module_names = False
default_role = "code"

plot_formats = ["svg"]
plot_html_show_source_link = False
plot_html_show_formats = False
plot_include_source = True
plot_rcparams = {"figure.figsize": (7.0, 4.2), "svg.fonttype": "path"}
plot_apply_rcparams = True
plot_pre_code = ""

html_theme = "furo"
html_title = f"optdp {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_show_sourcelink = False
suppress_warnings = ["myst.header"]  # pages that a command prints begin where they like


def setup(app):
    """Make the generated pages before the sources are read."""
    app.connect("builder-inited", lambda app: generated.write(Path(app.srcdir)))
    app.connect("source-read", generated.prepare)
    app.connect("autodoc-process-docstring", generated.markdown_docstring)

"""Sphinx settings."""

import re
import sys
from pathlib import Path

from docutils.utils import get_source_line

import widemargin

sys.path.insert(0, str(Path(__file__).parent))
from _tables import filled  # beside this file

project = "widemargin"
author = "the widemargin developers"
project_copyright = "2026, the widemargin developers"
release = version = widemargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
templates_path = ["_templates"]
exclude_patterns = ["_templates"]

autosummary_generate = True
autodoc_typehints = "none"
# autosummary already makes the tables of members.
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"widemargin {release}"


def skip_what_others_add(_app, _what, name, what, *_details):
    """Leave out methods that scikit-learn adds for metadata routing, and those of river."""
    module = getattr(what, "__module__", None) or ""
    if re.fullmatch(r"get_metadata_routing|set_\w+_request", name) or module.startswith("river."):
        return True
    return None


def keep_text_of_inherited_reference(_app, _env, node, text):
    """Show as plain text a label that exists only in scikit-learn's own documentation.

    Inherited docstrings refer to such labels. Ours still fail the build if a label is missing.
    """
    source, _line = get_source_line(node)
    if node["reftype"] == "ref" and "docstring of sklearn." in (source or ""):
        return text
    return None


def fill_tables(_app, _name, source):
    """Put tables of losses and kernels where a page says so."""
    source[0] = filled(source[0])


def setup(app):
    """Connect the event handlers."""
    app.connect("source-read", fill_tables)
    app.connect("autodoc-skip-member", skip_what_others_add)
    app.connect("missing-reference", keep_text_of_inherited_reference)

"""Sphinx configuration."""

import surelearn

project = "surelearn"
author = "The surelearn developers"
copyright = "2026, The surelearn developers"
version = release = surelearn.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "surelearn"
exclude_patterns = ["_build"]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "download_all_examples": False,
    "show_memory": False,
}

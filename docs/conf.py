"""How the site is built: ``make docs``. Nothing is fetched, neither here nor by a reader's browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "_ext"), str(HERE.parent / "src")]

import method_pages  # noqa: E402

import wcll  # noqa: E402

project, author, copyright = "wcll", "the authors of wcll", "the authors of wcll, BSD 3-clause"
version = release = wcll.__version__

extensions = ["mathml", "docstrings", "myst_parser"]
extensions += ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_ext", "gallery/**/*.ipynb", "gallery/**/*.py"]
exclude_patterns += ["sg_execution_times.rst", "gallery/sg_execution_times.rst"]  # these load scripts of other hosts
templates_path = ["_templates"]
highlight_language = "none"  # blocks that name no language are commands
nitpicky = True
smartquotes_action = "De"  # dashes only: what the library says in quotes stands as it says it
nitpick_ignore_regex = [
    ("py:class", r"(?!wcll).*"),
    ("py:.*", r"wcll\.report\.result_tables\.R|_.*"),
]  # not public here

# Text
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Reference
add_module_names = False
autodoc_default_options = {  # without what is scikit-learn's own
    "members": True,
    "exclude-members": "get_metadata_routing, set_fit_request, set_partial_fit_request, set_score_request",
}
autodoc_member_order = "bysource"
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # docstrings say what an argument is
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False

# Examples: pages of their own, where there are any
if any((HERE.parent / "examples").glob("*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": "../examples",
        "gallery_dirs": "gallery",
        "filename_pattern": r"/plot_",  # others are shown, and not run
        "image_scrapers": ("matplotlib",),
        "abort_on_example_error": True,
        "download_all_examples": False,
        "remove_config_comments": True,
        "show_signature": False,
        "show_memory": False,
        "min_reported_time": 60,
        "within_subsection_order": "FileNameSortKey",
    }

# Looks
html_theme = "pydata_sphinx_theme"
html_title = "wcll"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "wcll"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 5,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


#: Pages that are made by other means, and may not be there: lists of pages then go without them.
MADE = {"gallery/index": "gallery/index.rst"}


def _as_shown(app: Any, page: str, source: list[str]) -> None:
    """Without pages that are not there, and without the empty line that ends doctests; methods lead to their pages."""
    if page == "methods":
        source[0] = method_pages.index()
    missing = {entry for entry, files in MADE.items() if not any(HERE.glob(files))}
    lines: list[str] = []
    inside = False
    for line in source[0].split("\n"):
        if line.startswith("```"):
            if inside and lines[-1] == "":
                lines.pop()
            inside = not inside
        if line not in missing:
            lines.append(line)
    source[0] = "\n".join(lines)


def setup(app: Any) -> None:
    method_pages.write_pages(HERE)
    app.connect("source-read", _as_shown)

"""The examples of the gallery: that they can be shown, and need nothing that is not declared; the site runs them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
#: What they may import beside the standard library: what the package needs, what `.[docs]` and developers have, and
#: in text that is not run the frameworks that it is about.
ALLOWED = {"wcll", "numpy", "scipy", "sklearn", "torch"} | {"matplotlib", "pandas"}
SHOWN = {"skorch_and_lightning": {"lightning", "skorch"}, "slurm_workers": {"dask_jobqueue"}}

paths = sorted(EXAMPLES.glob("*.py"))
every_example = pytest.mark.parametrize("path", paths, ids=[path.stem for path in paths])
pytestmark = pytest.mark.skipif(not paths, reason="the examples are not beside the package")


def test_there_are_as_many_as_the_gallery_promises():
    run = [path for path in paths if path.name.startswith("plot_")]  # the gallery runs these and shows the others
    assert len(run) == 9
    assert {path.stem for path in paths} - {path.stem for path in run} == set(SHOWN)
    assert (EXAMPLES / "GALLERY_HEADER.rst").exists()


@every_example
def test_an_example_has_a_title_and_a_sentence(path):
    said = ast.get_docstring(ast.parse(path.read_text()))
    title, rule, blank, *rest = said.splitlines()
    assert title
    assert re.fullmatch(r"=+", rule)
    assert len(rule) == len(title)
    assert blank == ""
    assert " ".join(rest).strip().endswith(".")
    assert "# %%" in path.read_text()


@every_example
def test_an_example_imports_what_is_declared(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    unknown = {name.split(".")[0] for name in named} - ALLOWED - SHOWN.get(path.stem, set())
    assert unknown <= sys.stdlib_module_names


@every_example
def test_figures_of_an_example_have_a_title(path):
    """It is what the gallery says of them to whoever does not see them."""
    text = path.read_text()
    assert (
        text.count("plt.subplots")
        == text.count("plt.show()")
        <= len(re.findall(r"suptitle\(|title=|set_title\(", text))
    )


@every_example
def test_names_that_an_example_takes_of_the_package_are_there(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "wcll":
            module = __import__(node.module, fromlist=["there"])
            assert all(hasattr(module, alias.name) for alias in node.names)


JOB_SCRIPT = """
import runpy, sys
from dask_jobqueue.slurm import SLURMJob
job = runpy.run_path(sys.argv[1])["JOB"]
print(SLURMJob(scheduler="tls://10.0.0.1:8786", name="wcll-1", python="python", **job).job_script())
"""


@pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="dask-jobqueue is not installed")
def test_slurm_is_asked_for_what_the_guide_shows(tmp_path):
    """As text: no scheduler is started, and no Slurm is needed. dask-jobqueue writes a file into the home folder."""
    guide = (EXAMPLES.parent / "docs" / "guide" / "scaling.md").read_text()
    (shown,) = re.findall(r"```\n(#!/usr/bin/env bash\n.*?)```", guide, re.DOTALL)
    given = [sys.executable, "-c", JOB_SCRIPT, str(EXAMPLES / "slurm_workers.py")]
    run = subprocess.run(given, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert run.stdout.rstrip() == shown.rstrip()
    assert "--nthreads 1 " in shown  # else units would be trained beside each other

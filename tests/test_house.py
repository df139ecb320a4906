"""The house: what imports what, what import costs, and documentation that is up to date."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wcll

SOURCE = Path(wcll.__file__).parent
ROOT = SOURCE.parents[1]

#: Rooms in the order that data flows; a room imports from earlier ones only.
ORDER = [
    *("checks", "streams", "registry", "atomic", "labels", "losses", "functional", "models", "training", "evaluation"),
    *("inputs", "persistence", "estimator", "datasets", "suites", "results"),
    *("running", "theory", "report", "paper", "cli", "__main__"),
]
FORBIDDEN = {"torchvision", "torchmetrics", "lightning", "pytorch_lightning"}

modules = sorted(SOURCE.rglob("*.py"))
every_module = pytest.mark.parametrize("path", modules, ids=[str(p.relative_to(SOURCE)) for p in modules])


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@every_module
def test_imports_go_one_way(path):
    if path == SOURCE / "__init__.py":
        return  # names the rooms, and loads them when they are used
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    rooms = {name.split(".")[1] for name in imported(ast.parse(path.read_text())) if name.startswith("wcll.")}
    later = {room for room in rooms & set(ORDER) if ORDER.index(room) > ORDER.index(own)}
    assert not later, f"{own} imports from a later room: {later}"


@every_module
def test_nothing_heavy_is_imported(path):
    roots = {name.split(".")[0] for name in imported(ast.parse(path.read_text()))}
    assert not roots & FORBIDDEN


def in_a_new_process(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_import_is_light():
    heavy = "'sklearn', 'typer', 'matplotlib', 'pandas'"
    code = f"import sys, wcll; wcll.losses, wcll.labels, wcll.functional; print([m for m in ({heavy}) if m in sys.modules])"
    assert in_a_new_process(code).strip() == "[]"
    assert in_a_new_process("import sys, wcll; print('torch' in sys.modules)").strip() == "False"


def test_a_plain_source_tree_works():
    run = subprocess.run(
        [sys.executable, "-m", "wcll", "--version"],
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        check=True,
    )
    assert run.stdout.strip() == f"wcll {wcll.__version__}"


def test_unknown_attributes_of_the_package():
    with pytest.raises(AttributeError, match="no attribute 'lossess'"):
        wcll.lossess  # noqa: B018


@pytest.mark.skipif(not (ROOT / "docs" / "generate.py").exists(), reason="the documentation is not beside the package")
def test_generated_documentation_is_up_to_date():
    run = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("room", ["report", "paper"])
def test_what_shows_results_trains_nothing(room):
    trees = [ast.parse(path.read_text()) for path in (SOURCE / room).glob("*.py")]
    rooms = {name.split(".")[1] for tree in trees for name in imported(tree) if name.startswith("wcll.")}
    assert "results" in rooms
    assert not rooms & {"training", "running", "models"}

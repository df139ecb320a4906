"""The house: what imports what, what import costs, and documentation that is up to date."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path
from typing import get_args

import pytest
from packaging.requirements import Requirement

import wcll
from wcll.evaluation.label_free import Verdict
from wcll.labels.goodness_of_fit import State
from wcll.report.result_tables import Cell, compared
from wcll.report.suite_report import NEXT

SOURCE = Path(wcll.__file__).parent
ROOT = SOURCE.parents[1]

#: Packages, and modules of their own, in the order that data flows: each imports from earlier ones only.
ORDER = [
    "exceptions",
    "_memory",
    "_files",
    "_validation",
    "_random",
    "_neighbors",
    "labels",
    "losses",
    "functional",
    "models",
    "training",
    "evaluation",
    "testing",
    "_auto",
    "_fitting",
    "persistence",
    "estimator",
    "onnx",
    "transition_estimation",
    "datasets",
    "experiments",
    "owndata",
    "theory",
    "report",
    "paper",
    "cli",
    "__main__",
]
#: Whoever raises one of these says why in the commit.
MAX_MODULES, MAX_LINES = 140, 23_200
MAX_MODULE = 600  #: lines of code of one module
MAY_BE_LONGER = {"estimator", "_auto"}  #: the classifier, and the search of its default
MIN_MODULE = 120  #: lines of code of a module that has one importer only
#: Readers of files, which are to become one; and what people look for under its own name.
MAY_BE_SMALL = {"datasets", "owndata", "cli.files", "experiments.splits"}
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}  # fmt: skip
HEAVY = {"torch", "numpy", "sklearn", "scipy", "pandas"}
FORBIDDEN = {"torchvision", "torchmetrics", "lightning", "pytorch_lightning"}

modules = sorted(SOURCE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def dotted(path: Path) -> str:
    """Return the name of a module below ``wcll``."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def test_imports_go_one_way():
    for path in set(modules) - {SOURCE / "__init__.py"}:  # that one names all, and loads them when they are used
        own = dotted(path).split(".")[0]
        used = {name.split(".")[1] for name in imported(tree_of(path)) if name.startswith("wcll.")}
        later = {name for name in used & set(ORDER) if ORDER.index(name) > ORDER.index(own)}
        assert not later, f"{path} imports what comes later: {later}"


def importers() -> dict[str, set[str]]:
    """Return, for each module, those that import it or something of it when they run, not for types alone."""
    found: dict[str, set[str]] = {dotted(path): set() for path in modules}
    for path in modules:
        for statement in tree_of(path).body:
            if not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"):
                for name in imported(statement) & {f"wcll.{known}" for known in found}:
                    found[name.removeprefix("wcll.")].add(dotted(path))
    return found


def code_lines(path: Path) -> int:
    """Return how many lines are code: neither blank, nor a comment, nor part of a docstring."""
    lines = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in NO_CODE:
                lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_the_house_does_not_grow():
    assert len(modules) <= MAX_MODULES
    assert sum(map(code_lines, modules)) <= MAX_LINES


def test_modules_are_neither_long_nor_small():
    users = importers()
    for path in modules:
        name, size = dotted(path), code_lines(path)
        assert size <= MAX_MODULE or name in MAY_BE_LONGER, f"{name} has {size} lines of code"
        public = name.rpartition(".")[0] in users[name] or path.parent == SOURCE or path.name == "__init__.py"
        small = len(users[name]) == 1 and size < MIN_MODULE and not public
        excused = {name, name.split(".")[0]} & MAY_BE_SMALL
        assert not small or excused, f"{name} has {size} lines of code and one importer, {users[name]}"


def test_no_modules_import_each_other():
    """Neither at the top nor, but for the factory of engines, in functions."""
    packages = {dotted(path) for path in modules if path.name == "__init__.py"}  # these import their modules
    graph: dict[str, set[str]] = {}
    for name, users in importers().items():
        for user in users - packages - {"training.engine"}:
            graph.setdefault(user, set()).add(name)
    assert list(TopologicalSorter(graph).static_order())


def test_nothing_heavy_is_imported():
    for path in modules:
        roots = {name.split(".")[0] for name in imported(tree_of(path))}
        assert not roots & FORBIDDEN, path


PROJECT = ROOT / "pyproject.toml"
needs_project = pytest.mark.skipif(not PROJECT.exists(), reason="the project's file is not beside the package")


def plain_name(name: str) -> str:
    """Names of distributions as they are compared: pyproject, metadata and constraints may write them differently."""
    return name.lower().replace("_", "-").replace(".", "-")


def declared(extra: str | None = None) -> set[str]:
    """What the project's file says that it needs, always or for an extra."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {plain_name(Requirement(line).name) for line in lines}


@cache
def installed() -> Mapping[str, list[str]]:
    """Every module that can be found, and what brings it."""
    return metadata.packages_distributions()


def distributions(module: str) -> set[str]:
    """What brings a module, if it is installed."""
    return {plain_name(name) for name in installed().get(module, [])}


def imports(body: list[ast.stmt], inside: bool = False) -> Iterator[tuple[str, bool]]:
    """The modules that statements import, by the first part of their names, and whether a function does it."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).split(".")[0], inside
        else:
            deeper = inside or isinstance(node, ast.FunctionDef)
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from imports(getattr(node, part, []), deeper)


@needs_project
def test_what_is_imported_is_declared():
    always, optional = declared(), declared("images") | declared("parquet") | declared("onnx")
    for path in modules:
        for module, inside in imports(tree_of(path).body):
            if module not in sys.stdlib_module_names | {"wcll"}:
                allowed, found = always | (optional if inside else set()), distributions(module)
                assert found & allowed or (inside and not found), f"{path}: {module} is imported but not declared"


@needs_project
def test_what_is_declared_is_imported():
    used = {module for path in modules for module, _ in imports(tree_of(path).body)}
    assert declared() <= {name for module in used for name in distributions(module)}


def required() -> dict[str, list[Requirement]]:
    """What is declared and, in turn, what that requires: by name, everything that is asked of it."""
    found: dict[str, list[Requirement]] = {}
    waiting = [Requirement(line) for line in tomllib.loads(PROJECT.read_text())["project"]["dependencies"]]
    while waiting:
        one = waiting.pop()
        name = plain_name(one.name)
        if name not in found:
            lines = [Requirement(line) for line in metadata.requires(name) or []]
            waiting += [line for line in lines if line.marker is None or line.marker.evaluate({"extra": ""})]
        found.setdefault(name, []).append(one)
    return found


@needs_project
def test_requirements_agree_with_each_other():
    for name, asked in required().items():
        version = metadata.version(name)
        assert all(one.specifier.contains(version, prereleases=True) for one in asked), f"{name} {version}: {asked}"


IMPORTS_EVERYTHING = """
import importlib, pkgutil, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {refused}:
            raise ModuleNotFoundError(f"{{name}} is not declared", name=name)
sys.meta_path.insert(0, Refuse())
import wcll
for module in pkgutil.walk_packages(wcll.__path__, "wcll."):
    if module.name != "wcll.__main__":
        importlib.import_module(module.name)
print(sorted({refused} & set(sys.modules)))
"""


@needs_project
def test_what_is_declared_is_enough():
    allowed = set(required())
    refused = {module for module in installed() if not distributions(module) & allowed} - {"wcll"}
    assert "pytest" in refused
    loaded = {"_distutils_hack", "_virtualenv"}  # installers load these before anything can be refused
    assert in_a_new_process(IMPORTS_EVERYTHING.format(refused=refused - loaded)).strip() == "[]"


def in_a_new_process(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_import_is_light():
    heavy = "'sklearn', 'scipy.stats', 'typer', 'matplotlib', 'pandas'"
    code = f"""
import sys, wcll
print('torch' in sys.modules)
wcll.losses, wcll.labels, wcll.functional
print([m for m in ({heavy}) if m in sys.modules])
"""
    assert in_a_new_process(code).split("\n") == ["False", "[]", ""]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["simulat"], ["--jsn"]])
def test_the_list_of_commands_is_light(arguments):
    """Commands are loaded when they are called."""
    code = f"import sys; from wcll.cli.app import run; run({arguments}); print({HEAVY} & set(sys.modules))"
    assert in_a_new_process(code).splitlines()[-1] == "set()"


@pytest.mark.parametrize("command", ["labels describe", "simulate", "data", "results"])
def test_commands_about_labels_data_and_results_load_no_torch(command):
    code = (
        f"import sys; from wcll.cli.app import run; run({[*command.split(), '--help']}); print('torch' in sys.modules)"
    )
    assert in_a_new_process(code).splitlines()[-1] == "False"


def test_names_of_the_package_are_what_type_checkers_see():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    seen = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    names = [alias.name for node in seen for line in node.body for alias in line.names]
    assert sorted([*names, "__version__"]) == sorted(wcll.__all__)
    assert all(getattr(wcll, name) is not None for name in wcll.__all__)
    assert set(wcll.__all__) <= set(dir(wcll))
    open_to_all = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "__getattr__" not in open_to_all  # else a misspelt name would be Any to them


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


PLAYBOOK = ROOT / "docs" / "guide" / "playbook.md"
#: Functions whose lines others warn with, and what these call them.
MAKE_WARNINGS = {
    *("check_counts", "check_table", "doubts", "corrected_twice", "remedy_of", "_beyond_its_column"),
    *("asked_by_predictions", "asked_by_features", "_withdrawn", "_encoded_truths"),
}
MADE_ELSEWHERE = {"line", "found.warning", "question"}


def texts(node: ast.AST) -> Iterator[str]:
    """Pieces of text of three words or more in a piece of code, docstrings aside."""
    docstrings = {id(one.body[0].value) for one in ast.walk(node) if isinstance(one, ast.FunctionDef) and isinstance(one.body[0], ast.Expr)}  # fmt: skip
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in docstrings:
            yield from (piece for piece in one.value.split("; ") if len(piece.split()) >= 3)


def warned(function: ast.FunctionDef) -> Iterator[str]:
    """What a function says in the warnings that it gives itself."""
    local = {ast.unparse(one.targets[0]): one.value for one in ast.walk(function) if isinstance(one, ast.Assign)}
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "warnings.warn":
            message = ast.unparse(call.args[0])
            found = list(texts(local.get(message, call.args[0])))
            assert found or message in MADE_ELSEWHERE, f"where do the lines of warn({message}) come from?"
            yield from found


def every_warning() -> Iterator[str]:
    for path in modules:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                yield from texts(function) if function.name in MAKE_WARNINGS else warned(function)


@pytest.mark.skipif(not PLAYBOOK.exists(), reason="the documentation is not beside the package")
def test_the_playbook_has_every_warning_and_verdict():
    page = " ".join(PLAYBOOK.read_text().split())
    lines = {line.strip(" ,:;") for line in every_warning()}
    assert "training diverged: the loss is not finite" in lines
    assert [line for line in sorted(lines) if line not in page] == []
    for verdict in (*get_args(Verdict), *get_args(State)):
        assert f'### "{verdict}"' in PLAYBOOK.read_text(), f"{verdict} has no place in the playbook"


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="the documentation is not beside the package")
def test_the_first_screen_shows_what_the_demonstration_ends_with():
    """Its lines are run by the demonstration's tests."""
    readme = (ROOT / "README.md").read_text()
    assert f"```python\n{NEXT}\n```" in readme
    assert len(readme.splitlines()) <= 120


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="the documentation is not beside the package")
def test_the_first_table_marks_what_no_test_tells_from_the_best():
    """As `wcll demo` does: a mean below the best is no loss if five seeds cannot show it."""
    lines = json.loads((ROOT / "docs" / "demo.json").read_text())["lines"]
    columns = zip(*(line["cells"] for line in lines), strict=True)
    marks = [
        compared([Cell(cell["values"], (), limit=line["limit"]) for cell, line in zip(cells, lines, strict=True)])
        for cells in columns
    ]
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert sum(cell.undecided for cells in marks for cell in cells) == sum(row.count("°") for row in rows) > 0


@pytest.mark.parametrize("package", ["report", "paper"])
def test_what_shows_results_trains_nothing(package):
    study = {SOURCE / "paper" / "bound_study.py"}  # it measures the bounds on models that it trains
    trees = [ast.parse(path.read_text()) for path in set((SOURCE / package).glob("*.py")) - study]
    used = {name.split(".")[1] for tree in trees for name in imported(tree) if name.startswith("wcll.")}
    assert "experiments" in used
    assert not used & {"training", "models"}


def test_tests_mirror_the_source():
    """A package has a folder of tests of its name, a module at the top or of docs/ a file; the rest is helpers."""
    tests = ROOT / "tests"
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    folders = {path.name for path in tests.iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert folders == packages
    top = {path.stem.split("_")[1] for path in tests.glob("test_*.py")}
    files = [*(ROOT / "docs").glob("*.py"), *SOURCE.glob("*.py")]
    assert top - {"house", "golden", "examples"} <= {path.stem.strip("_").split("_")[0] for path in files}

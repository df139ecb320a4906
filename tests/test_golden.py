"""Golden files: numbers, keys and file formats that must survive a change of modules or names.

What is expected lies in ``tests/golden/*.json``, one file per test. Numbers from stored results are compared digit by
digit, numbers from a training in the test with a tolerance, because they depend on the CPU. Words are not compared.
Nothing rewrites these files but this command, which takes names of tests, or none for all::

    PYTHONPATH=src python tests/test_golden.py --write [NAME ...]

Look at ``git diff tests/golden`` afterwards: every changed line is a changed result, and the commit says why it changed.

``tests/golden/inputs`` holds data, and files that version 0.1.0 wrote from them. These are only read: an old model or an
old result must stay readable, so no command rewrites them. They were made by::

    wcll train train.csv --budget 600 --model linear --device cpu --out model
    wcll run suite.toml --device cpu && wcll run draws.toml --device cpu && wcll results export results.json.gz

and by ``save`` of the classifiers of :func:`fit_default` and :func:`fit_penalised_mlp` below.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import random
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import wcll
from wcll import ComplementaryClassifier

# All that moves when modules do: everything else goes through the names above and the command line.
from wcll.cli.app import run
from wcll.evaluation import checkpoints
from wcll.experiments import Suite, Trial, load_suite, packaged_suites
from wcll.labels.families import FAMILIES
from wcll.labels.imbalance import make_imbalance
from wcll.labels.sampling import make_complementary
from wcll.labels.transition import make_transition, select_by_marginal, shifted_transition
from wcll.labels.weights import class_weights, resample
from wcll.losses import LOSSES
from wcll.paper.protocols import NAMED, base_suite, named_suite, search_trials
from wcll.report.model_report import model_page

GOLDEN = Path(__file__).parent / "golden"
INPUTS = GOLDEN / "inputs"
OLD = Path(__file__).parent / "experiments" / "stored"  #: a suite and its store, of an earlier version
RESULTS = Path(wcll.__file__).parents[2] / "results" / "paper"
TRAINED = 1e-3  #: tolerance of numbers that follow from a training in the test
TESTED = 1000  #: test samples per class of made-up runs

# --- golden files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Golden:
    """A function whose result is compared with a file."""

    make: Callable[[], Any]  #: works in an empty folder, and returns what JSON can hold
    tolerance: float  #: relative to numbers above 1, absolute below; 0 asks for the same digits
    needs: Path  #: is skipped without it


TESTS: dict[str, Golden] = {}


def golden(tolerance: float = 0.0, needs: Path = GOLDEN) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function under its name."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        TESTS[make.__name__] = Golden(make, tolerance, needs)
        return make

    return register


def result_of(test: Golden) -> Any:
    """Return the result of a test as JSON holds it; warnings are not compared."""
    with TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(test.make()))


def differences(found: Any, wanted: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """Yield a line for every place where two results differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in [*wanted, *(name for name in found if name not in wanted)]:
            if name in wanted and name in found:
                yield from differences(found[name], wanted[name], tolerance, f"{place}/{name}")
            else:
                yield f"{place}/{name}: {'missing' if name in wanted else 'not expected'}"
        if [*found] != [*wanted] and set(found) == set(wanted):
            yield f"{place}: expected the order {', '.join(wanted)}, got {', '.join(found)}"
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{place}: expected {len(wanted)} entries, got {len(found)}"
        for i, pair in enumerate(zip(found, wanted, strict=False)):
            yield from differences(*pair, tolerance, f"{place}/{i}")
    elif not equal(found, wanted, tolerance):
        yield f"{place}: expected {str(wanted)[:200]}, got {str(found)[:200]}"


def equal(found: Any, wanted: Any, tolerance: float) -> bool:
    """Return whether two values, or two lines of numbers, are equal within a tolerance.

    >>> equal("0.83 12", "0.82 12", 1e-3), equal("0.83 12", "0.82 13", 1e-3), equal("0.83", "0.82", 0)
    (True, False, False)
    """
    if found == wanted or not tolerance or isinstance(wanted, bool) or isinstance(found, bool):
        return bool(found == wanted)
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return abs(found - wanted) <= tolerance * max(1.0, abs(wanted))
    if not isinstance(wanted, str) or not isinstance(found, str):
        return False
    pairs = [*zip(found.split(), wanted.split(), strict=False)]
    near = all(equal_texts(*pair, tolerance) for pair in pairs)
    return near and len(found.split()) == len(wanted.split())


def equal_texts(found: str, wanted: str, tolerance: float) -> bool:
    """Return whether two words are the same, or numbers that are equal within a tolerance."""
    if not NUMBER.fullmatch(found) or not NUMBER.fullmatch(wanted):
        return found == wanted
    return abs(float(found) - float(wanted)) <= tolerance * max(1.0, abs(float(wanted))) + digit(wanted)


def digit(number: str) -> float:
    """Return the unit of the last digit of a decimal number, which rounding may change; 0 for whole numbers."""
    _, point, decimals = number.partition(".")
    return 1.001 * 10.0 ** -len(decimals) if point and "e" not in number else 0.0


# --- numbers in texts ------------------------------------------------------------------------------------------------

#: A number that stands alone: no part of a name, a version, a colour or a digest, and no time.
NUMBER = re.compile(r"(?<![\w#.-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d| (?:s|min|h)\b)")
PLACE = re.compile(r"-?\d+(?:\.\d+)?")  #: a number in the geometry of a figure
VOLATILE = re.compile(r"seconds\W+[\d.]+")
LINES = {"address", "caption", "div", "dt", "figcaption", "h1", "h2", "h3", "h4", "li", "p", "section", "tr"}


def numbers(text: str) -> list[str]:
    r"""Return the numbers of a text, line by line; lines without a number are left out.

    >>> numbers("CIFAR-10, p = 2: 81.5 % (-0.3)\nin 7 s by torch 2.13.0, #1f77b4\n1e-05; 3 seeds")
    ['2 81.5 -0.3', '1e-05 3']
    """
    found = (" ".join(NUMBER.findall(line)) for line in VOLATILE.sub("", text).splitlines())
    return [line for line in found if line]


class Page(HTMLParser):
    """Collects what an HTML page shows: lines of text, and the numbers of every SVG figure."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines, self.figures = [""], list[list[str]]()
        self._inside: list[str] = []  # style, script or svg
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "svg":
            self.figures.append([])
        if tag in ("svg", "style", "script"):
            self._inside.append(tag)
        if "svg" in self._inside:
            self.figures[-1] += [one for name, value in attrs if name != "class" for one in PLACE.findall(value or "")]
        self._line(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()
        self._line(tag)

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.lines[-1] += f" {' '.join(data.split())}"
        elif self._inside[-1] == "svg":
            self.figures[-1] += NUMBER.findall(data)

    def _line(self, tag: str) -> None:
        if tag in LINES and "svg" not in self._inside:
            self.lines.append("")


def page_numbers(text: str, *, trained: bool = False) -> dict[str, Any]:
    """Return the numbers of an HTML page; those of a figure as a digest, unless they follow from a training."""
    page = Page(text)
    figures = [" ".join(figure) for figure in page.figures]
    if not trained:
        figures = [f"{figure.count(' ') + 1} numbers, {digest(figure)}" for figure in figures]
    return {"text": numbers("\n".join(page.lines)), "figures": figures}


def digest(text: str | bytes) -> str:
    """Return a short SHA-256."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:24]


# --- commands --------------------------------------------------------------------------------------------------------


def run_command(*words: str | Path) -> str:
    """Run a command in this process and return what it prints on standard output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(word) for word in words])
    assert code == 0, f"wcll {' '.join(map(str, words))}: {err.getvalue()}"
    return out.getvalue()


def without_prose(plain: Any) -> Any:
    """Return JSON without prose: text of several words becomes "...", versions are left out."""
    if isinstance(plain, dict):
        return {name: without_prose(value) for name, value in plain.items() if name not in ("wcll", "made")}
    if isinstance(plain, list):
        return [without_prose(value) for value in plain]
    return "..." if isinstance(plain, str) and " " in plain else plain


def outline(plain: Any) -> Any:
    """Return the keys of JSON; a list has the keys of all its entries, and a value is the name of its type."""
    if isinstance(plain, dict):
        return {name: outline(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [json.loads(one) for one in sorted({json.dumps(outline(value)) for value in plain})]
    return type(plain).__name__


def header_of(path: Path) -> Any:
    """Return the JSON in the header of a saved classifier."""
    with safe_open(path, "numpy") as file:
        return json.loads(file.metadata()["header"])


def rows_of(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def round_array(array: Any) -> Any:
    """Return an array as lists, with six decimals."""
    return np.round(np.asarray(array, dtype=np.float64), 6).tolist()


# --- 1. keys ---------------------------------------------------------------------------------------------------------


@golden()
def keys() -> Any:
    """Count the trials of every suite and digest their keys, in order: a changed key loses stored results."""
    base = base_suite()
    trials: dict[str, Iterable[Trial]] = {name: load_suite(name).all_trials() for name in packaged_suites()}
    trials |= {name: named_suite(name).all_trials() for name in NAMED}
    trials["search"] = search_trials(base, base.trials)
    every = {name: [trial.key for trial in some] for name, some in trials.items()}
    return {name: {"trials": len(some), "keys": digest("\n".join(some))} for name, some in every.items()}


@golden()
def loss_registry() -> Any:
    """List the losses in the order of the registry, with their revisions, which are part of the keys."""
    kept = ("labels", "needs", "uses", "options", "several", "link", "revision")
    entries = json.loads(run_command("methods", "--json"))
    return {entry["name"]: {name: entry[name] for name in kept} for entry in entries}


# --- 2. draws and predictions ----------------------------------------------------------------------------------------

Q = np.array([[0, 0.6, 0.3, 0.1], [0.2, 0, 0.2, 0.6], [0.5, 0.25, 0, 0.25], [0.1, 0.2, 0.7, 0]])


def small_problem(n: int = 90) -> tuple[Any, Any]:
    """Return features of four imbalanced classes and labels that favour some wrong classes."""
    y = np.repeat(range(4), [n // 2, n // 4, n // 8, n - n // 2 - n // 4 - n // 8])
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 5)) + 2 * np.eye(4, 5)[y], make_complementary(y, Q, random_state=0)


def predict(model: Any, X: Any) -> Any:
    """Return probabilities, or scores where the loss gives no probabilities."""
    return round_array(model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X))


def fit_briefly(X: Any, y: Any, **settings: Any) -> Any:
    """Fit a classifier on the CPU for two epochs with large steps."""
    short: dict[str, Any] = {"max_epochs": 2, "lr": 0.02, "batch_size": 16, "random_state": 0, "device": "cpu"}
    return ComplementaryClassifier(**{**short, **settings}).fit(X, y)


MLP = {"name": "mlp", "hidden": 8}
MODELS: dict[str, Any] = {"linear": "linear", "mlp": MLP}
COMPLEMENTARY = [name for name, spec in LOSSES.items() if spec.labels == "complementary"]
OPTIONS: list[dict[str, Any]] = [
    *({"name": "wcll", "reading": reading} for reading in ("algorithm1", "eq9", "eq10", "eq12")),
    *({"name": "wcll", "base": base} for base in ("mae", "mse", "gce", "phuber", "symmetric")),
    *({"name": "wcll-penalty", "strength": 2.0, "reading": reading} for reading in ("algorithm1", "eq10")),
    *({"name": "wcll-adaptive", "mix": mix} for mix in (0.0, 1.0)),
    *({"name": name, "base": "gce"} for name in ("free", "nn", "ga", "ncll")),
    *({"name": "ml-cll", "variant": variant} for variant in ("gdf", "unbiased")),
    *({"name": "pc", "surrogate": surrogate} for surrogate in ("sigmoid", "ramp")),
    {"name": "nn", "beta": 0.3},
]
SETTINGS: dict[str, dict[str, Any]] = {
    "popularity": {"loss": "forward", "transition": "popularity"},
    "inverse-size": {"loss": "nn", "transition": "inverse-size"},
    "a matrix": {"loss": "forward", "transition": Q},
    "warm-up": {"loss": {"name": "forward", "balance": 0.5}, "transition": Q, "warm_up": 1},
    "class weights": {"loss": "log", "weights": "inverse-frequency"},
    "effective number": {"loss": "mae", "weights": "effective-number"},
    "no weights": {"loss": "wcll", "weights": None},
    "target prior": {"loss": "log", "target_prior": "balanced"},
    "neighbors": {"loss": "forward", "transition": "popularity", "neighbors": 3},
    "standardize": {"loss": "forward", "standardize": True},
    "float64": {"loss": "wcll", "dtype": "float64"},
    "mlp with drop-out": {"loss": "log", "model": {**MLP, "dropout": 0.5}},
}


@golden(tolerance=1e-4)
def loss_predictions() -> Any:
    """Predict with a short seeded training of every loss, by a linear model and an MLP, and of many settings."""
    X, y = small_problem()
    found = {
        "losses": {
            loss: {name: predict(fit_briefly(X, y, loss=loss, model=model), X[:8]) for name, model in MODELS.items()}
            for loss in COMPLEMENTARY
        },
        "options": {json.dumps(loss): predict(fit_briefly(X, y, loss=loss), X[:8]) for loss in OPTIONS},
        "settings": {name: predict(fit_briefly(X, y, **settings), X[:8]) for name, settings in SETTINGS.items()},
    }
    ruled_out = np.random.default_rng(1).random((len(X), 4)) < 0.4
    ruled_out[np.arange(len(X)), ruled_out.argmin(axis=1)] = False  # some class stays possible
    ruled_out[~ruled_out.any(axis=1), 0] = True
    found["several labels"] = predict(fit_briefly(X, ruled_out, loss="log"), X[:8])
    weighted = ComplementaryClassifier("log", max_epochs=2, lr=0.02, batch_size=16, random_state=0, device="cpu")
    found["sample weights"] = predict(weighted.fit(X, y, sample_weight=np.linspace(0.5, 2, len(X))), X[:8])
    found["partial_fit"] = predict(weighted.partial_fit(X[:40], y[:40]), X[:8])
    return found


@golden(tolerance=1e-5)
def seeded_draws() -> Any:
    """Digest seeded draws of samples and labels: one draw more in a named stream would change all later results."""
    y = np.repeat(range(4), [60, 40, 30, 20])
    labels = make_complementary(y, Q, random_state=3)
    sets = [make_complementary(y, Q, n_labels=number, random_state=3) for number in (2, "random")]
    indices = {
        "labels": labels,
        **{f"sets {i}": np.packbits(mask) for i, mask in enumerate(sets)},
        "subsample": make_imbalance(y, [10, 20, 30, 5], random_state=3),
        "kept by label": select_by_marginal(labels, [0.4, 0.3, 0.2, 0.1], random_state=3),
        "resample over": resample(np.arange(150), y, strategy="over", random_state=3)[0],
        "resample under": resample(np.arange(150), y, strategy="under", random_state=3)[0],
    }
    arrays = {
        **{kind: make_transition(kind, np.bincount(y), random_state=3) for kind in ("biased-weak", "biased-strong")},
        "shifted": shifted_transition(Q, distance=0.2, random_state=3),
        "random weights": class_weights("wcll-random", labels, 4, random_state=3).values,
        "standard errors": FAMILIES["popularity"].estimate(np.bincount(labels), random_state=3).standard_error,
    }
    digests = {name: digest(" ".join(map(str, values.tolist()))) for name, values in indices.items()}
    return digests | {name: round_array(values) for name, values in arrays.items()}


def fit_default() -> Any:
    """Fit the default to a small problem, with a short search."""
    X, y = small_problem(160)
    return ComplementaryClassifier(budget=600, random_state=0, dtype="float64", device="cpu").fit(X, y)


def fit_penalised_mlp() -> Any:
    """Fit an MLP with most that a file can hold: names of classes, class weights, a target prior."""
    X, y = small_problem()
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    return fit_briefly(X, names, loss={"name": "wcll-penalty", "strength": 2.0}, model=MLP, target_prior="balanced")


@golden(tolerance=TRAINED)
def default_classifier() -> Any:
    """Fit the default: what it chooses and predicts, its report and page, and the keys of its file."""
    model, (X, y) = fit_default(), small_problem(160)
    model.save("new.safetensors")
    return {
        "chosen": {name: value for name, value in model.chosen_.items() if not isinstance(value, dict)},
        "candidates": [without_prose({**row, "model": str(row["model"])}) for row in model.selection_],
        "predictions": predict(model, X[:8]),
        "report": numbers(model.report()),
        "evaluate": numbers(str(model.evaluate(X, y))),
        "page": page_numbers(model_page(model), trained=True),
        "file": outline(header_of(Path("new.safetensors"))),
    }


# --- 3. stores and result files --------------------------------------------------------------------------------------


def store_contents(store: Path) -> dict[str, Any]:
    """Return what a store holds: a digest of its rows as exact text, and its lists."""
    return {
        "rows": digest(exported_store(store, "rows.json")),
        "figures": digest(json.dumps(csv_lines(exported_store(store, "figures.csv")))),
        "list": numbers(run_command("results", "--store", store)),
        "json": digest(json.dumps(round_floats(json.loads(run_command("results", "--store", store, "--json"))))),
    }


def exported_store(store: Path, name: str) -> bytes:
    """Export a store to a file and return its content."""
    run_command("results", "export", name, "--store", store, "--force")
    return Path(name).read_bytes()


def old_store() -> Path:
    """Copy the store of an earlier version, because opening it may bring its schema up to date."""
    for path in OLD.iterdir():
        shutil.copy(path, path.name)
    return Path("old.sqlite")


def new_store() -> Path:
    """Import the committed rows into a new store."""
    run_command("results", "import", INPUTS / "results.json.gz", "--store", "new.sqlite")
    return Path("new.sqlite")


@golden()
def stored_results() -> Any:
    """Open an old store, and import rows: they come out as they went in."""
    stored = gzip.decompress((INPUTS / "results.json.gz").read_bytes())
    found = {"old": store_contents(old_store()), "imported": store_contents(new_store())}
    assert exported_store(Path("new.sqlite"), "again.json") == stored
    return found


@golden()
def suite_reports() -> Any:
    """Report stored suites as text, page and files."""
    suites = {"old.toml": old_store(), str(INPUTS / "suite.toml"): new_store(), str(INPUTS / "draws.toml"): new_store()}
    suites["demo"] = made_up_store(load_suite("demo"), 3)
    return {Path(suite).stem: suite_report(suite, store) for suite, store in suites.items()}


def suite_report(suite: str, store: Path) -> dict[str, Any]:
    """Return the numbers of all forms of a suite's report."""
    words: list[Any] = ["report", suite, "--store", store, *(["--trials", "3"] if suite == "demo" else [])]
    for ending in ("html", "md", "tex", "csv"):
        run_command(*words, "--out", f"report.{ending}", "--force")
    return {
        "text": numbers(run_command(*words)),
        "page": page_numbers(Path("report.html").read_text()),
        "md": numbers(Path("report.md").read_text()),
        "tex": numbers(Path("report.tex").read_text()),
        "csv": csv_lines(Path("report.csv").read_bytes()),
    }


def csv_lines(content: bytes) -> list[str]:
    """Return the lines of a CSV file, with numbers of nine digits: the last ones may depend on libraries."""
    rows = csv.reader(io.StringIO(content.decode()))
    return [", ".join(str(cell) for cell in round_floats(parse_cells(row))) for row in rows]


def round_floats(plain: Any) -> Any:
    """Round the numbers of JSON to nine digits."""
    if isinstance(plain, dict):
        return {name: round_floats(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [round_floats(value) for value in plain]
    return float(f"{plain:.9g}") if isinstance(plain, float) else plain


def made_up_row(trial: Trial) -> dict[str, Any]:
    """Return a finished run whose numbers depend on its key alone; no two of its epochs are equally accurate."""
    draw, k = random.Random(trial.key), 3 if trial.dataset == "ddsm" else 10
    by_accuracy: dict[int, list[int]] = {}
    while len(by_accuracy) < trial.epochs:
        counts = [draw.randrange(TESTED + 1) for _ in range(k)]
        by_accuracy.setdefault(sum(counts), counts)
    compared, correct = list(checkpoints(trial.epochs)), [*by_accuracy.values()]
    tables = [confusion(correct[epoch - 1]) for epoch in compared]
    everywhere = trial.config().get("evaluate") is None
    scores = [-1 - draw.random() for _ in range(trial.epochs)]
    seen = [everywhere or epoch in compared for epoch in range(1, trial.epochs + 1)]
    likelihood = [score if one else None for score, one in zip(scores, seen, strict=True)]
    rare = trial.minority or ([1, 2] if trial.shares else [])
    judge = {"transition": [[0.0 if i == j else 1 / (k - 1) for j in range(k)] for i in range(k)], "prior": None}
    history = {
        **{"sizes": [30 if i in rare else 60 for i in range(k)], "train_labels": [50] * k, "test_sizes": [TESTED] * k},
        **{"judge": {**judge, "transition_source": "assumed", "prior_source": "estimated", "totals": [50.0] * k}},
        **{"checkpoints": compared, "confusion": tables, "held_out": tables},
        **{"correct": [row if one else None for row, one in zip(correct, seen, strict=True)], "train_loss": scores},
        **{"log_likelihood": likelihood, "log_likelihood_se": likelihood},
    }
    made = {"seconds": 1.5, "device": "made up", "data": {"fingerprint": "f", "official": True, "stamp": ""}}
    reached = {"accuracy": sum(correct[-1]) / (TESTED * k)}
    return {"key": trial.key, "config": trial.config(), "metrics": reached, "history": history, "provenance": made}


def confusion(correct: list[int]) -> list[list[int]]:
    """Return a confusion table whose mistakes are all in the next class."""
    k = len(correct)
    return [
        [right if i == j else TESTED - right if j == (i + 1) % k else 0 for j in range(k)]
        for i, right in enumerate(correct)
    ]


def made_up_store(suite: Suite, trials: int) -> Path:
    """Return a store with a made-up row for every run of a suite."""
    wanted = {trial.key: trial for trial in suite.all_trials(range(trials))}
    Path("made-up.json").write_text(json.dumps([made_up_row(trial) for trial in wanted.values()]))
    run_command("results", "import", "made-up.json", "--store", f"{suite.name}.sqlite")
    return Path(f"{suite.name}.sqlite")


@golden()
def paper_tables() -> Any:
    """Print parts of the paper and write their result files, from finished runs."""
    found = {}
    for name, trials in {"table4": 1, "figure3": 2, "table7": 2}.items():
        store = made_up_store(load_suite(name), trials)
        words: list[Any] = ["--store", store, "--trials", str(trials), "--results", "results", "--device", "cpu"]
        text, written = run_command("paper", "run", name, *words), Path("results", f"{name}.json").read_text()
        keys_of_file = outline(json.loads(written)["made"])
        written = written.replace(json.loads(written)["made"]["command"], "")  # words, not numbers
        found[name] = {"text": numbers(text), "file": digest(written), "keys": keys_of_file}
    return found


@golden(needs=RESULTS)
def paper_report() -> Any:
    """Make the report on all results of the paper."""
    run_command("paper", "report", "--results", RESULTS, "--out", "paper.html")
    return page_numbers(Path("paper.html").read_text())


def test_runs_are_what_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train two small suites: draws of data and labels, all counts, and scores within a tolerance."""
    monkeypatch.chdir(tmp_path)
    stored = json.loads(gzip.decompress((INPUTS / "results.json.gz").read_bytes()))
    for suite in ("suite.toml", "draws.toml"):
        run_command("run", INPUTS / suite, "--store", "fresh.sqlite", "--device", "cpu")
    found = {row["key"]: row for row in json.loads(exported_store(Path("fresh.sqlite"), "rows.json"))}
    assert [row["key"] for row in stored] == [*found]
    for row in stored:
        parts = ("config", "metrics", "history")
        fresh = found[row["key"]]
        different = differences({name: fresh[name] for name in parts}, {name: row[name] for name in parts}, 1e-6)
        assert not [*different], f"{row['key']}: {row['config']['loss']}"
        assert set(fresh["provenance"]) == set(row["provenance"])


# --- 4. models -------------------------------------------------------------------------------------------------------


@golden(tolerance=1e-5)
def saved_classifiers() -> Any:
    """Load classifiers that an earlier version saved."""
    found = {}
    for name in ("default", "penalised"):
        model = ComplementaryClassifier.load(INPUTS / f"{name}.safetensors")
        found[name] = {
            "classes": model.classes_.tolist(),
            "predictions": predict(model, small_problem()[0][:8]),
            "chosen": without_prose(getattr(model, "chosen_", None)),
            "epochs": model.n_iter_,
            "losses": round_array([row["loss"] for row in model.history_]),
            "transition": round_array(model.transition_),
            "report": numbers(model.report()),
        }
    return found


def use_model_folder(folder: Path) -> dict[str, Any]:
    """Predict and evaluate with a model folder, by the command line and in Python."""
    data = INPUTS / "test.csv"
    run_command("predict", folder, data, "-o", "predictions.csv", "--force")
    model = ComplementaryClassifier.load(folder / "model.safetensors")
    features = np.linspace(-1, 1, 3 * model.n_features_in_).reshape(3, -1)
    truth = ["--true-label", "true_label"]
    return {
        "heads": [*rows_of(Path("predictions.csv"))[0]],
        "predictions": [parse_cells([*row.values()]) for row in rows_of(Path("predictions.csv"))[:12]],
        "in Python": predict(model, features.astype(np.float32)),
        "evaluate": numbers(run_command("evaluate", folder, data)),
        "evaluate, true labels": numbers(run_command("evaluate", folder, data, *truth)),
        "json": without_prose(json.loads(run_command("evaluate", folder, data, "--json"))),
        "json, true labels": without_prose(json.loads(run_command("evaluate", folder, data, *truth, "--json"))),
    }


def parse_cells(cells: list[str]) -> list[Any]:
    """Return cells of a table, numbers as numbers."""
    return [float(cell) if NUMBER.fullmatch(cell) else cell for cell in cells]


@golden(tolerance=1e-5)
def saved_model_folder() -> Any:
    """Predict and evaluate with a model folder that an earlier version wrote."""
    return use_model_folder(INPUTS / "model")


@golden(tolerance=TRAINED)
def new_model_folder() -> Any:
    """Train a model folder from a table: its files, the keys of its JSON, the numbers of its page and card."""
    shutil.copy(INPUTS / "train.csv", "train.csv")
    words = ["--budget", "600", "--model", "linear", "--device", "cpu", "--out", "model"]
    text, folder = run_command("train", "train.csv", *words), Path("model")
    history = rows_of(folder / "history.csv")
    plain = {name: json.loads((folder / name).read_text()) for name in ("card.json", "preprocessing.json")}
    return {
        "files": sorted(path.name for path in folder.iterdir()),
        "keys": {name: outline(content) for name, content in plain.items()},
        "header": outline(header_of(folder / "model.safetensors")),
        "history": {"heads": [*history[0]], "losses": [float(row["loss"]) for row in history]},
        "text": numbers(text),
        "card": numbers((folder / "card.md").read_text()),
        "page": page_numbers((folder / "page.html").read_text(), trained=True),
        "card.json": without_prose(plain["card.json"]),
        **use_model_folder(folder),
    }


# --- 5. other numbers ------------------------------------------------------------------------------------------------


@golden(tolerance=1e-4)
def label_commands() -> Any:
    """Describe labels of tables, one per sample and repeated, and simulate and import labels."""
    annotations = (INPUTS / "annotations.csv").read_text().splitlines()
    Path("few.csv").write_text("\n".join(annotations[:25]))
    one = ["--not-label", "not_label"]
    repeated = [*one, "--item", "item", "--annotator", "annotator"]
    tables: dict[str, list[Any]] = {
        "one label": [INPUTS / "train.csv", *one],
        "declared classes": [INPUTS / "test.csv", *one, "--classes", "setosa,virginica,versicolor,lily"],
        "repeated": [INPUTS / "annotations.csv", *repeated],
        "few repeated": ["few.csv", *repeated],
    }
    found: dict[str, Any] = {name: label_description(words) for name, words in tables.items()}
    shutil.copy(INPUTS / "test.csv", "test.csv")
    words = ["simulate", "test.csv", "--column", "true_label", "--seed", "4", "--force"]
    options = [[], ["--transition", "biased-strong"]]
    for more in [*options, ["--n-labels", "random"]]:
        text = run_command(*words, *more, "--out", "drawn.csv")
        plain = json.loads(run_command(*words, *more, "--out", "drawn.csv", "--json"))
        drawn = digest(Path("drawn.csv").read_bytes())
        found[" ".join(["simulate", *more])] = {"text": numbers(text), "json": without_prose(plain), "file": drawn}
    lines = [{"id": i, "label": name, "answer": "reject", "_input_hash": i} for i, name in enumerate("abcab")]
    Path("tool.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found["import"] = numbers(run_command("labels", "import", "tool.jsonl", "-o", "imported.csv"))
    found["imported"] = [",".join(row.values()) for row in rows_of(Path("imported.csv"))]
    return found


def label_description(words: list[Any]) -> dict[str, Any]:
    """Return the numbers of all forms of a description of labels."""
    plain = json.loads(run_command("labels", "describe", *words, "--json"))
    text = run_command("labels", "describe", *words, "--out", "labels.html", "--force")
    page = page_numbers(Path("labels.html").read_text(), trained=True)
    return {"text": numbers(text), "json": without_prose({**plain, "file": ""}), "page": page}


@golden(tolerance=1e-6)
def bound_commands() -> Any:
    """Print the paper's bounds: term by term, for a suite, over N, and on the counterexample."""
    cases = {
        "usual": "--gap 0.5",
        "own": "--classes 5 --p 3 --n 2000 --norm 2 --gap 1",
        "network": "--layer-norm 2 --layer-norm 3 --radius 1.5 --delta 0.1",
        "suite": "--suite digits --norm 2",
    }
    found: dict[str, Any] = {}
    for name, words in cases.items():
        plain = json.loads(run_command("bound", *words.split(), "--json"))
        found[name] = {"text": numbers(run_command("bound", *words.split())), "json": without_prose(plain)}
    found["counterexample"] = numbers(run_command("bound", "counterexample", "--draws", "1"))
    return found


@golden()
def data_and_plan() -> Any:
    """Count the samples of the packaged data, and the groups of runs that train together."""
    data = json.loads(run_command("data", "--json"))["datasets"]
    plan = run_command("run", INPUTS / "suite.toml", "--store", "none.sqlite", "--dry-run", "--device", "cpu")
    (digits,) = (row for row in data if row["name"] == "digits")
    return {
        "names": [row["name"] for row in data],
        "digits": [digits[name] for name in ("train", "test", "official")],
        "plan": numbers("\n".join(plan.splitlines()[:2])),
    }


# --- the test, and how to rewrite what it expects ----------------------------------------------------------------------


@pytest.mark.parametrize("name", TESTS)
def test_golden(name: str) -> None:
    """Compare a result with its golden file."""
    test = TESTS[name]
    if not test.needs.exists():
        pytest.skip(f"{test.needs.name} is not next to the package")
    wanted = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    found = [*differences(result_of(test), wanted, test.tolerance)]
    assert not found, "\n".join([f"{len(found)} differences from tests/golden/{name}.json", *found[:20]])


def test_every_golden_file_is_compared() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(TESTS)


def format_json(plain: Any, indent: str = "") -> str:
    """Write JSON with short lists and tables on one line."""
    text, inner = json.dumps(plain, ensure_ascii=False), f"{indent} "
    if len(text) + len(indent) <= 110 or not isinstance(plain, dict | list):
        return text
    if isinstance(plain, list):
        return "[\n" + ",\n".join(inner + format_json(value, inner) for value in plain) + f"\n{indent}]"
    parts = (f"{inner}{json.dumps(name)}: {format_json(value, inner)}" for name, value in plain.items())
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def main(words: list[str]) -> None:
    """Rewrite golden files."""
    if words[:1] != ["--write"] or not set(words[1:]) <= set(TESTS):
        sys.exit(f"usage: python tests/test_golden.py --write [{' | '.join(TESTS)}] ...")
    os.environ.pop("FORCE_COLOR", None)
    torch.set_num_threads(1)
    for name in words[1:] or TESTS:
        (GOLDEN / f"{name}.json").write_text(format_json(result_of(TESTS[name])) + "\n", encoding="utf-8")
        print(f"tests/golden/{name}.json")


if __name__ == "__main__":
    main(sys.argv[1:])

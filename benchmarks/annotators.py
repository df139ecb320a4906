"""What is believed of annotators, and what it is worth: suites with the labels, or the Q, of people and of a model.

    python benchmarks/annotators.py prepare RAW --data DATA     files that the suites read, into DATA/annotators
    WCLL_DATA=DATA wcll run benchmarks/annotators/one.toml --store S.sqlite       (several, candidates, acl)
    WCLL_DATA=DATA python benchmarks/annotators.py summary S.sqlite one several
    python benchmarks/annotators.py keep S.sqlite acl-strong                      a result file, for docs/beyond.md

RAW holds what its owners publish: ``human-q.npz`` (clcifar10, clmin10: Q of people, as printed), ``acl-cifar10.npz``
(labels: nine of every training image of CIFAR-10, by a vision-language model), ``birdsong.npz`` and ``lost.npz``
(x, candidates, y). DATA has the official files of MNIST and CIFAR-10. Suites ``one`` and ``several`` draw labels from
such a Q, ``candidates`` and ``acl`` take the labels that were given. The summary: how much of the gap between
popularity and the true Q is closed without a true label, pooled over columns of a suite with as many
labels a sample,

    sum(row - popularity) / sum(true Q - popularity) ,

with a 95 % interval (trials of every column drawn again), and which cells are significantly below popularity (paired,
Holm over all cells of a suite).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wcll.datasets import Dataset, load_dataset
from wcll.experiments import Store, load_suite
from wcll.paper.comparison import write_part
from wcll.paper.protocols import Growing
from wcll.report.result_tables import SIGNIFICANCE, Table, build_table, holm, paired_p_value

FOLDER = Path(__file__).parent / "annotators"
BASE, LIMIT, ROWS = "popularity", "true Q", ("with the model", "repeated labels")
DRAWS = 2000
IMAGES_PER_CLASS, TEST_PER_CLASS = 2500, 500  #: of CIFAR-10, the first of each class; None: all
LABELS = (1, 3, 9)  #: of each such image, the first of the nine

Figures = dict[str, np.ndarray]  #: by column, accuracy in percent, one a trial


def prepare(raw: Path, data: Path) -> None:
    """Write what the suites read."""
    folder = data / "annotators"
    folder.mkdir(parents=True, exist_ok=True)
    people = np.load(raw / "human-q.npz")
    np.savez(folder / "human-q.npz", **{name: people[name] for name in ("clcifar10", "clmin10")})
    labels = np.load(raw / "acl-cifar10.npz")["labels"].astype(np.int64)
    cifar10 = load_dataset("cifar10", data)
    y = cifar10.train.y
    counts = np.zeros((10, 10))
    np.add.at(counts, (np.repeat(y, labels.shape[1]), labels.ravel()), 1)
    np.save(folder / "acl-cifar10-q.npy", counts / counts.sum(axis=1, keepdims=True))
    prepare_images(folder, cifar10, labels)
    for name in ("birdsong", "lost"):
        found = np.load(raw / f"{name}.npz")
        occur = np.flatnonzero(
            found["candidates"].any(axis=0)
            & (np.bincount(found["y"], minlength=99) > 0)[: found["candidates"].shape[1]]
        )
        number = np.full(found["candidates"].shape[1], -1)
        number[occur] = np.arange(len(occur))
        x = found["x"] / np.maximum(np.abs(found["x"]).max(axis=0), 1e-9)
        classes = [str(k) for k in occur]
        np.savez(
            folder / f"{name}.npz", x=x, ybar=~found["candidates"][:, occur], y=number[found["y"]], classes=classes
        )


def prepare_images(folder: Path, cifar10: Dataset, labels: np.ndarray) -> None:
    """Images with the labels that they were given; true ones are for the true Q, pairs and evaluation."""
    assert cifar10.test is not None
    train, test = (
        split.take(first_of_each(split.y, most))
        for split, most in ((cifar10.train, IMAGES_PER_CLASS), (cifar10.test, TEST_PER_CLASS))
    )
    shared = {"x": train.x, "y": train.y, "x_test": test.x, "y_test": test.y, "classes": list(cifar10.classes)}
    given = labels[first_of_each(cifar10.train.y, IMAGES_PER_CLASS)]
    for m in LABELS:
        np.savez(folder / f"acl-cifar10-{m}.npz", ybar=given[:, 0] if m == 1 else given[:, :m], **shared)


def first_of_each(y: np.ndarray, most: int | None) -> np.ndarray:
    """Rows of the first samples of every class, in order."""
    return np.sort(np.concatenate([np.flatnonzero(y == k)[:most] for k in np.unique(y)]))


def figures(table: Table, row: str, columns: list[str]) -> Figures:
    """A row's accuracies."""
    found = {column: table.cell(row, column, "accuracy").values for column in columns}
    return {column: 100 * np.array([values[seed] for seed in sorted(values)]) for column, values in found.items()}


def pooled(row: Figures, base: Figures, limit: Figures) -> tuple[float, float, float]:
    """The share of the gap that is closed, and its interval; NaN where there is no gap."""
    gains, gaps = ([a[column] - base[column] for column in base] for a in (row, limit))
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(DRAWS):
        which = [rng.integers(0, len(gap), len(gap)) for gap in gaps]
        some = [sum(values[i].sum() for values, i in zip(part, which, strict=True)) for part in (gains, gaps)]
        drawn.append(_share(*some))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return _share(sum(map(np.sum, gains)), sum(map(np.sum, gaps))), float(low), float(high)


def _share(gain: float, gap: float) -> float:
    return float(gain / gap) if gap else float("nan")


def below(table: Table, rows: list[str], columns: list[str]) -> list[str]:
    """Cells that are significantly below popularity."""
    cells = [(row, column) for row in rows for column in columns]
    values = {place: table.cell(*place, "accuracy") for place in [*cells, *((BASE, column) for column in columns)]}
    p_values = [paired_p_value(values[BASE, column].values, values[row, column].values) for row, column in cells]
    known = [(place, p) for place, p in zip(cells, p_values, strict=True) if p is not None]
    adjusted = holm([p for _, p in known])
    return [
        f"{row}, {column}"
        for ((row, column), _), p in zip(known, adjusted, strict=True)
        if p < SIGNIFICANCE and values[row, column].mean < values[BASE, column].mean
    ]


def by_labels(columns: list[str]) -> Mapping[str, list[str]]:
    """Columns with as many labels a sample."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        several = re.search(r"\d+ labels", column)
        groups.setdefault(several[0] if several else "one label", []).append(column)
    return groups


def summary(store: Path, names: list[str]) -> None:
    """Print every table's figures and what they mean."""
    for name in names:
        suite = load_suite(str(FOLDER / f"{name}.toml"))
        with Store(store) as opened:
            rows = {row.key: row for row in opened.rows([trial.key for trial in suite.all_trials()])}
        columns, titles = [column.title for column in suite.columns], [row.title for row in suite.rows]
        for spec in suite.tables:
            table = build_table(suite, spec, rows, range(suite.trials))
            print(f"\n{suite.title}. {spec.title}")
            for title in titles:
                means = [table.cell(title, column, "accuracy") for column in columns]
                print(
                    f"  {title:24}"
                    + "  ".join(f"{column}: {cell.text()}" for column, cell in zip(columns, means, strict=True))
                )
            if name == "candidates":
                continue
            for labels, some in by_labels(columns).items():
                for row in (row for row in ROWS if row in titles):
                    parts = [figures(table, one, some) for one in (row, BASE, LIMIT)]
                    share, low, high = pooled(*parts)
                    gap = np.mean([(parts[2][column] - parts[1][column]).mean() for column in some])
                    closed = f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
                    print(f"  {labels}: {row}: {closed} of the gap, {gap:.1f} points")
            lost = below(table, [row for row in ROWS if row in titles], columns)
            print(f"  significantly below popularity: {'; '.join(lost) or 'none'}")


def keep(store: Path, name: str, folder: Path) -> None:
    """Write a result file of what a store has of a suite, with what the file has already."""
    suite = load_suite(str(FOLDER / f"{name}.toml"))
    with Store(store) as opened:
        rows = {row.key: row for row in opened.rows([trial.key for trial in suite.all_trials()])}
    for part in Growing([suite], folder).add(rows, f"wcll run benchmarks/annotators/{name}.toml"):
        write_part(part, folder / f"{name}.json", partial=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    prepared = commands.add_parser("prepare")
    prepared.add_argument("raw", type=Path)
    prepared.add_argument("--data", type=Path, required=True)
    summed = commands.add_parser("summary")
    summed.add_argument("store", type=Path)
    summed.add_argument("suites", nargs="+")
    kept = commands.add_parser("keep")
    kept.add_argument("store", type=Path)
    kept.add_argument("suite")
    kept.add_argument("--into", type=Path, default=Path("results/beyond"))
    asked = parser.parse_args()
    if asked.command == "prepare":
        prepare(asked.raw, asked.data)
    elif asked.command == "keep":
        keep(asked.store, asked.suite, asked.into)
    else:
        summary(asked.store, asked.suites)


if __name__ == "__main__":
    main()

"""Whether the default, told nothing, is as good as the best constant choice: 24 worlds of labels.

    export WCLL_DATA=DATA                                      (MNIST, and annotators/human-q.npz)
    python benchmarks/worlds.py auto RUNS.jsonl --part 1/16    (... 16/16: as many processes, one thread each)
    python benchmarks/worlds.py constant RUNS.jsonl --device cuda
    python benchmarks/worlds.py chosen RUNS.jsonl --store S.sqlite --device cuda
    python benchmarks/worlds.py summary RUNS.jsonl [--with EARLIER.jsonl]
    python benchmarks/worlds.py compare RUNS.jsonl --with EARLIER.jsonl    (two versions of the default)

Worlds: digits (45 images a class are tested, at most 115 of a class are trained on) and MNIST (the official test set,
at most 2000), each with three class balances (all alike; class 0 with a fifth of the images; classes 0, 2, 4, 6 and 8
with a fifth) and four ways to draw one label an image: uniformly; by the inverse-size selector (where classes are
balanced, that of a rare class 0); biased, where every class has its own habits (rows of Q from Dirichlet's distribution
with 1.5 throughout, drawn once, none on the diagonal); and drawn from the Q of human annotators (CLCIFAR10). A further
way is beside the 24 (``--beside``): some classes are popular whatever the true one is.

Everyone gets the same images and labels; as many as a ninth of those that are trained on come on top, to choose by.
Constant choices: nine methods, each as a linear model and as a network, each at two rates, trained on all labels to
the last epoch (``constant``); or with rate and epoch chosen by the labels on top (``chosen``). All of them train for 60
epochs, or 1500 steps if that is more. (LOG is nine times forward correction told uniform labels, but for a constant:
with Adam that is a smaller decay.)

The summary: ``auto`` is within reach of the best constant choice, picked by TEST, if it is at most 3 points or 2 paired
standard errors below; and by how much it is above or below WCLL, the best of both readings and models by TEST with rate
and epoch chosen without a true label (paired, Holm over the worlds).
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from default_runs import (
    AUTO,
    SEEDS,
    Drawn,
    Line,
    append,
    by_seed,
    coverage,
    draw,
    have,
    new,
    part_of,
    read,
    run_default,
)

import wcll
from wcll.datasets import load_dataset
from wcll.experiments.suite import Axis, Suite, TableSpec
from wcll.experiments.task import loss_context
from wcll.labels.transition import normalised, transition_from_pi
from wcll.losses import LOSSES, Targets
from wcll.report.result_tables import SIGNIFICANCE, build_table, holm, paired_p_value
from wcll.training import RunGroup, RunLoss, Training, dtype_and_device, make_engine, train

PART = "worlds"
CLASSES, BATCH, EPOCHS, STEPS, DECAY = 10, 256, 60, 1500, 1e-4
DATASETS: dict[str, dict[str, Any]] = {
    "digits": {"n_majority": 115, "test_per_class": 45},
    "mnist": {"n_majority": 2000},
}
BALANCES: dict[str, dict[str, Any]] = {
    "balanced": {},
    "p = 5, class 0": {"imbalance": "eq6", "p": 5, "minority": [0]},
    "p = 5, classes 0, 2, 4, 6, 8": {"imbalance": "eq6", "p": 5, "minority": [0, 2, 4, 6, 8]},
}
GENERATORS = ("uniform", "inverse-size", "biased", "people")
FURTHER = "popular"  #: beside the 24
HABITS = 1.5  #: Dirichlet's parameter: the lower, the stronger the habits

METHODS: dict[str, dict[str, Any]] = {
    "wcll": {"loss": "wcll"},
    "wcll, Eq. 9": {"loss": {"name": "wcll", "reading": "eq9"}},
    "log": {"loss": "log"},
    "exp": {"loss": "exp"},
    "l-w": {"loss": "l-w"},
    "l-uw": {"loss": "l-uw"},
    "forward, uniform": {"loss": "forward", "assume": "uniform"},
    "forward, popularity": {"loss": "forward", "assume": "popularity"},
    "forward, inverse-size": {"loss": "forward", "assume": "inverse-size"},
}
MODELS = ("linear", "mlp")
CONSTANT, CHOSEN = (5e-4, 2e-3), (5e-4, 2e-3, 1e-2)  #: rates
NEAR, ERRORS = 3.0, 2.0  #: points, or paired standard errors, that are near enough


def biased() -> np.ndarray:
    """Q of annotators with habits of their own for every class; the same whatever the seed."""
    return normalised(np.random.default_rng(7).dirichlet(np.full(CLASSES, HABITS), CLASSES) * (1 - np.eye(CLASSES)))


def popular() -> np.ndarray:
    """Q of annotators who name some classes more often than others, whatever the true one is."""
    return transition_from_pi(np.random.default_rng(7).dirichlet(np.full(CLASSES, HABITS)))


def labels(generator: str, balance: str) -> dict[str, Any]:
    """How labels are drawn, as a suite says it."""
    matrices: dict[str, Any] = {"biased": biased, "popular": popular}
    if generator in matrices:
        return {"labels": "matrix", "matrix": matrices[generator]().tolist()}
    if generator == "people":
        return {"labels": "matrix", "matrix": "annotators/human-q.npz:clcifar10"}
    if generator == "inverse-size" and balance == "balanced":  # of equal sizes it would be uniform once more
        return {"labels": generator, **BALANCES["p = 5, class 0"], "imbalance_of": "selector"}
    return {"labels": generator}


def worlds(generators: Sequence[str] = GENERATORS) -> list[Axis]:
    """Every setting; those that take long first."""
    return [
        Axis(
            f"{dataset}, {generator}, {balance}",
            {
                "dataset": dataset,
                **DATASETS[dataset],
                **BALANCES[balance],
                **labels(generator, balance),
                "epochs": epochs_of(_trained_on(dataset, balance)),
            },
        )
        for dataset, balance, generator in product(reversed(DATASETS), BALANCES, generators)
    ]


def _trained_on(dataset: str, balance: str) -> int:
    rare, most = len(BALANCES[balance].get("minority", ())), DATASETS[dataset]["n_majority"]
    return int((CLASSES - rare) * most + rare * most / BALANCES[balance].get("p", 1))


def epochs_of(n: int) -> int:
    """60, or as many as 1500 steps are."""
    return max(EPOCHS, ceil(STEPS / max(n // BATCH, 1)))


@cache
def suite() -> Suite:
    """All worlds and constant choices, as the package runs them."""
    settings = {"judge": "own", "batch_size": BATCH, "weight_decay": DECAY, "evaluate": "checkpoints"}
    return Suite(
        name="worlds",
        title="Worlds of labels",
        about="",
        trials=len(SEEDS),
        settings=settings,
        grid={"lr": list(CHOSEN)},
        columns=tuple(worlds((*GENERATORS, FURTHER))),
        rows=tuple(
            Axis(f"{name}, {model}", {**METHODS[name], "model": model}) for model, name in product(MODELS, METHODS)
        ),
        tables=(TableSpec("chosen", select="label-free"),),
    )


def columns(datasets: Sequence[str], beside: bool) -> list[Axis]:
    """The worlds that are asked for."""
    generators = (*GENERATORS, FURTHER) if beside else GENERATORS
    return [one for one in worlds(generators) if one.settings["dataset"] in datasets]


def work(asked: Sequence[Axis], seeds: Sequence[int], part: str) -> Sequence[tuple[Axis, int]]:
    """The draws that a process has to do with; dear ones come first, so that every part has as many of them."""
    return part_of([(column, seed) for column in asked for seed in seeds], part)


def draw_of(column: Axis, seed: int) -> Drawn:
    """The images and labels of a world."""
    all_of_it = suite()
    return draw(all_of_it.candidates(column, all_of_it.rows[0], seed)[0], load_dataset(column.settings["dataset"]))


def of_auto(todo: Sequence[tuple[Axis, int]], device: str, **told: Any) -> Iterator[Line]:
    """The default, told nothing."""
    for column, seed in todo:
        found = run_default(draw_of(column, seed), seed, device, **told)
        yield {"part": PART, "setting": column.title, "seed": seed, **found}


def of_constant(todo: Sequence[tuple[Axis, int]], device: str) -> Iterator[Line]:
    """Constant choices on all labels: every method at both rates in one stack, and their last epochs."""
    for column, seed in todo:
        drawn = draw_of(column, seed)
        for model in MODELS:
            rows = [row for row in suite().rows if row.settings["model"] == model]
            accuracies = last_epochs(drawn, column, rows, seed, device)
            for (row, rate), accuracy in zip(product(rows, CONSTANT), accuracies, strict=True):
                method = f"{row.title}, {rate:g}"
                yield {"part": PART, "setting": column.title, "seed": seed, "method": method, "accuracy": accuracy}


def last_epochs(drawn: Drawn, column: Axis, rows: Sequence[Axis], seed: int, device: str) -> list[float]:
    """Accuracies in percent, of every row at every constant rate."""
    all_of_it, n, losses = suite(), len(CONSTANT), []
    for i, row in enumerate(rows):
        trial = all_of_it.candidates(column, row, seed)[0]
        told = loss_context(trial, drawn.ybar, drawn.declared)
        losses.append(RunLoss(LOSSES[trial.loss], trial.loss_options, told, n * i, n * (i + 1)))
    epochs = epochs_of(len(drawn.ybar))
    training = Training(
        rows[0].settings["model"], CLASSES, 1.0, BATCH, DECAY, *dtype_and_device("float32", device), epochs
    )
    targets = Targets.of(torch.from_numpy(drawn.ybar), CLASSES)
    group = RunGroup(torch.from_numpy(drawn.x), targets, seed, [*CONSTANT] * len(rows), losses)
    engine = make_engine([group], training)
    train(engine, epochs, [])
    predicted = engine.predict(0, engine.prepare(torch.from_numpy(drawn.x_test))).argmax(-1).cpu().numpy()
    return (100 * (predicted == drawn.y_test).mean(axis=-1)).tolist()


def of_chosen(asked: Sequence[Axis], seeds: Sequence[int], store: Path, **how: Any) -> Iterator[Line]:
    """Every method with its rate and epoch chosen without a true label."""
    wanted = replace(suite(), columns=tuple(asked))
    rows = wcll.run(wanted, store=store, trials=list(seeds), say=print, **how)
    table = build_table(wanted, wanted.tables[0], rows, seeds)
    for column, row in product(wanted.columns, wanted.rows):
        for seed, value in table.cell(row.title, column.title, "accuracy").values.items():
            method = f"{row.title}, chosen"
            yield {"part": PART, "setting": column.title, "seed": seed, "method": method, "accuracy": 100 * value}


Values = Mapping[int, float]  #: accuracies in percent, by seed


def difference(one: Values, other: Values) -> tuple[float, float]:
    """By how much one is above another over the seeds that both have, and the paired standard error."""
    shared = sorted(set(one) & set(other))
    found = np.array([one[seed] - other[seed] for seed in shared])
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    return float(found.mean()), float(error)


def within(one: Values, best: Values) -> bool:
    """At most 3 points or 2 paired standard errors below the best."""
    mean, error = difference(one, best)
    return mean >= -max(NEAR, ERRORS * error)


def mean_of(values: Values) -> float:
    """Of all seeds."""
    return float(np.mean(list(values.values())))


def best_of(methods: Mapping[str, Values]) -> str:
    """The highest mean; of those with the most seeds, as fewer would be others."""
    most = max(map(len, methods.values()))
    return max((name for name in methods if len(methods[name]) == most), key=lambda name: mean_of(methods[name]))


def is_wcll(method: str) -> bool:
    """Whether it is WCLL with its rate chosen without a true label."""
    return method.startswith("wcll") and method.endswith("chosen")


def summary(lines: Sequence[Line], titles: Sequence[str]) -> Iterator[str]:
    """A line a world, then what every constant choice is worth in all of them."""
    found = by_seed(line for line in lines if line["part"] == PART)
    whole = [title for title in titles if AUTO in found[title] and any(map(is_wcll, found[title]))]
    if not whole:
        yield f"0 of {len(titles)} worlds have been run"
        return
    rivals = {title: {name: v for name, v in found[title].items() if name != AUTO} for title in whole}
    best = {title: best_of(rivals[title]) for title in whole}
    lost = 0
    for title, p_value in zip(whole, against_wcll(found, whole), strict=True):
        auto, own = found[title][AUTO], best_of({name: v for name, v in rivals[title].items() if is_wcll(name)})
        behind, error = difference(auto, rivals[title][best[title]])
        above, _ = difference(auto, rivals[title][own])
        lost += above < 0 and p_value < SIGNIFICANCE
        spread = f" ± {np.std(list(auto.values()), ddof=1):.1f}" if len(auto) > 1 else ""
        yield (
            f"{title:52} {mean_of(auto):.1f}{spread} (n={len(auto)})  "
            f"best {mean_of(rivals[title][best[title]]):.1f} ({best[title]}): {behind:+.1f}, s.e. {error:.1f}, "
            f"{'within' if within(auto, rivals[title][best[title]]) else 'NOT WITHIN'}; "
            f"{own}: {above:+.1f}, p = {p_value:.2g}"
        )
    yield f"significantly below WCLL (Holm): {lost} of {len(whole)}"
    table = [(name, *_standing(name, found, rivals, best, whole)) for name in (AUTO, *rivals_of(rivals))]
    often = {name: count for name, count, *_ in table}
    equal = sorted(name for name in rivals_of(rivals) if often[name] >= often[AUTO])
    yield f"{AUTO}: within in {often[AUTO]} of {len(whole)}; constant choices as often: {'; '.join(equal) or 'none'}"
    yield f"every choice: how often within {NEAR:g} points or {ERRORS:g} standard errors of the best; mean, least"
    for name, count, of, mean, least in sorted(table, key=lambda row: (-row[1], -row[3])):
        yield f"  {name:40} {count} of {of}  {mean:.1f}  {least:+.1f} from the best where it is worst"


def rivals_of(rivals: Mapping[str, Mapping[str, Values]]) -> set[str]:
    """The constant choices of all worlds."""
    return {name for methods in rivals.values() for name in methods}


def _standing(
    name: str,
    found: Mapping[str, Mapping[str, Values]],
    rivals: Mapping[str, Mapping[str, Values]],
    best: Mapping[str, str],
    titles: Sequence[str],
) -> tuple[int, int, float, float]:
    """How often a choice is near the best constant one, in how many worlds; its mean; how far it is off at worst."""
    have_it = [title for title in titles if name in found[title]]
    top = {title: rivals[title][best[title]] for title in have_it}
    often = sum(within(found[title][name], top[title]) for title in have_it)
    least = min(difference(found[title][name], top[title])[0] for title in have_it)
    return often, len(have_it), float(np.mean([mean_of(found[title][name]) for title in have_it])), least


def against_wcll(found: Mapping[str, Mapping[str, Values]], titles: Sequence[str]) -> list[float]:
    """P values, adjusted by Holm, of the default against the best WCLL of every world."""
    p_values = []
    for title in titles:
        own = {name: values for name, values in found[title].items() if is_wcll(name)}
        p_value = paired_p_value(found[title][AUTO], own[best_of(own)])
        p_values.append(1.0 if p_value is None else p_value)
    return holm(p_values)


def print_summary(lines: Sequence[Line]) -> None:
    """The 24 worlds, those beside them, and the default's own estimates."""
    print(f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}")
    print(*summary(lines, sorted(world.title for world in worlds())), sep="\n")
    beside = {world.title for world in worlds([FURTHER])}
    if any(line["setting"] in beside for line in lines):
        print("\nbeside them:")
        print(*summary(lines, sorted(beside)), sep="\n")
    own = [line for line in lines if line["part"] == PART and line["method"] == AUTO]
    print()
    print(*coverage(own), sep="\n")
    for dataset in DATASETS:
        if some := [line["seconds"] for line in own if line["setting"].startswith(dataset)]:
            print(f"{dataset}: {np.mean(some):.0f} s a fit, {max(some):.0f} at most")


def comparison(lines: Sequence[Line], earlier: Sequence[Line]) -> Iterator[str]:
    """Two versions of the default on the draws that both have, scenario by scenario, then on average."""
    both = [by_seed(line for line in some if line.get("method", AUTO) == AUTO) for some in (lines, earlier)]
    titles = sorted(set(both[0]) & set(both[1]))
    changes: dict[str, list[float]] = {dataset: [] for dataset in DATASETS}
    for title in titles:
        new_one, old_one = (found[title][AUTO] for found in both)
        seeds = sorted(set(new_one) & set(old_one))
        mean, error = difference(new_one, old_one)
        changes[title.partition(",")[0]] += [new_one[seed] - old_one[seed] for seed in seeds]
        old = np.mean([old_one[seed] for seed in seeds])
        yield f"{title:52} {old + mean:.1f}, earlier {old:.1f}: {mean:+.1f}, s.e. {error:.1f} (n={len(seeds)})"
    for name, own in {**changes, "all": [change for some in changes.values() for change in some]}.items():
        if own:
            error = np.std(own, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0
            ahead = sum(change > 0 for change in own)
            yield f"{name}: {np.mean(own):+.1f} points, s.e. {error:.1f} over {len(own)} draws, ahead in {ahead}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("auto", "constant", "chosen", "summary", "compare"):
        command = commands.add_parser(name)
        command.add_argument("runs", type=Path)
        command.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
        command.add_argument("--datasets", nargs="+", choices=list(DATASETS), default=list(DATASETS))
        command.add_argument("--beside", action="store_true", help="the worlds beside the 24 as well")
        if name in ("auto", "constant"):
            command.add_argument("--part", default="1/1", help="such as 2/16: a sixteenth of the work")
        if name in ("summary", "compare"):
            help_text = "an earlier version of the default; the summary takes the fixed configurations from it"
            command.add_argument("--with", dest="earlier", type=Path, required=name == "compare", help=help_text)
        if name not in ("summary", "compare"):
            command.add_argument("--device", default="cpu" if name == "auto" else "auto")
        if name == "auto":
            command.add_argument("--budget", type=int, help="work of the search, for short tries")
            command.add_argument("--model", help="instead of selecting it")
        if name == "chosen":
            command.add_argument("--store", type=Path, required=True)
            command.add_argument("--together", type=int)
    given = parser.parse_args()
    if given.command == "summary":
        others = [line for line in read([given.earlier]) if line["method"] != AUTO] if given.earlier else []
        print_summary([line for line in read([given.runs]) + others if line["seed"] in given.seeds])
        return
    if given.command == "compare":
        print(*comparison(read([given.runs]), read([given.earlier])), sep="\n")
        return
    done = have(given.runs)
    if given.command == "chosen":
        how = {"device": given.device, "together": given.together}
        lines = of_chosen(columns(given.datasets, given.beside), given.seeds, given.store, **how)
        append(given.runs, new(lines, given.runs))
        return
    last = AUTO if given.command == "auto" else f"{suite().rows[-1].title}, {CONSTANT[-1]:g}"
    todo = [
        (column, seed)
        for column, seed in work(columns(given.datasets, given.beside), given.seeds, given.part)
        if (PART, column.title, seed, last) not in done
    ]
    options = {name: value for name in ("budget", "model") if (value := getattr(given, name, None)) is not None}
    lines = of_auto(todo, given.device, **options) if given.command == "auto" else of_constant(todo, given.device)
    append(given.runs, new(lines, given.runs))


if __name__ == "__main__":
    main()

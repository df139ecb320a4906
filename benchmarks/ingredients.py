"""What the parts of the default are worth: it is fitted again with one of them taken away, or changed.

    python benchmarks/ingredients.py run RUNS.jsonl [--seeds 0 1 2] [--only "no warm-up" ...] [--budget 12000]
    python benchmarks/ingredients.py summary RUNS.jsonl

Worlds of ``worlds.py`` on the digits, where the best are far from perfect: uniform, inverse-size and biased labels,
classes all alike or class 0 with a fifth of the images. Seeds are not those of the record (100 to 104), so that nothing
is chosen by looking at them. All is held against the default with a linear model, which takes a third of the time that
the default takes with both; what the choice between models brings is a variant like others. Every variant gets the same
images, labels and budget (half of what these samples would get), and printed is by how many points of TEST accuracy it
is above: paired, over all draws and world by world.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from default_runs import Line, append, by_seed, have, new, read, run_default
from worlds import Axis, Values, difference, draw_of, mean_of, worlds

PART, BASE = "ingredients", "linear"
SEEDS, BUDGET = (0, 1, 2), 12_000
GENERATORS, BALANCES = ("uniform", "inverse-size", "biased"), ("balanced", "p = 5, class 0")

#: What differs from the default with a linear model.
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    "Q: popularity's": {"transition": "popularity"},
    "Q: uniform": {"transition": "uniform"},
    "no warm-up": {"warm_up": 0},
    "rate 2e-3 alone": {"lr": 2e-3},
    "no weight decay": {"weight_decay": 0.0},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "weight decay 1e-2": {"weight_decay": 1e-2},
    "mlp": {"model": "mlp"},
    "linear or mlp": {"model": None},
}


def settings() -> list[Axis]:
    """The worlds that are looked at."""
    wanted = {f"digits, {labels}, {balance}" for labels, balance in product(GENERATORS, BALANCES)}
    return [world for world in worlds() if world.title in wanted]


def runs(
    asked: Sequence[Axis], seeds: Sequence[int], names: Sequence[str], done: set[Any], **told: Any
) -> Iterator[Line]:
    """A fit of each variant to each draw; one seed after the other, so that what is stopped has all of some."""
    for seed, world in product(seeds, asked):
        drawn = draw_of(world, seed)
        for name in names:
            if (PART, world.title, seed, name) not in done:
                found = run_default(drawn, seed, **{"model": "linear", **VARIANTS[name], **told})
                yield {"part": PART, "setting": world.title, "seed": seed, **found, "method": name}


def summary(lines: Sequence[Line], names: Sequence[str] = tuple(VARIANTS)) -> Iterator[str]:
    """Points above the default with a linear model, with paired standard errors: of all draws, and by world."""
    found = by_seed(line for line in lines if line["part"] == PART)
    titles = sorted(title for title in found if BASE in found[title])
    together = {name: _pooled({title: found[title].get(name, {}) for title in titles}) for name in names}
    whole = together[BASE]
    draws = f"{len(whole)} draws of {len(titles)} worlds"
    yield f"the default, linear: {mean_of(whole):.1f} % over {draws}; points above it, and standard errors"
    for name in names:
        if name == BASE or not together[name]:
            continue
        seconds = [line["seconds"] for line in lines if line["part"] == PART and line["method"] == name]
        drawn = f"{len(together[name])} draws, {np.median(seconds):.0f} s a fit"
        yield f"  {name:20} {_above(together[name], whole)}  ({drawn})"
        for title in titles:
            if shared := set(found[title].get(name, {})) & set(found[title][BASE]):
                yield f"      {title:36} {_above(found[title][name], found[title][BASE])}  (n={len(shared)})"


def _above(one: Values, other: Values) -> str:
    """The mean difference; of one draw, without an error."""
    mean, error = difference(one, other)
    return f"{mean:+6.1f} ± {error:.1f}" if len(set(one) & set(other)) > 1 else f"{mean:+6.1f}"


def _pooled(by_world: dict[str, Values]) -> dict[int, float]:
    """All draws of all worlds, numbered alike for every variant."""
    return {1000 * i + seed: value for i, title in enumerate(by_world) for seed, value in by_world[title].items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running, summed = commands.add_parser("run"), commands.add_parser("summary")
    for command in (running, summed):
        command.add_argument("runs", type=Path)
    running.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    running.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    running.add_argument("--budget", type=int, default=BUDGET, help="run-steps of every fit")
    given = parser.parse_args()
    if given.command == "summary":
        print(f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}")
        print(*summary(read([given.runs])), sep="\n")
        return
    lines = runs(settings(), given.seeds, given.only, have(given.runs), budget=given.budget)
    append(given.runs, new(lines, given.runs))


if __name__ == "__main__":
    main()

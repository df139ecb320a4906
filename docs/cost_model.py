"""What a million runs and a billion rows would take, from what was measured: a part of ``docs/guide/scaling.md``.

    python docs/cost_model.py

prints it; ``docs/generate.py`` puts it into the page. Every figure is read from a file in ``benchmarks/results``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tables import table

from wcll.experiments.grouping import TOGETHER
from wcll.experiments.suite import MOST_RUNS

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
STREAMING = "streaming.txt"
RUNS, ROWS = 10**6, 10**9
EPOCHS, STEPS = 100, 39  #: of a run of the paper's on MNIST's size: 10,000 samples in batches of 256
HOUR = 3600
UNBOUNDED = ("pyarrow's default",)  #: what keeps the whole file in memory
COMMAND = "python benchmarks/runners.py"


def figure(name: str, pattern: str) -> float:
    """The number in the one place of a file of results that a pattern finds."""
    (found,) = re.findall(pattern, (RESULTS / name).read_text(), re.MULTILINE)
    return float(found.replace(",", ""))


@dataclass(frozen=True)
class Kind:
    """Runs of one kind, on one kind of worker."""

    title: str
    worker: str
    seconds: float  #: that a worker takes for a run


def kinds() -> list[Kind]:
    """Runs of the paper's size, as they were measured."""
    step = figure("cpu.txt", r"^engine, 1 thread: .*\(([\d.]+) ms a run-step\)") / 1000
    linear = json.loads((RESULTS / "h200.json").read_text())["table 2, 1440 runs"]
    network = figure("networks.txt", r'^  "checkpoints": ([\d.]+)')
    return [
        Kind("linear", "CPU core", step * STEPS * EPOCHS),
        Kind("linear", "H200", linear["seconds"] / linear["runs"]),
        Kind("cnn9", "H200", network),
    ]


@dataclass(frozen=True)
class Runner:
    """What a runner and the one who writes its rows were measured to do."""

    name: str
    overhead: float  #: seconds that a worker loses with every unit
    units: float  #: empty ones a second, while workers die
    rows: float  #: a second that the writer takes, checks included, if each is a unit of its own

    @classmethod
    def measured(cls, name: str) -> Runner:
        """By ``benchmarks/runners.py``; the overhead is that of units of 0.1 s, of which there were most."""
        simulated = rf"^runner {name}, .*\n.*\n"
        return cls(
            name,
            figure("runners.txt", rf"^ +0\.1 +\d+ +{name} .* ([\d.]+) +[\d.]+$") / 1000,
            figure("runners.txt", rf"{simulated}[\d.]+ s, (\d+) units/s"),
            figure("runners.txt", rf"{simulated}.*\nthe writer: .* would write (\d+) units/s"),
        )

    def most_workers(self, kind: Kind) -> dict[str, float]:
        """With how many workers each part is busy all the time."""
        return {"the writer": self.rows * kind.seconds, "the scheduler": self.units * kind.seconds * TOGETHER}


def million_runs() -> list[str]:
    """A table of what they take, and what breaks first."""
    runner, rows = Runner.measured("dask"), []
    for kind in kinds():
        most = runner.most_workers(kind)
        time, lost = RUNS * kind.seconds / HOUR, runner.overhead / TOGETHER / kind.seconds
        figures = [f"{kind.seconds:.3f} s", f"{rounded(time)} h", f"{lost:.2%}", *map(rounded, most.values())]
        rows.append([f"{kind.title}, {kind.worker}", *figures])
    heads = [
        "runs",
        "one run",
        f"{RUNS:,} on one worker",
        "lost to Dask",
        *(f"workers that {name} serves" for name in most),
    ]
    return [*table(f"A million runs in groups of {TOGETHER}, on workers of Dask:", heads, rows), *_of_all(runner)]


def _of_all(runner: Runner) -> list[str]:
    """What does not depend on the kind of runs."""
    measured = figure("store.txt", r"^([\d,]+) runs")
    size = figure("store.txt", r"runs, (\d+) MB") * RUNS / measured / 1000
    listed = figure("store.txt", r"^results +([\d.]+)") * RUNS / measured
    alone, units, hours = f"{runner.rows:.0f}", f"{runner.units:.0f}", RUNS / runner.rows / HOUR
    return [
        f"- The store: {size:.0f} GB, listed in {listed:.0f} s.",
        f"- Its one writer: {alone} runs a second where each is a group of its own, with checks and writes.",
        f"  It makes {hours:.1f} h for all, whoever trains.",
        f"- The scheduler: {units} empty groups a second, on two cores that it shares with the writer and two workers,",
        "  which are killed now and then.",
        f"- A suite may have {MOST_RUNS:,} runs, so these are {RUNS // MOST_RUNS} suites, into one store or several.",
        "",
    ]


def billion_rows() -> list[str]:
    """How long an epoch of them takes."""
    text = (RESULTS / STREAMING).read_text()
    rows, features, megabytes = (
        figure(STREAMING, pattern) for pattern in (r"^([\d,]+) rows,", r"rows, (\d+) features", r"rows: (\d+) MB")
    )
    lines = re.findall(r"^(\S.*?) +([\d,]+) +[\d.]+ +[\d.]+ +(\d+)$", text, re.MULTILINE)
    found = {name: (float(speed.replace(",", "")), memory) for name, speed, memory in lines if name not in UNBOUNDED}
    size = megabytes / rows  # of a row, in MB
    cells = [
        [name, f"{speed:,.0f}", f"{rounded(ROWS / speed / HOUR)} h", f"{rounded(size * speed)} MB/s", f"{memory} MB"]
        for name, (speed, memory) in found.items()
    ]
    source = f"`benchmarks/results/{STREAMING}`"
    about = (
        f"A billion rows of {features:.0f} features, a file of {size * ROWS / 1000:,.0f} GB, by one process ({source}):"
    )
    heads = ["what", "rows a second", "all of them, once", "from the disk", "memory"]
    return table(about, heads, cells)


def runner_costs() -> list[str]:
    """What a worker loses with every unit, by how long units take and by runner."""
    found = re.findall(
        r"^ +([\d.]+) +(\d+) +(\w+) +[\d. ]+? +([\d.]+) +([\d.]+)$", (RESULTS / "runners.txt").read_text(), re.MULTILINE
    )
    about = f"Lost with every unit, by workers on a machine of two cores that others used too (`{COMMAND}`):"
    rows = [[runner, f"{seconds} s", count, f"{lost} ms", ratio] for seconds, count, runner, lost, ratio in found]
    return table(about, ["runner", "a unit takes", "units", "lost", "of local's"], rows)


def rounded(number: float) -> str:
    """Two digits: more were not measured."""
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"


def parts() -> dict[str, str]:
    """The generated parts of the page, by their names."""
    return {"runners": "\n".join(runner_costs()), "cost": "\n".join([*million_runs(), *billion_rows()])}


if __name__ == "__main__":
    print(*parts().values(), sep="\n")

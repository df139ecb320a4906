"""The paper on images: which suites there are, and in which order the scarce time of a GPU goes to their runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from wcll.paper.part import Part
from wcll.paper.result_files import grown, read_part
from wcll.results import Row
from wcll.suites import Suite, Trial
from wcll.suites.suite import Axis

LEAST = 3  #: trials of every cell below which there is no verdict
FACTORS = "factors-cifar10"  #: what the paper leaves open
IMAGES = ("table2-cifar10", "table3-cifar10", "table4-cifar10", "table2-tiny-imagenet", "table7")


@dataclass(frozen=True)
class Stage:
    """Runs that come before all later ones: of each suite one trial of every cell with one combination of its grid."""

    title: str
    trials: Mapping[str, Sequence[Trial]]  #: by the name of the suite


def stages(suites: Sequence[Suite]) -> Iterator[Stage]:
    """Yield one trial of every cell at one learning rate, then at the next, before any cell gets a second trial.

    All trials of settings with published numbers come before settings that the paper announces, but does not print.
    """
    for printed, seed in product((True, False), range(max((suite.trials for suite in suites), default=0))):
        cells = {
            suite.name: [suite.candidates(*cell, seed) for cell in product(_columns(suite, printed), suite.rows)]
            for suite in suites
            if seed < suite.trials
        }
        for i in range(max((len(runs) for some in cells.values() for runs in some), default=0)):
            chosen = {name: [runs[i] for runs in some if i < len(runs)] for name, some in cells.items()}
            rates = sorted({trial.lr for some in chosen.values() for trial in some if trial.lr is not None})
            at = ", ".join(f"{lr:g}" for lr in rates)
            yield Stage(f"Images, trial {seed + 1} at {at}{'' if printed else ', what is not printed'}", chosen)


def _columns(suite: Suite, printed: bool) -> list[Axis]:
    """The settings of which the paper prints something, or the others."""
    known = Part(suite, 0, {}, {}).printed_columns
    return [column for column in suite.columns if (column.title in known) is printed]


class Growing:
    """Results of suites that are run in many parts: what result files have is not run again, what is new is added."""

    def __init__(self, suites: Sequence[Suite], folder: Path | None) -> None:
        self.suites = suites
        self.parts: dict[str, Part] = {}
        for suite in suites:
            if folder is not None and (path := folder / f"{suite.name}.json").exists():
                self.parts[suite.name] = read_part(path, suite, partial=True)

    def missing(self, stage: Stage, also: Collection[str] = ()) -> list[Trial]:
        """Return the runs of a stage that some suite lacks, and those with the keys ``also``, each once."""
        lacking = [
            trial
            for name, trials in stage.trials.items()
            for trial in trials
            if name not in self.parts or trial.key not in self.parts[name].runs or trial.key in also
        ]
        return list(dict.fromkeys(lacking))

    def add(self, rows: Mapping[str, Row], command: str) -> list[Part]:
        """Take in finished runs; returns the parts that have got some."""
        found = []
        for suite in self.suites:
            known = self.parts.get(suite.name)
            part = grown(known, suite, rows, command)
            if part is not None and part is not known:
                self.parts[suite.name] = part
                found.append(part)
        return found

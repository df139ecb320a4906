"""Problems that the bounds are asked about: class shares and norms as given, or the columns of a suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from wcll._memory import check_memory
from wcll.datasets.base import Dataset
from wcll.exceptions import InputError
from wcll.running.containers import Task
from wcll.running.memory import need_of
from wcll.running.plan import Job
from wcll.running.task import make_task
from wcll.running.train import train
from wcll.suites import Suite, Trial
from wcll.theory.bounds import Bound, Problem, corrected_lemma, corrected_theorem, lemma1, theorem1
from wcll.theory.rademacher import linear_complexity_of


@dataclass(frozen=True)
class Case:
    """A problem, and what is to be said of it."""

    title: str
    problem: Problem
    note: str = ""

    @cached_property
    def bounds(self) -> list[Bound]:
        """Both statements, each as printed and corrected."""
        return [statement(self.problem) for statement in (lemma1, corrected_lemma, theorem1, corrected_theorem)]

    def to_dict(self, gap: float | None = None) -> dict[str, Any]:
        """For JSON: every term, and how many labels bring a bound down to ``gap``."""
        bounds = [
            {
                **asdict(one),
                "value": one.value,
                "verdict": one.verdict,
                **({} if gap is None else {"labels_needed": one.labels_for(gap)}),
            }
            for one in self.bounds
        ]
        return {"title": self.title, "note": self.note, "problem": asdict(self.problem), "bounds": bounds}


def own_case(
    shares: Sequence[float], n: int, *, norm: float | None, layer_norms: Sequence[float], radius: float, delta: float
) -> Case:
    """Linear models of a norm (1 unless given), or networks where the norms of their layers are."""
    title = f"K = {len(shares)}, class shares {min(shares):g} to {max(shares):g}, N = {n}"
    if not layer_norms:
        linear = Problem.linear(shares, n, norm=1.0 if norm is None else norm, radius=radius, delta=delta)
        return Case(f"{title}, linear models", linear)
    if norm is not None:
        raise InputError("--norm", "none beside --layer-norm, which has its own", norm)
    network = Problem.network(shares, n, norms=layer_norms, radius=radius, delta=delta)
    return Case(f"{title}, networks of {len(layer_norms)} layers without biases", network)


def suite_cases(suite: Suite, load: Callable[[str], Dataset], *, norm: float | None, delta: float) -> list[Case]:
    """One case for every column that differs in its data set, labels or class sizes.

    Without a ``norm``, that of WCLL trained there is taken.
    """
    cases: dict[object, Case] = {}
    for column in suite.columns:
        trials = [trial for row in suite.rows for trial in suite.candidates(column, row, 0)]
        trial = next((one for one in trials if _is_wcll(one)), None)
        if trial is None or trial.model != "linear":
            expected = "a row of loss 'wcll' with a linear model, which the bounds are about"
            raise InputError("--suite", expected, suite.name)
        task = make_task(trial, load(trial.dataset))
        sizes = sorted(task.declared.sizes.tolist())
        kind = (trial.dataset, trial.labels, trial.imbalance_of, len(task.train.x), *sizes)
        if kind not in cases:
            title = f"{suite.title}, {column.title}" if column.title else suite.title
            cases[kind] = _task_case(title, trial, task, norm, delta)
    return list(cases.values())


def _is_wcll(trial: Trial) -> bool:
    """WCLL by any reading, with cross-entropy and labels as they are."""
    return trial.loss == "wcll" and {name for name, _ in trial.loss_options} <= {"reading"} and not trial.resample


def _task_case(title: str, trial: Trial, task: Task, norm: float | None, delta: float) -> Case:
    """The problem of a task: its samples' radius, and the norm that training reaches unless one is given."""
    x = task.train.x.flatten(1).double().numpy() / task.scale
    x = np.column_stack([x, np.ones(len(x))])  # a bias is a feature that is 1
    radius = float(np.linalg.norm(x, axis=1).max())
    training = f"rate {trial.lr:g}, {trial.epochs} epochs, seed 0"
    trained = f"that of WCLL trained there ({training}), so seen after the data: no bound holds for it as it stands"
    largest, how = (_trained_norm(trial, task), trained) if norm is None else (norm, "as given")
    problem = Problem.linear(task.declared.sizes, len(x), norm=largest, radius=radius, delta=delta)
    inverse_size = trial.labels == "inverse-size" and trial.imbalance_of is None
    measured, error = linear_complexity_of(x, norm=largest, draws=20, random_state=0)
    note = (
        f"weights of norm at most {largest:.3g}, {how}; samples of norm at most {radius:.2f}; R_N at most "
        f"{problem.complexity:.4g}, on these samples by Monte Carlo {measured:.4g} ± {error:.1g} (ratio "
        f"{problem.complexity / measured:.1f})"
    )
    return Case(title, replace(problem, inverse_size=inverse_size), note)


def _trained_norm(trial: Trial, task: Task) -> float:
    """The largest norm of a class's weights, its bias among them, after training."""
    job, device = Job((trial,)), torch.device("cpu")
    check_memory(
        "--suite", "a training", need_of(job, task.view, device).of(1), "give --norm, so that nothing is trained"
    )
    (recording,) = train([(job, task.view)], device)
    weights = torch.cat(
        [recording.parameters[f"layer.{name}"][0].view(task.n_classes, -1) for name in ("weight", "bias")], 1
    )
    return float(weights.norm(dim=1).max())

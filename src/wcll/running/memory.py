"""How much memory runs take, and how much there is."""

from __future__ import annotations

import torch

from wcll._auto import STACKED
from wcll._memory import SHARE, free_memory, in_words
from wcll.exceptions import InputError
from wcll.models import check_size
from wcll.running.containers import View
from wcll.running.plan import Job
from wcll.running.train import training_of
from wcll.training.engine import Need, engine_for

COPIES = 3  #: of all samples, that choosing among models has at once
HISTORY = 40  #: bytes of a number in a list, of which a few are kept of every epoch


def check_job(job: Job, view: View) -> None:
    """Fail if what trains one run's model does not fit into memory; nothing is made of it."""
    first = job.first
    model = {"name": first.model, **dict(first.model_options)}
    check_size(model, tuple(view.data.x.shape[1:]), view.n_classes, dtype=getattr(torch, first.dtype))


def need_of(job: Job, view: View, device: torch.device) -> Need:
    """What a job will take: the need of its engine, recorded predictions, and what scores of held-out labels take."""
    check_job(job, view)
    training = training_of(job, view, device)
    n_test, n_valid, k = len(view.unlabelled), 0 if view.valid is None else len(view.valid.x), view.n_classes
    at_once = min(max(n_test, n_valid), training.family.at_once)
    need = engine_for(training).need(view.data.x, training, n_test + n_valid, at_once)
    predicted = len(job.first.looked_at) * n_test * (1 if k <= 256 else 4)
    recorded = predicted + training.epochs * HISTORY * (k + 3) + 4 * n_valid * k * 8
    if job.auto:  # candidates train in one stack, on folds, which are copies of the samples
        copies = COPIES * view.data.x.numel() * getattr(torch, job.first.dtype).itemsize
        return Need(need.shared, STACKED * (need.per_run + recorded) + copies)
    return Need(need.shared, need.per_run + recorded)


def available(device: torch.device) -> int:
    """Bytes that runs may use by default: most of what is free now."""
    if device.type == "cuda":
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return free_memory()


def runs_that_fit(need: Need, limit: int) -> int:
    """How many runs of a group may train at once."""
    if need.of(1) > limit:
        raise InputError("--memory", f"at least {in_words(need.of(1))}, which one run takes", in_words(limit))
    return (limit - need.shared) // max(need.per_run, 1)

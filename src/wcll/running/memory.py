"""How much memory runs take, and how much there is."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import psutil
import torch

from wcll.checks import InputError
from wcll.models import MODELS, build_model
from wcll.running.job import Job
from wcll.training.captured import STREAMS
from wcll.training.engines import evaluated_at_once
from wcll.training.linear import padded

SHARE = 0.7  #: of what is free, unless the user says how much may be used
TEMPORARIES = 12  #: arrays of a batch's logits that gradients of losses may need at once


@dataclass(frozen=True)
class Need:
    """Bytes for what all runs of a group share, and for each run."""

    shared: int
    per_run: int

    def of(self, runs: int) -> int:
        """Bytes for a group of so many runs."""
        return self.shared + runs * self.per_run


def need_of(job: Job, device: torch.device) -> Need:
    """What a job will take: its data as numbers, parameters with Adam's state, activations, recorded predictions."""
    trial = job.trials[0]
    item = getattr(torch, trial.dtype).itemsize
    n_test, n_valid = len(job.unlabelled), 0 if job.valid is None else len(job.valid.x)
    batch, k = min(trial.batch_size, len(job.data.x)), job.n_classes
    features = prod(job.data.x.shape[1:])
    samples = len(job.data.x) + n_test + n_valid
    weights, activations, largest = _model(job)
    if trial.model == "linear":
        features = padded(features)
        weights, activations, largest = k * features, 0, 0
    bytes_each = 1 if device.type == "cuda" and job.data.x.dtype == torch.uint8 else item
    shared = samples * features * bytes_each + job.data.x.nbytes + batch * features * item
    evaluated = min(max(n_test, n_valid), evaluated_at_once(trial.model))
    per_run = (4 if trial.model == "linear" else 8) * weights * item  # gradients, two moments, what a step needs
    per_run += trial.epochs * n_test * (1 if k <= 256 else 4)
    per_run += TEMPORARIES * batch * k * item + 2 * evaluated * k * item + 4 * n_valid * k * 8
    at_work = 3 * batch * activations * item + 3 * evaluated * largest * item
    if device.type == "cuda" and not MODELS[trial.model].exact:  # such runs take turns
        return Need(shared + STREAMS * at_work, per_run)
    return Need(shared, per_run + at_work)


def _model(job: Job) -> tuple[int, int, int]:
    """Parameters of one run, and of one sample the activations: of all layers, and of the largest."""
    trial = job.trials[0]
    settings = {"name": trial.model, **dict(trial.model_options)}
    model = build_model(settings, tuple(job.data.x.shape[1:]), job.n_classes, [0], torch.float32)
    sizes: list[int] = []
    for module in model.modules():
        if not list(module.children()):
            module.register_forward_hook(lambda _, __, output: sizes.append(output.numel()))
    with torch.no_grad():
        model.eval()(torch.zeros(1, *job.data.x.shape[1:]))
    return sum(p.numel() for p in model.parameters()), sum(sizes), max(sizes)


def available(device: torch.device) -> int:
    """Bytes that runs may use by default: most of what is free now."""
    if device.type == "cuda":
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return int(SHARE * psutil.virtual_memory().available)


def runs_that_fit(need: Need, limit: int) -> int:
    """How many runs of a group may train at once."""
    if need.of(1) > limit:
        raise InputError(
            "--memory", f"at least {need.of(1) / 2**20:.0f} MiB, which one run takes", f"{limit / 2**20:.0f} MiB"
        )
    return (limit - need.shared) // max(need.per_run, 1)

"""Where to compute, and how precisely."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from wcll._validation import choice
from wcll.exceptions import InputError
from wcll.models.base import Family, ModelChoice, RunStack, outline_model

DTYPES = {"float32": torch.float32, "float64": torch.float64}
MIN_SHARED = 1e8  #: floating-point operations of a step, a millisecond of one core, from which on threads share them


def dtype_and_device(dtype: str, device: str) -> tuple[torch.dtype, torch.device]:
    """The dtype and the device that the user asked for; ``"auto"`` takes a GPU if there is one."""
    kind = DTYPES[choice("dtype", dtype, DTYPES)]
    automatic = isinstance(device, str) and device == "auto"
    wanted = ("cuda" if torch.cuda.is_available() else "cpu") if automatic else device
    try:
        where = torch.device(wanted)
    except (RuntimeError, TypeError, ValueError):
        where = torch.device("meta")
    if where.type not in ("cpu", "cuda"):
        raise InputError("device", "'auto', 'cpu' or 'cuda'", repr(wanted))
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise InputError("device", "a device of this machine", repr(wanted), "torch sees no such GPU; use 'cpu'")
    return kind, where


def all_finite(numbers: Tensor) -> bool:
    """Return whether no number is infinite or NaN: a finite sum says so in a fraction of the time."""
    return bool(numbers.sum().isfinite()) or bool(numbers.isfinite().all())


def threads_for(network: RunStack, n_samples: int) -> int | None:
    """Return 1 if steps on so many samples are too short to share among threads, and None (all threads) if not.

    A linear model takes one thread. Of other dense networks the products are counted, of the step forward and back.
    """
    operations = 6 * n_samples * sum(parameter.numel() for parameter in network.parameters())
    short = network.family is Family.DENSE and operations < MIN_SHARED
    return 1 if short or network.family is Family.LINEAR else None


def training_threads(model: ModelChoice, x: NDArray[Any] | Tensor, n_classes: int, batch_size: int) -> int | None:
    """Return the threads to train a model with on samples such as ``x``; None is all of them."""
    if not isinstance(model, str | dict):
        return None
    return threads_for(outline_model(model, tuple(x.shape[1:]), n_classes), min(batch_size, len(x)))


class _Limits:
    """Who limits torch's threads now: the first to come keeps the number that the last to go puts back."""

    lock, inside, before = threading.Lock(), 0, 0


@contextmanager
def torch_threads(number: int | None) -> Iterator[int]:
    """Give torch so many threads within the block, and as many as before afterwards; None leaves them alone.

    Threads wait for each other at every operation, and long if another process is busy. Blocks may overlap in several
    Python threads. Yields the number from before.
    """
    own = torch.get_num_threads()
    with _Limits.lock:
        _Limits.before = _Limits.before if _Limits.inside else own
        _Limits.inside += 1
        torch.set_num_threads(number or own)
    try:
        yield own
    finally:
        with _Limits.lock:
            _Limits.inside -= 1
            torch.set_num_threads(own if _Limits.inside else _Limits.before)

"""Where to compute, and how precisely."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from wcll.checks import InputError, choice

DTYPES = {"float32": torch.float32, "float64": torch.float64}


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


class _Limits:
    """Who limits torch's threads now: the first to come keeps the number that the last to go puts back."""

    lock, inside, before = threading.Lock(), 0, 0


@contextmanager
def torch_threads(number: int | None) -> Iterator[int]:
    """So many threads for torch within the block, and as many as before afterwards; None leaves them alone.

    Small models are fastest with one: beside a busy process, two wait for each other at every operation. Blocks may
    overlap in several Python threads. Gives the number from before.
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

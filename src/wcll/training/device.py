"""Where to compute, and how precisely."""

from __future__ import annotations

import torch

from wcll.checks import InputError, choice

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def place(dtype: str, device: str) -> tuple[torch.dtype, torch.device]:
    """The dtype and the device that the user asked for; ``"auto"`` takes a GPU if there is one."""
    kind = DTYPES[choice("dtype", dtype, DTYPES)]
    wanted = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        where = torch.device(wanted)
    except (RuntimeError, TypeError):
        where = torch.device("meta")
    if where.type not in ("cpu", "cuda"):
        raise InputError("device", "'auto', 'cpu' or 'cuda'", repr(wanted))
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise InputError("device", "a device of this machine", repr(wanted), "torch sees no such GPU; use 'cpu'")
    return kind, where

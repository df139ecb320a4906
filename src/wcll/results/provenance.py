"""Where a result comes from: code, versions, machine."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch

import wcll


def provenance(device: torch.device) -> dict[str, str | int]:
    """Commit, versions and device of this process."""
    return {
        "commit": commit(),
        **versions(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
    }


def versions() -> dict[str, str]:
    """What a result may depend on beside its settings and data."""
    return {
        "wcll": wcll.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


@cache
def code() -> str:
    """A digest of the package's source: of its files' names and what they hold."""
    root, digest = Path(wcll.__file__).parent, blake2b(digest_size=12)
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def commit() -> str:
    """The commit of the source tree that runs, with ``+`` if it was changed since; empty for an installed package."""
    root = Path(wcll.__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no", "--", "src") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True)
    return run.stdout.strip()

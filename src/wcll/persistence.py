"""Models on disk: one safetensors file whose header carries JSON. Nothing is ever unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from wcll.atomic import replacing
from wcll.checks import InputError

FORMAT = "wcll-model-1"


def write_model(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header, whole or not at all."""
    target = Path(path)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "header": text, "digest": _digest(plain, text)}
    with replacing(target, "path") as draft:
        save_file(plain, draft, metadata=metadata)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a file that :func:`write_model` wrote; any other, or a damaged one, is refused."""
    if not Path(path).is_file():
        raise InputError("path", "a saved model", f"{path}, which is not a file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
    except (SafetensorError, OSError) as error:
        raise InputError("path", "a whole model file", f"{path}, which cannot be read", str(error)) from None
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "no wcll header")
        raise InputError("path", f"a model of format {FORMAT!r}", f"{path} with {found}", "save it with this version")
    text = metadata.get("header", "")
    if metadata.get("digest") != _digest(tensors, text):
        raise InputError("path", "an unchanged model file", f"{path}, whose contents do not match their digest")
    header: dict[str, Any] = json.loads(text)
    return header, tensors


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    hasher = blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        hasher.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        hasher.update(tensor.numpy().tobytes())
    return hasher.hexdigest()


def plain_setting(name: str, value: Any) -> Any:
    """A setting as JSON; what JSON cannot say cannot be saved."""
    if name == "callbacks":
        return []
    plain = _plain(value)
    if name == "random_state" and not isinstance(plain, int | None):
        return None
    try:
        json.dumps(plain)
    except TypeError:
        remedy = "save the module's state_dict yourself" if name == "model" else ""
        raise InputError(name, "a setting that JSON can hold, to be saved", type(value).__name__, remedy) from None
    return plain


def _plain(value: Any) -> Any:
    """Arrays, tensors, ranges and NumPy's numbers as lists and Python's own."""
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, torch.device) else value

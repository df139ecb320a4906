"""Models on disk: one safetensors file whose header carries JSON. Nothing is ever unpickled."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from wcll._files import check_file, replacing
from wcll._fitting import FittedState
from wcll._memory import check_memory
from wcll._neighbors import Scaling
from wcll._validation import (
    FloatArray,
    choice,
    class_weights_array,
    distribution,
    entry,
    finite_array,
    positive,
    transition_matrix,
    whole,
)
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import Belief, ClassWeights, EstimatedTransition
from wcll.labels.encoding import class_names
from wcll.losses.registry import Link
from wcll.models.registry import outline_model
from wcll.training.runs import dtype_and_device

FORMAT = "wcll-model-1"
DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32, "I16": torch.int16}
DTYPES |= {"I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
SCALARS = (str, int, float, dict, type(None))  #: what a cell of a table of candidates may be; models may have options
HISTORY = {"epoch": int, "loss": float, "seconds": float}  #: what is kept of an epoch; a loss may be NaN
PARSED = 30  #: bytes that a character of JSON may take once it is read
MOST_AXES, LONGEST = 60, 2**40  #: of a sample: what arrays can have, and more than any has


def write_model(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors and a JSON header, whole or not at all."""
    target = Path(path)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "header": text, "digest": _digest(plain, text)}
    with replacing(target, "path") as draft:
        save_file(plain, draft, metadata=metadata)


class ModelFile:
    """An open file that :func:`write_model` wrote: its header, and its tensors once they are known to fit."""

    def __init__(self, file: Any) -> None:
        self._file = file
        metadata = file.metadata() or {}
        if metadata.get("format") != FORMAT:
            found = metadata.get("format", "no wcll header")
            raise InputError("format", f"a model of format {FORMAT!r}", found, "save it with this version")
        self._text, self._written = metadata.get("header", ""), metadata.get("digest")
        check_memory("header", "settings", PARSED * len(self._text))
        try:
            self.header: Any = json.loads(self._text)
        except (ValueError, RecursionError):
            raise InputError("header", "settings as JSON", "something else") from None

    def read(self, outline: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """The tensors; their names, shapes and dtypes are compared with an ``outline`` before any is read."""
        names = list(self._file.keys())
        if outline is not None and set(names) != set(outline):
            odd = sorted(set(names) ^ set(outline))[0]
            raise InputError("tensors", "those of the model", f"{odd!r} {'more' if odd in names else 'missing'}")
        for name in names:
            part = self._file.get_slice(name)
            dtype, shape = DTYPES.get(part.get_dtype()), tuple(part.get_shape())
            wanted = None if outline is None else outline[name]
            if dtype is None or (wanted is not None and (dtype, shape) != (wanted.dtype, tuple(wanted.shape))):
                expected = "a known type" if wanted is None else f"{wanted.dtype} of shape {tuple(wanted.shape)}"
                raise InputError(f"tensor {name!r}", expected, f"{part.get_dtype()} of shape {shape}")
        tensors = {name: self._file.get_tensor(name) for name in names}
        if self._written != _digest(tensors, self._text):
            raise InputError("digest", "an unchanged file", "contents that do not match their digest")
        return tensors


@contextmanager
def open_model(path: str | os.PathLike[str]) -> Iterator[ModelFile]:
    """A file that :func:`write_model` wrote; what is found wrong with it inside the block is said of the file."""
    try:
        where = Path(path)
    except TypeError:
        raise InputTypeError("path", "the path of a saved model", type(path).__name__) from None
    check_file(where, "a saved model")
    check_memory("path", str(path), where.stat().st_size)
    try:
        with safe_open(where, framework="pt") as file:
            yield ModelFile(file)
    except (SafetensorError, OSError) as error:
        raise InputError("path", "a whole model file", f"{path}, which cannot be read", str(error)) from None
    except InputError as error:
        raise InputError("path", "a model that can be used", f"{path}, where this is wrong: {error}") from None


def read_model(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Tensor]]:
    """Header and tensors of a file that :func:`write_model` wrote; any other, or a damaged one, is refused."""
    with open_model(path) as file:
        return file.header, file.read()


def check_finite(argument: str, tensors: Mapping[str, Tensor]) -> None:
    """Fail if some parameter is NaN or infinite: nothing can be predicted with it."""
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise InputError(argument, "finite parameters", f"NaN or infinity in {name!r}", "training diverged")


@dataclass(frozen=True)
class Saved:
    """What a saved classifier's header says, each entry checked as if a user had given it."""

    settings: dict[str, Any]
    classes: NDArray[Any]
    input_shape: tuple[int, ...]
    image_bytes: bool
    fitted: dict[str, Any]
    feature_names: list[str]
    belief: Belief
    label_totals: FloatArray
    history: list[dict[str, Any]]
    temperature: float = 1.0
    prior: FloatArray | None = None  #: class shares of the training samples, where the model tells them
    scaling: Scaling | None = None  #: of features in training
    chosen: dict[str, Any] | None = None  #: settings that were chosen, where that was left open
    selection: list[dict[str, Any]] | None = None  #: what they were chosen from

    def state(self, file: ModelFile, seed: int, device: str) -> FittedState:
        """Read the tensors, and return the fitted state; training goes on with a fresh optimiser."""
        dtype, where = dtype_and_device(self.fitted["dtype"], device)
        network = outline_model(self.fitted["model"], self.input_shape, len(self.classes), [seed], dtype)
        tensors = file.read(network.state_dict())
        check_finite("tensors", tensors)
        network.load_state_dict(tensors, assign=True)
        inputs: dict[str, Any] = {"n_features_in_": prod(self.input_shape)}
        if len(self.input_shape) > 1:
            inputs |= {"image_shape_": self.input_shape, "image_bytes_": self.image_bytes}
        if self.feature_names:
            inputs["feature_names_in_"] = np.array(self.feature_names, dtype=object)
        optional: dict[str, Any] = {} if self.prior is None else {"prior": self.prior}
        if self.chosen is not None:
            optional |= {"chosen": self.chosen, "selection": self.selection or []}
        return FittedState(
            classes=self.classes,
            network=network.to(where),
            **self.fitted,
            belief=self.belief,
            label_totals=self.label_totals,
            history=self.history,
            n_iter=len(self.history),
            seed=seed,
            inputs=inputs,
            scaling=self.scaling,
            temperature=self.temperature,
            optional=optional,
        )

    @staticmethod
    def of(header: Any, settings: Collection[str]) -> Saved:
        """Read a header; ``settings`` are the names that a classifier takes."""
        own = dict(entry(header, "settings", dict))
        if own.pop("preset", None) == "paper" and own.get("loss") == "auto":  # a setting of earlier files
            own["loss"] = "wcll"
        for name in own:
            choice("settings", name, settings)
        classes = _classes(entry(header, "classes", list), entry(header, "classes_dtype", str))
        shape = entry(header, "input_shape", list)
        if not 1 <= len(shape) <= MOST_AXES or any(whole("input_shape", size) > LONGEST for size in shape):
            raise InputError("input_shape", f"1 to {MOST_AXES} sizes of at most {LONGEST}", shape)
        return Saved(
            settings=own,
            classes=classes,
            input_shape=tuple(shape),
            image_bytes=entry(header, "image_bytes", bool),
            fitted=_fitted(entry(header, "fitted", dict)),
            feature_names=_feature_names(entry(header, "feature_names", list), shape),
            belief=_belief(header, len(classes)),
            label_totals=class_weights_array("label_totals", entry(header, "label_totals", list), len(classes)),
            history=_history(entry(header, "history", list)),
            temperature=positive("temperature", entry({"temperature": 1.0, **header}, "temperature", float)),
            prior=_prior(entry({"prior": None, **header}, "prior", list | None), len(classes)),
            scaling=_scaling(entry({"scaling": None, **header}, "scaling", list | None), shape),
            chosen=_chosen(entry({"chosen": None, **header}, "chosen", dict | None), settings),
            selection=_selection(entry({"selection": None, **header}, "selection", list | None)),
        )


def header_of(state: FittedState, settings: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return what is saved of a fitted classifier beside its tensors, as JSON can hold it."""
    inputs, weights, chosen = state.inputs, state.weights, state.optional.get("chosen")
    return {
        "version": version,
        "settings": {name: plain_setting(name, value) for name, value in settings.items()},
        "classes": state.classes.tolist(),
        "classes_dtype": state.classes.dtype.str,
        "input_shape": list(inputs.get("image_shape_", [inputs["n_features_in_"]])),
        "image_bytes": bool(inputs.get("image_bytes_", False)),
        "fitted": {
            "model": plain_setting("model", state.model),
            "dtype": state.dtype,
            "link": state.link,
            "mirrored": state.mirrored,
        },
        "feature_names": inputs.get("feature_names_in_", np.array([])).tolist(),
        "belief": state.belief.to_dict(),
        "weights": weights and weights.to_dict(),
        "label_totals": state.label_totals.tolist(),
        "history": state.history,
        "temperature": state.temperature,
        "prior": None if (prior := state.optional.get("prior")) is None else prior.tolist(),
        "scaling": state.scaling and [values.tolist() for values in state.scaling],
        "chosen": None if chosen is None else {name: plain_setting(name, value) for name, value in chosen.items()},
        "selection": state.optional.get("selection"),
    }


def _classes(names: list[Any], dtype: str) -> NDArray[Any]:
    """Class names in the dtype that they had; text is as wide as it must be, whatever is said of it."""
    found = class_names(names)
    if not re.fullmatch(r"[<>=|]?(b1|[iu][1248]|f[248]|U[0-9]+)", dtype) or ("U" in dtype) != (found.dtype.kind == "U"):
        raise InputError("classes_dtype", "the type of the class names", repr(dtype))
    with np.errstate(all="ignore"):
        classes = found if "U" in dtype else found.astype(dtype)
    if not np.array_equal(classes, found):
        raise InputError("classes_dtype", "a type that holds the class names", repr(dtype))
    return classes


def _fitted(plain: dict[str, Any]) -> dict[str, Any]:
    model = entry(plain, "model", str | dict)
    dtype = choice("dtype", entry(plain, "dtype", str), ("float32", "float64"))
    link = choice("link", entry(plain, "link", str), get_args(Link))
    mirrored = entry({"mirrored": False, **plain}, "mirrored", bool)  # of before there was such a thing: not
    return {"model": model, "dtype": dtype, "link": link, "mirrored": mirrored}


def _feature_names(names: list[Any], shape: list[int]) -> list[str]:
    if not all(isinstance(name, str) for name in names) or (names and [len(names)] != shape):
        raise InputError("feature_names", f"names of {shape[0]} columns, or none", f"{len(names)} entries")
    return names


def _belief(header: dict[str, Any], n_classes: int) -> Belief:
    if "belief" in header:
        belief = Belief.from_dict(entry(header, "belief", dict))
        transition_matrix(belief.transition, n_classes)
    else:  # a file of before sources were kept
        belief = Belief.given(entry(header, "transition", list), entry(header, "label_totals", list))
        transition_matrix(belief.transition, n_classes)
    plain = entry(header, "weights", dict | None)
    weights = None if plain is None else ClassWeights.from_dict(plain)
    if weights is not None and len(weights.values) != n_classes:
        raise InputError("weights", f"one for each of {n_classes} classes", len(weights.values))
    return belief.with_weights(weights)


def _history(rows: list[Any]) -> list[dict[str, Any]]:
    for row in rows:
        if not isinstance(row, dict) or any(type(row.get(name)) is not kind for name, kind in HISTORY.items()):
            raise InputError("history", "a row an epoch of its number, loss and seconds", row)
    return rows


def _prior(shares: list[Any] | None, n_classes: int) -> FloatArray | None:
    return None if shares is None else distribution("prior", shares, n_classes)


def _scaling(values: list[Any] | None, shape: list[int]) -> Scaling | None:
    if values is None:
        return None
    mean, deviation = finite_array("scaling", values, (2, *shape))
    if deviation.min() <= 0:
        raise InputError("scaling", "standard deviations above 0", f"{deviation.min():g}")
    return mean, deviation


def _chosen(plain: dict[str, Any] | None, settings: Collection[str]) -> dict[str, Any] | None:
    for name in plain or ():
        choice("chosen", name, settings)
    return plain


def _selection(rows: list[Any] | None) -> list[dict[str, Any]] | None:
    for row in rows or ():
        if not isinstance(row, dict) or not all(isinstance(value, SCALARS) for value in row.values()):
            raise InputError("selection", "a row of numbers and names a candidate", row)
    return rows


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
    if isinstance(value, EstimatedTransition):  # the belief keeps its errors and where it comes from
        return value.transition.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, torch.device) else value

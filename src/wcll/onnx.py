"""A fitted classifier as one ONNX file, which needs neither Python nor torch; checked before it is written.

Outputs are ``label``, the likeliest class by its name; ``probabilities`` as ``predict_proba`` gives them, where the
loss learns any; and ``logits``, scores for the class shares that predictions are for. Temperature, ``target_prior`` and
the mirror images of strong training are part of the file.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, field, replace
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from wcll import __version__
from wcll._files import check_target, replacing
from wcll._fitting import check_features
from wcll._validation import as_array, extra, positive, whole
from wcll.estimator import ComplementaryClassifier
from wcll.exceptions import InputError, InputTypeError
from wcll.models.registry import Family, alone

OPSET = 20  #: of ONNX; onnxruntime 1.18 and newer run it
OPSETS = range(18, 24)  #: that torch can write, and onnxruntime run
ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 3  #: where ONNX keeps its operators for text
TOLERANCE = 1e-5  #: that probabilities may be away from torch's
SCORES = 1e-4  #: that logits may be, as a share of the largest
MOST_CHECKED = 1000  #: samples that a file is checked on
TRACED = 3  #: samples that torch traces: for one or two it would not see that any number may come
MODULES = ("onnx", "onnxscript", "onnxruntime")  #: what the extra brings
#: Of torch: the first says that torchvision is not there, the second where in its own code an export failed.
LOGGERS = ("torch.onnx._internal.exporter._registration", "torch.fx.experimental.symbolic_shapes")
TEXTS, ENCODED = "texts", "encoded"  #: the input of columns of text, and what the network takes of them
OUTPUTS = {
    "label": "the likeliest class, by name",
    "logits": "scores, a column a class; over the temperature, logarithms of probabilities but for a constant a sample",
    "probabilities": "class probabilities, a column a class",
}

Feeds = Mapping[str, NDArray[Any]]  #: inputs of a file by name; samples come first


@dataclass(frozen=True, eq=False)
class Before:
    """What becomes of a file's inputs before the network takes them."""

    module: nn.Module  #: of numbers or images, then of categories as columns of 0 and 1, if there are any
    categories: tuple[tuple[str, ...], ...] = ()  #: of every column of the input ``texts``
    metadata: Mapping[str, Any] = field(default_factory=dict)  #: further entries, as JSON


@dataclass(frozen=True)
class Checked:
    """How a file compares with torch."""

    samples: int
    difference: float  #: the largest of probabilities; where there are none, of logits as a share of the largest


def to_onnx(
    classifier: ComplementaryClassifier,
    path: str | PathLike[str],
    example: Any,
    *,
    opset: int = OPSET,
    tolerance: float = TOLERANCE,
) -> Checked:
    """Write a fitted classifier to an ONNX file that takes what ``predict`` takes, in batches of any size.

    ``example`` are samples, best some of the data themselves: where the file's probabilities differ by more than
    ``tolerance`` from torch's on these, nothing is written. Its input is ``numbers``, of the classifier's dtype, or
    ``images``. A module of your own is written if torch can export it.
    """
    if not isinstance(classifier, ComplementaryClassifier):
        expected, remedy = "a fitted ComplementaryClassifier", "of a Pipeline, its last step"
        raise InputTypeError("classifier", expected, type(classifier).__name__, remedy)
    check_is_fitted(classifier)
    features = check_features(classifier, example, reset=False)
    if hasattr(classifier, "image_shape_"):
        X = as_array("example", example)
        before, feeds = before_images(classifier), image_feeds(classifier, X)
        return write_onnx(classifier, path, before, feeds, X, opset=opset, tolerance=tolerance)
    numbers = features.astype(classifier.fitted_.dtype)
    names = getattr(classifier, "feature_names_in_", None)
    said = {"columns": None if names is None else names.tolist(), "what": f"{numbers.dtype}, a row a sample"}
    before = Before(nn.Identity(), metadata={"inputs": {"numbers": said}})
    return write_onnx(classifier, path, before, {"numbers": numbers}, numbers, opset=opset, tolerance=tolerance)


class _Pixels(nn.Module):
    """Unsigned bytes as numbers in [0, 1]."""

    def forward(self, images: Tensor) -> Tensor:
        return images.float() / 255


def before_images(classifier: ComplementaryClassifier) -> Before:
    """Pixels as the classifier was fitted to them."""
    is_bytes = classifier.image_bytes_
    kind = "unsigned bytes" if is_bytes else classifier.fitted_.dtype
    said = {"shape": list(classifier.image_shape_), "what": f"{kind}, an image a sample"}
    return Before(_Pixels() if is_bytes else nn.Identity(), metadata={"inputs": {"images": said}})


def image_feeds(classifier: ComplementaryClassifier, images: NDArray[Any]) -> Feeds:
    """What such a file takes of images."""
    return {"images": images if classifier.image_bytes_ else images.astype(classifier.fitted_.dtype)}


class _Predictor(nn.Module):
    """Logits, and probabilities where there are some, of what a file takes; as ``predict_proba`` computes them.

    Small models compute in float64, as they do in torch; others in float32, which every runtime has.
    """

    shift: Tensor

    def __init__(self, classifier: ComplementaryClassifier, before: Before) -> None:
        super().__init__()
        network = copy.deepcopy(classifier.network_).cpu()
        self.rounded = getattr(torch, classifier.fitted_.dtype)
        self.dtype = torch.float64 if network.family.small else torch.float32
        self.network, self.before, self.mirrored = network.to(self.dtype), before.module, classifier.fitted_.mirrored
        self.temperature = classifier.temperature_
        self.outputs = ["logits", *(["probabilities"] if hasattr(classifier, "predict_proba") else [])]
        shift = classifier._shift()
        moved = np.zeros(len(classifier.classes_)) if shift is None else classifier.temperature_ * shift
        self.register_buffer("shift", torch.as_tensor(moved, dtype=self.dtype))
        self.eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        x = self.before(*inputs).to(self.rounded).to(self.dtype)
        if self.mirrored:
            both: Tensor = self.network(torch.cat([x, x.flip(-1)]))[0]
            logits = both.view(2, x.shape[0], -1).mean(0)
        else:
            logits = self.network(x)[0]
        logits = logits + self.shift
        if "probabilities" not in self.outputs:
            return (logits.float(),)
        return logits.float(), (logits / self.temperature).softmax(-1).float()


def write_onnx(
    classifier: ComplementaryClassifier,
    path: str | PathLike[str],
    before: Before,
    feeds: Feeds,
    X: Any,
    *,
    opset: int = OPSET,
    tolerance: float = TOLERANCE,
) -> Checked:
    """Write what takes ``feeds`` to a file, if it gives for them what the classifier gives for ``X``."""
    check_extra()
    try:
        target = Path(path)
    except TypeError:
        raise InputTypeError("path", "the path of a file", type(path).__name__) from None
    check_target(target, "path")
    positive("tolerance", tolerance)
    if whole("opset", opset) not in OPSETS:
        raise InputError("opset", f"one from {OPSETS[0]} to {OPSETS[-1]}", opset)
    predictor = _Predictor(classifier, before)
    with alone() if predictor.network.family is Family.OWN else nullcontext():  # it may draw while it is traced
        model = _exported(predictor, before, feeds, opset)
    _finish(model, classifier, before)
    written = _serialised(model)
    checked = _check(classifier, written, feeds, X, tolerance)
    with replacing(target, "path") as draft:
        draft.write_bytes(written)
    return checked


def check_extra() -> None:
    """Fail unless all is installed that writes and runs ONNX files."""
    for name in MODULES:
        extra(name, "onnx")


def _exported(predictor: _Predictor, before: Before, feeds: Feeds, opset: int) -> Any:
    """ONNX's model of a predictor; categories are columns of 0 and 1 yet."""
    numeric = {name: array for name, array in feeds.items() if name != TEXTS}
    rows = np.arange(TRACED) % len(next(iter(feeds.values())))
    traced = {name: torch.from_numpy(array[rows]) for name, array in numeric.items()}
    if before.categories:
        traced[ENCODED] = torch.zeros(TRACED, sum(map(len, before.categories)))
    sizes = tuple({0: torch.export.Dim("n")} for _ in traced)
    try:
        with _quiet():
            program = torch.export.export(predictor, tuple(traced.values()), dynamic_shapes=(sizes,), strict=False)
            written = torch.onnx.export(
                program,
                dynamo=True,
                input_names=list(traced),
                output_names=predictor.outputs,
                opset_version=opset,
                verbose=False,
            )
    except InputError:
        raise
    except Exception as error:  # modules of users fail in many ways
        expected = "a module that torch can export to ONNX, for any number of samples"
        remedy = "no if on values; x.shape[0], not len(x)"
        raise InputError("model", expected, _first_line(error), remedy) from None
    assert written is not None
    return written.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says of itself, and of an export that fails beside its error."""
    loggers = [logging.getLogger(name) for name in LOGGERS]

    def grave(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    for logger in loggers:
        logger.addFilter(grave)
    try:
        with redirect_stderr(StringIO()) as said, warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
        sys.stderr.write(said.getvalue())  # warnings of a user's module
    finally:
        for logger in loggers:
            logger.removeFilter(grave)


def _finish(model: Any, classifier: ComplementaryClassifier, before: Before) -> None:
    """Take texts instead of columns of 0 and 1, give names of classes, and say what all is."""
    helper = extra("onnx.helper", "onnx")
    graph, names = model.graph, [str(name) for name in classifier.classes_]
    try:
        encoded = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise InputError("classes", "names that UTF-8 can hold", ascii(error.object)) from None
    _forget_origin(graph)
    _take_texts(model, before.categories)
    words = extra("onnx", "onnx").TensorProto.STRING
    graph.initializer.append(helper.make_tensor("class_names", words, [len(names)], encoded))
    graph.node.append(helper.make_node("ArgMax", ["logits"], ["class_index"], axis=1, keepdims=0))
    graph.node.append(helper.make_node("Gather", ["class_names", "class_index"], ["label"], axis=0))
    outputs = [*graph.output]
    del graph.output[:]
    graph.output.extend([helper.make_tensor_value_info("label", words, ["n"]), *outputs])
    model.producer_name, model.producer_version, graph.name = "wcll", __version__, "classifier"
    said = {"classes": names, "outputs": {one.name: OUTPUTS[one.name] for one in graph.output}, **before.metadata}
    helper.set_model_props(model, {name: json.dumps(value) for name, value in said.items()})


def _forget_origin(graph: Any) -> None:
    """Without the lines of source that torch writes beside every operator: they name folders of this machine."""
    del graph.value_info[:], graph.metadata_props[:]
    for one in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        del one.metadata_props[:]
        one.doc_string = ""
    for one in (*graph.input, *graph.output):
        one.type.tensor_type.shape.dim[0].dim_param = "n"


def _take_texts(model: Any, categories: Sequence[Sequence[str]]) -> None:
    """Columns of 0 and 1 from an input of texts: a text that is no category of its column is 0 in all."""
    if not categories:
        return
    helper, graph = extra("onnx.helper", "onnx"), model.graph
    words, numbers = (getattr(extra("onnx", "onnx").TensorProto, name) for name in ("STRING", "INT64"))
    nodes, parts = [], [f"{ENCODED}_{j}" for j in range(len(categories))]
    for j, (part, known) in enumerate(zip(parts, categories, strict=True)):
        graph.initializer.append(helper.make_tensor(f"{part}_at", numbers, [], [j]))
        nodes.append(helper.make_node("Gather", [TEXTS, f"{part}_at"], [f"{part}_text"], axis=1))
        options = {"cats_strings": list(known), "zeros": 1, "domain": ML_DOMAIN}
        nodes.append(helper.make_node("OneHotEncoder", [f"{part}_text"], [part], **options))
    nodes.append(helper.make_node("Concat", parts, [ENCODED], axis=1))
    rest, inputs = [*graph.node], [one for one in graph.input if one.name != ENCODED]
    del graph.node[:], graph.input[:]
    graph.node.extend([*nodes, *rest])
    graph.input.extend([*inputs, helper.make_tensor_value_info(TEXTS, words, ["n", len(categories)])])
    model.opset_import.append(helper.make_opsetid(ML_DOMAIN, ML_OPSET))


def _serialised(model: Any) -> bytes:
    """As bytes that ONNX's own checks take."""
    checker = extra("onnx.checker", "onnx")
    try:
        checker.check_model(model)
        written: bytes = model.SerializeToString()
    except Exception as error:  # one of several kinds, such as of more than 2 GiB
        raise InputError("model", "one that ONNX can hold", _first_line(error)) from None
    return written


def _check(classifier: ComplementaryClassifier, written: bytes, feeds: Feeds, X: Any, tolerance: float) -> Checked:
    """Fail unless a file gives what torch gives on a CPU: for all samples at once, and for the first alone."""
    reference = copy.copy(classifier)
    reference.device = "cpu"
    reference.fitted_ = replace(classifier.fitted_, network=copy.deepcopy(classifier.network_))
    if hasattr(reference, "feature_names_in_"):  # samples are an array by now
        del reference.feature_names_in_
    some = {name: array[:MOST_CHECKED] for name, array in feeds.items()}
    few = X[: len(next(iter(some.values())))]
    logits = reference._scores(few).numpy()
    wanted = reference.predict_proba(few) if hasattr(reference, "predict_proba") else None
    found, first = (_run(written, part) for part in (some, {name: array[:1] for name, array in some.items()}))
    largest = max(1.0, float(np.abs(logits).max()))
    apart = _apart(found["logits"], logits) / largest
    pairs = [(found["logits"], logits, SCORES * largest), (first["logits"], logits[:1], SCORES * largest)]
    if wanted is not None:
        pairs += [(found["probabilities"], wanted, tolerance), (first["probabilities"], wanted[:1], tolerance)]
        apart = _apart(found["probabilities"], wanted)
    for got, right, most in pairs:
        if not _apart(got, right) <= most:
            expected = f"outputs within {most:.2g} of torch's"
            raise InputError("model", expected, f"{_apart(got, right):.2g} away", "nothing was written")
    names = [str(name) for name in classifier.classes_]
    if found["label"].tolist() != [names[k] for k in found["logits"].argmax(1)]:
        raise InputError("model", "names of classes as torch gives them", "others", "nothing was written")
    return Checked(len(logits), apart)


def _apart(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """The largest difference; NaN where a number is missing."""
    return float(np.abs(found - wanted).max()) if found.shape == wanted.shape else np.nan


def _run(written: bytes, feeds: Feeds) -> dict[str, NDArray[Any]]:
    """Outputs of a file, by onnxruntime."""
    runtime = extra("onnxruntime", "onnx")
    try:
        session = runtime.InferenceSession(written, providers=["CPUExecutionProvider"])
        outputs = [one.name for one in session.get_outputs()]
        return dict(zip(outputs, session.run(outputs, dict(feeds)), strict=True))
    except Exception as error:  # it has classes of its own for every failure
        raise InputError("model", "one that onnxruntime can run", _first_line(error)) from None


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)

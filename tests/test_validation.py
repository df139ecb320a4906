"""Silly values for every argument of the public functions: an InputError of one line, or a result that is finite."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import wcll.functional as F  # noqa: N812
from wcll import ComplementaryClassifier, evaluation, labels
from wcll._validation import as_array, numeric
from wcll.exceptions import InputError
from wcll.labels import Belief
from wcll.labels.encoding import encode_labels
from wcll.losses import Targets
from wcll.testing import loss_checks

Y = np.arange(12) % 3
X = np.random.default_rng(0).normal(size=(12, 3))
Q = labels.uniform_transition(3)
SHARES = np.full(3, 1 / 3)
Z = torch.tensor(X)
T = torch.tensor(Y)

#: Functions, and arguments with which they work.
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "encode_labels": (encode_labels, {"ybar": Y, "classes": [0, 1, 2]}),
    "make_complementary": (labels.make_complementary, {"y": Y, "transition": Q, "n_labels": 1, "n_classes": 3, "random_state": 0}),
    "to_mask": (labels.encoding.to_mask, {"labels": Y, "n_classes": 3}),
    "check_mask": (labels.encoding.check_mask, {"mask": np.eye(3, dtype=bool), "n_classes": 3}),
    "to_pairs": (labels.to_pairs, {"mask": np.eye(3, dtype=bool)}),
    "imbalance_counts": (labels.imbalance_counts, {"n": 90, "n_classes": 3, "minority": [0], "p": 2.0}),
    "imbalance_counts of a majority": (labels.imbalance_counts, {"n_majority": 9, "n_classes": 3, "minority": [0], "p": 2.0}),
    "long_tailed_counts": (labels.imbalance.long_tailed_counts, {"n_majority": 90, "n_classes": 3, "p": 2.0}),
    "step_counts": (labels.imbalance.step_counts, {"n_majority": 9, "n_classes": 3, "p": 2.0}),
    "make_imbalance": (labels.make_imbalance, {"y": Y, "counts": np.array([1, 2, 3]), "random_state": 0}),
    "observed_marginal": (labels.observed_marginal, {"ybar": Y, "n_classes": 3, "sample_weight": np.ones(12)}),
    "ordinary_prior": (labels.counts.ordinary_prior, {"ybar": Y, "transition": Q}),
    "recover_inverse_size": (labels.counts.recover_inverse_size, {"ybar": Y, "n_classes": 3}),
    "describe_labels": (labels.counts.describe_labels, {"ybar": Y, "n_classes": 3, "transition": Q}),
    "label_health": (labels.label_health, {"ybar": Y, "classes": [0, 1, 2], "annotators": np.arange(12) % 2}),
    "label_health of lists": (labels.label_health, {"ybar": [[0, 1], [2, 2], [1, 0]]}),
    "biased_transition": (labels.biased_transition, {"n_classes": 3, "strength": "weak", "random_state": 0}),
    "uniform_transition": (labels.uniform_transition, {"n_classes": 3}),
    "complementary_prior": (labels.transition.complementary_prior, {"sizes": np.array([1.0, 2.0, 3.0])}),
    "inverse_size_transition": (labels.inverse_size_transition, {"sizes": np.array([1.0, 2.0, 3.0])}),
    "transition_from_pi": (labels.transition_from_pi, {"pi": SHARES}),
    "make_transition": (labels.transition.make_transition, {"kind": "inverse-size", "sizes": np.array([1, 2, 3]), "random_state": 0}),
    "noisy_transition": (labels.noisy_transition, {"matrix": Q, "rate": 0.1}),
    "select_by_marginal": (labels.transition.select_by_marginal, {"ybar": Y, "target": SHARES, "n": 6, "random_state": 0}),
    "selected_joint": (labels.transition.selected_joint, {"transition": Q, "target": SHARES, "prior": SHARES}),
    "eq13": (labels.weights.eq13, {"pi": SHARES}),
    "class_weights": (
        labels.class_weights,
        {"scheme": "wcll", "ybar": Y, "n_classes": 3, "pi": "declared", "sizes": np.ones(3), "sample_weight": np.ones(12)},
    ),
    "own class_weights": (labels.class_weights, {"scheme": np.ones(3), "ybar": Y, "n_classes": 3}),
    "biased class_weights": (labels.class_weights, {"scheme": "wcll-bias", "ybar": Y, "n_classes": 3, "bias": 0.1}),
    "effective class_weights": (labels.class_weights, {"scheme": "effective-number", "ybar": Y, "n_classes": 3, "beta": 0.9}),
    "resample": (labels.resample, {"X": X, "ybar": Y, "by": Y, "strategy": "over", "random_state": 0}),
    "Belief.of": (Belief.of, {"told": Q, "totals": np.array([4.0, 4.0, 4.0])}),
    "Belief.true": (Belief.true, {"transition": Q, "prior": SHARES}),
    "Belief.given": (Belief.given, {"transition": Q, "totals": np.array([4.0, 4.0, 4.0])}),
    "label_free_accuracy": (
        evaluation.label_free_accuracy, {"ybar": Y, "predicted": Y, "transition": Q, "sample_weight": np.ones(12)}
    ),
    "complementary_log_likelihood": (
        evaluation.label_free.complementary_log_likelihood,
        {"ybar": Y, "probabilities": np.full((12, 3), 1 / 3), "transition": Q, "sample_weight": np.ones(12)},
    ),
    "complementary_table": (partial(evaluation.complementary_table, n_classes=3), {"ybar": Y, "predicted": Y}),
    "Confusion.of": (evaluation.metrics.Confusion.of, {"y": Y, "predicted": Y, "n_classes": 3}),
    "zero_one_risk": (evaluation.selection.zero_one_risk, {"tables": np.ones((3, 3)), "transition": Q}),
    "smoothed": (evaluation.selection.smoothed, {"scores": np.ones(4)}),
    "select": (evaluation.selection.select, {"candidates": [np.ones(4), np.zeros(4)]}),
    "checkpoints": (evaluation.checkpoints, {"epochs": 5}),
    "log": (F.log, {"logits": Z, "ybar": T, "weight": np.ones(3), "reduction": "mean"}),
    "forward": (F.forward, {"logits": Z, "ybar": T, "transition": Q, "weight": np.ones(3)}),
    "nn": (F.nn, {"logits": Z, "ybar": T, "transition": Q, "marginal": SHARES, "beta": 0.1}),
    "scarce": (F.scarce, {"logits": Z, "ybar": T, "prior": SHARES}),
    "wcll": (F.wcll, {"logits": Z, "ybar": T, "weight": np.ones(3), "pi": SHARES, "reading": "eq12"}),
    "gce": (F.gce, {"logits": Z, "ybar": T, "q": 0.5}),
    "phuber": (F.phuber, {"logits": Z, "ybar": T, "tau": 3.0}),
    "logit_adjusted": (F.logit_adjusted, {"logits": Z, "y": T, "marginal": SHARES, "tau": 1.0}),
    "Targets.of": (Targets.of, {"ybar": T, "n_classes": 3, "sample_weight": torch.ones(12)}),
    "loss_checks": (loss_checks, {"loss": "pc", "context": (), "options": {}, "n_classes": 5, "seed": 0}),
}  # fmt: skip

masked = np.ma.masked_equal


def wrong(good: Any) -> dict[str, Any]:
    """What an array must never be silently: something is lost, or it is no array of numbers."""
    plain = np.asarray(good, dtype=float)
    tensor = torch.tensor(plain)
    return {
        "masked": np.ma.array(np.asarray(good), mask=np.arange(plain.size).reshape(plain.shape) == 0),
        "list of masked": [np.ma.array(row, mask=True) for row in np.asarray(good)],
        "text": np.asarray(good).astype(str),
        "complex": plain + 1j,
        "sparse": scipy.sparse.csr_array(np.atleast_2d(plain)),
        "sparse tensor": tensor.to_sparse(),
        "meta tensor": tensor.to("meta"),
        "nested tensor": torch.nested.nested_tensor([tensor, tensor], layout=torch.jagged),
        "objects": np.full(plain.shape, object(), dtype=object),
        "dates": np.full(plain.shape, "2020-01-01", dtype="datetime64[D]"),
        "mapping": {"a": 1},
        "set": {1, 2},
        "text alone": "x",
        "number": 3,
        "ragged": [[1], [1, 2]],
        "nothing": np.zeros(0),
        "no columns": np.zeros((3, 0)),
        "NaN": np.full(plain.shape, np.nan),
        "infinite": np.full(plain.shape, np.inf),
        "negative": np.full(plain.shape, -1.0),
    }


ODD: dict[str, Any] = {
    "None": None, "minus one": -1, "zero": 0, "huge": 10**15, "larger": 10**400, "1e308": 1e308, "tiny": 5e-324, "NaN": np.nan,
    "infinity": np.inf, "half": 0.5, "True": True, "x": "x", "list": [], "tuple": (0.5,), "dict": {}, "set": {1}, "object": object(),
    "complex": 1j, "bytes": b"x", "0-d": np.array(1), "long text": "x" * 5000, "huge list": [10**400], "ones": [1e308] * 3,
    "many ones": np.full(12, 1e308), "tiny ones": np.full(12, 5e-324), "large": np.array([2**63] * 12, dtype=np.uint64),
    "truths": np.ones(12, dtype=bool), "zeros": np.zeros((3, 3)), "1e308s": np.full((3, 3), 1e308), "bfloat16": torch.ones(3).bfloat16(),
}  # fmt: skip


def is_array(value):
    return isinstance(value, np.ndarray | torch.Tensor) or (isinstance(value, list) and len(value) > 1)


PLACES = [(name, argument) for name, (_, given) in CALLS.items() for argument in given]


def check_finite(found):
    """No NaN or infinity anywhere in a result."""
    if dataclasses.is_dataclass(found):
        found = [getattr(found, field.name) for field in dataclasses.fields(found)]
    if isinstance(found, list | tuple):
        for part in found:
            check_finite(part)
    elif isinstance(found, dict):
        check_finite(list(found.values()))
    elif isinstance(found, float | np.ndarray | torch.Tensor) and np.asarray(found).dtype.kind == "f":
        assert np.isfinite(np.asarray(found)).all()


def attempt(function, given):
    """What a call gives, or None if it says in one line what is wrong."""
    try:
        return function(**given)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return None


@pytest.mark.parametrize(("name", "argument"), PLACES, ids=str)
def test_odd_arguments_are_one_line_or_work(name, argument):
    function, given = CALLS[name]
    assert function(**given) is not None
    for value in ODD.values():
        found = attempt(function, {**given, argument: value})
        if argument not in (
            "X",
            "logits",
            "candidates",
            "scores",
        ):  # what losses and scores make of large numbers is theirs
            check_finite(found)


@pytest.mark.parametrize(
    ("name", "argument"), [place for place in PLACES if is_array(CALLS[place[0]][1][place[1]])], ids=str
)
def test_arrays_that_lose_something_are_refused(name, argument):
    function, given = CALLS[name]
    silent = [
        kind
        for kind, value in wrong(given[argument]).items()
        if attempt(function, {**given, argument: value}) is not None
    ]
    fine = {"X": [*wrong(X)], "logits": ["NaN", "infinite", "negative"], "classes": ["text", "negative"]}
    fine |= {"candidates": ["NaN", "infinite", "negative"], "scores": ["NaN", "infinite", "negative"]}
    fine |= {
        "annotators": ["text"],
        "ybar": {
            "label_health of lists": ["text", "ragged"],
            "encode_labels": ["text", "negative", "ragged"],
            "resample": [*wrong(X)],
        }.get(name, []),
        "labels": ["ragged"],
    }
    assert not set(silent) - set(fine.get(argument, []))


def estimate(X=X, y=Y, sample_weight=None, **settings):
    given = {"loss": "log", "max_epochs": 1, "random_state": 0, **settings}
    return ComplementaryClassifier(**given).fit(X, y, sample_weight=sample_weight).decision_function(X)


SETTINGS = {name: value for name, value in ComplementaryClassifier().get_params().items() if name != "loss"}
GOOD = {"X": X, "y": Y, "sample_weight": np.ones(12), "weights": np.ones(3), "transition": Q, "classes": np.arange(3)}


@pytest.mark.parametrize("argument", [*SETTINGS, "loss", "X", "y", "sample_weight"])
def test_the_estimator_takes_no_odd_argument(argument):
    for kind, value in ODD.items():
        if argument == "callbacks" and kind in ("list", "tuple", "dict"):
            continue
        if argument in ("max_epochs", "batch_size") and kind == "huge":
            continue  # a long training is a training
        check_finite(attempt(estimate, {argument: value}))


@pytest.mark.parametrize("argument", GOOD)
def test_the_estimator_loses_nothing(argument):
    values = wrong(GOOD[argument])
    silent = [kind for kind, value in values.items() if attempt(estimate, {argument: value}) is not None]
    fine = {"X": ["negative", "sparse"], "y": ["text"], "sample_weight": [], "classes": []}
    assert not set(silent) - set(fine.get(argument, []))


def test_what_is_like_an_array_is_one():
    for form in (
        [1, 2.5],
        (1, 2.5),
        np.array([1, 2.5]),
        torch.tensor([1, 2.5]),
        np.ma.array([1, 2.5]),
        torch.tensor([1, 2.5]).bfloat16(),
    ):
        assert numeric("x", form).tolist() == [1, 2.5]
    assert numeric("x", np.array([1, 2.5], dtype=object)).tolist() == [1, 2.5]
    assert as_array("x", torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    assert as_array("x", ["a", "b"]).tolist() == ["a", "b"]

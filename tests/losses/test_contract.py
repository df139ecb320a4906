"""What every registered loss must fulfil: the contract of `wcll.testing`, its oracle, and its closed gradient."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
import torch

from cases import CASES, Case, context, labels, value
from oracles import ORACLES, op_w_gradient
from wcll import functional
from wcll.exceptions import InputError
from wcll.losses import LOSSES, Context, LossModule, Targets
from wcll.losses.targets import Transition
from wcll.testing import example_logits as logits
from wcll.testing import loss_checks

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
K, N = 5, 12


def as_sets(ybar: torch.Tensor) -> list[list[int]]:
    if ybar.dtype == torch.bool:
        return [row.nonzero().flatten().tolist() for row in ybar]
    return [[label] for label in ybar.tolist()]


def oracle(case: Case, f: torch.Tensor, ybar: torch.Tensor, sample_weight: torch.Tensor | None, given: dict) -> float:
    plain = {name: array.tolist() for name, array in given.items()}
    weights = None if sample_weight is None else sample_weight.tolist()
    return ORACLES[case.name](f.tolist(), as_sets(ybar), sample_weight=weights, **plain, **case.options)


def test_every_registered_loss_has_a_case_and_an_oracle():
    assert {case.name for case in CASES} == set(LOSSES) == set(ORACLES)


@every_case
def test_contract(case):
    checks = list(loss_checks(case.name, context=case.context, options=case.options))
    assert checks
    for check in checks:
        try:
            check()
        except Exception as error:
            error.add_note(f"in the check: {check}")
            raise


@every_case
def test_oracle(case):
    for seed, weighted in product(range(3), (False, True)):
        f, ybar, given = logits(N, K, seed=seed), labels(case, N, K, seed), context(case, K, seed)
        weight = torch.rand(N, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) if weighted else None
        expected = oracle(case, f, ybar, weight, given)
        ours = float(value(case, f, ybar, weight, **given))
        assert ours == pytest.approx(expected, rel=1e-10, abs=1e-10), (seed, weighted)


@every_case
def test_oracle_at_extreme_logits(case):
    f = logits(N, K, scale=1.0).sign() * 1e4 + logits(N, K, seed=1)
    ybar, given = labels(case, N, K), context(case, K)
    expected = oracle(case, f, ybar, None, given)
    assert float(value(case, f, ybar, **given)) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@every_case
def test_oracle_with_many_classes_and_large_logits(case):
    for k, scale in product((10, 50), (1.0, 3.0, 10.0)):
        f, ybar, given = logits(4, k, scale=scale), labels(case, 4, k), context(case, k)
        expected = oracle(case, f, ybar, None, given)
        assert float(value(case, f, ybar, **given)) == pytest.approx(expected, rel=1e-10, abs=1e-10), (k, scale)


@pytest.mark.parametrize("k", [3, 10, 50, 100])
@pytest.mark.parametrize("scale", [1.0, 3.0, 10.0])
def test_op_w_is_the_published_formula(k, scale):
    f, ybar = logits(40, k, scale=scale), torch.arange(40) % k
    targets = Targets.of(ybar, k)
    leaf = f.clone().requires_grad_()
    loss = LOSSES["op-w"].function(leaf, targets)
    (gradient,) = torch.autograd.grad(loss, leaf)
    rows, sets = f.tolist(), as_sets(ybar)
    assert float(loss.detach()) == pytest.approx(ORACLES["op-w"](rows, sets), rel=1e-12, abs=1e-15)
    expected = [op_w_gradient(row, chosen[0]) for row, chosen in zip(rows, sets, strict=True)]
    assert gradient.flatten().tolist() == pytest.approx([g / len(rows) for row in expected for g in row], abs=1e-12)


def test_op_w_stays_finite_in_float32():
    f = torch.tensor([[1e4, -1e4, 0.0, 5.0], [-1e4, -1e4, 1e4, 0.0], [0.0, 0.0, 0.0, 0.0]], requires_grad=True)
    for label in range(4):
        loss = LOSSES["op-w"].function(f, Targets.of(torch.full((3,), label), 4))
        (gradient,) = torch.autograd.grad(loss, f)
        assert loss.isfinite(), label
        assert gradient.isfinite().all(), label


@pytest.mark.parametrize("name", ["scarce", "ml-cll"])
def test_softplus_is_exact_where_logits_are_large(name):
    case = next(case for case in CASES if case.name == name)
    f, ybar, given = 20.5 + logits(N, K, scale=0.1), labels(Case("pc"), N, K), context(case, K)
    expected = oracle(case, -f, ybar, None, given)  # far below 0: the exponential is all that is left
    assert float(value(case, -f, ybar, **given)) == pytest.approx(expected, rel=1e-14)
    leaf = f.clone().requires_grad_()
    (slope,) = torch.autograd.grad(value(case, leaf, ybar, **given), leaf)
    (mirrored,) = torch.autograd.grad(value(case, leaf - 1e-3, ybar, **given), leaf)
    assert not torch.equal(slope, mirrored)  # a threshold makes it constant


@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("name", ["nn", "ga", "ncll"])
def test_gradcheck_of_corrections_with_and_without_negative_risks(name, scale):
    case, ybar = Case(name, ("marginal",), {"base": "gce"} if name == "ncll" else {}), labels(Case("pc"), 40, K)
    f, given = logits(40, K, scale=scale).requires_grad_(), context(case, K)
    assert torch.autograd.gradcheck(lambda z: value(case, z, ybar, **given), f)


@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("options", [{}, {"strength": 2.0}, {"bound": 0.3}, {"strength": 4.0, "power": 2.0}], ids=str)
@pytest.mark.parametrize("reading", ["algorithm1", "eq9"])
def test_gradcheck_of_the_penalty_with_and_without_negative_risks(reading, options, scale):
    case, ybar = Case("wcll-penalty", ("weight", "pi"), {"reading": reading, **options}), labels(Case("pc"), 40, K)
    f, given = logits(40, K, scale=scale).requires_grad_(), context(case, K)
    assert torch.autograd.gradcheck(lambda z: value(case, z, ybar, **given), f)


@every_case
def test_runs_may_have_labels_and_context_of_their_own(case):
    f, runs = logits(3, N, K), range(3)
    given = [context(case, K, seed) for seed in runs]
    stacked = {name: torch.from_numpy(np.stack([one[name] for one in given])) for name in case.context}
    if "transition" in stacked:
        stacked["transition"] = Transition.of(stacked["transition"], f)
    for sets, shared in product((True, False) if case.several else (False,), (True, False)):
        kind = case if sets else Case("pc")
        ybar = torch.stack([labels(kind, N, K, 0 if shared else seed) for seed in runs])
        together = value(case, f, ybar[0] if shared else ybar, **stacked)
        alone = torch.stack([value(case, f[run], ybar[run], **given[run]) for run in runs])
        torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)


@every_case
def test_the_faces_agree(case):
    """The function with plain arrays, the function with targets, the registry and the module are one."""
    f, ybar, given = logits(N, K), labels(case, N, K), context(case, K)
    spec, expected = LOSSES[case.name], value(case, f, ybar, **given)
    function = getattr(functional, case.name.replace("-", "_"))
    bound = spec.bind(Context(**given).to(f), **case.options)
    module = LossModule(spec.name, **given, **case.options)
    for loss in (function(f, ybar, **given, **case.options), bound(f, Targets.of(ybar, K)), module(f, ybar)):
        torch.testing.assert_close(loss, expected, rtol=1e-14, atol=1e-14)


def is_class_form(case):
    if case.name == "logit-adjusted":
        return False  # its marginal makes margins, not class means
    built_on_means = case.name in ("nn", "ga", "ncll", "scarce", "wcll-penalty") or "balance" in case.options
    return built_on_means or "marginal" in case.context or _algorithm1(case)


def _algorithm1(case):
    return {**LOSSES[case.name].options, **case.options}.get("reading") == "algorithm1"


@every_case
def test_class_forms_and_no_others_lack_a_value_a_sample(case):
    f, ybar, given = logits(2, N, K), labels(case, N, K), context(case, K)
    refused = pytest.raises(InputError, match=r"reduction: expected 'mean' for loss .*class means over the batch")
    with refused if is_class_form(case) else nullcontext():
        LOSSES[case.name].function(f, ybar, **given, **case.options, reduction="none")


@every_case
def test_two_classes(case):
    f, ybar = logits(N, 2), torch.arange(N) % 2
    given = context(case, 2)
    assert float(value(case, f, ybar, **given)) == pytest.approx(
        oracle(case, f, ybar, None, given), rel=1e-10, abs=1e-10
    )


def gradients(case, f, targets, given):
    """The closed gradient (or the fallback) of a trainer, and autograd's."""
    ready = Context(**{name: torch.as_tensor(v) for name, v in given.items()}).to(f)
    spec = LOSSES[case.name]
    gradient = spec.bind_gradient(ready, **case.options)
    found = gradient(f, f.softmax(-1), targets)
    across = f.mT.contiguous().mT  # as the engine lays them out
    assert torch.allclose(gradient(across, across.softmax(-1), targets), found, atol=1e-12, rtol=1e-10)
    leaf = f.detach().requires_grad_()
    (expected,) = torch.autograd.grad(spec.bind(ready, **case.options)(leaf, targets).sum(), leaf)
    return found, expected


@every_case
def test_closed_gradient_is_autograds(case):
    for sets, weighted, scale in product((False, True) if case.several else (False,), (False, True), (1.0, 8.0)):
        ybar = labels(case if sets else Case("pc"), N, K)
        weight = torch.rand(N, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) if weighted else None
        targets = Targets.of(ybar, K, weight, 0.5 if weighted else 1.0)
        found, expected = gradients(case, logits(3, N, K, scale=scale), targets, context(case, K))
        assert found.shape == (3, N, K)
        assert (found - expected).abs().max() < 1e-10, (sets, weighted, scale)


@every_case
def test_closed_gradient_at_extreme_logits(case):
    f = logits(N, K, scale=1.0).sign() * 1e4 + logits(N, K, seed=1)
    found, expected = gradients(case, f, Targets.of(labels(case, N, K), K), context(case, K))
    assert found.isfinite().all()
    assert (found - expected).abs().max() < 1e-10 * max(1, float(expected.abs().max()))


def test_the_papers_methods_have_closed_gradients():
    closed = {name for name, spec in LOSSES.items() if spec.gradient}
    assert closed >= {
        "pc",
        "nn",
        "free",
        "log",
        "exp",
        "l-w",
        "l-uw",
        "ncll",
        "ml-cll",
        "wcll",
        "wcll-penalty",
        "wcll-adaptive",
        "forward",
        "ga",
        "cross-entropy",
        "logit-adjusted",
    }

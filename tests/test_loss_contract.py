"""What every loss must fulfil: its oracle, its gradient, extreme logits, independent runs, equivariance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cases import CASES, Case, context, labels, logits, value
from oracles import ORACLES
from test_loss_exports import class_of
from wcll import functional
from wcll.checks import InputError
from wcll.losses import LOSSES, Context, Targets

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
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "sample_weight"])
def test_oracle(case, seed, weighted):
    f, ybar, given = logits(N, K, seed=seed), labels(case, N, K, seed), context(case, K, seed)
    sample_weight = (
        torch.rand(N, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) if weighted else None
    )
    ours = float(value(case, f, ybar, sample_weight, **given))
    assert ours == pytest.approx(oracle(case, f, ybar, sample_weight, given), rel=1e-10, abs=1e-10)


@every_case
def test_oracle_at_extreme_logits(case):
    f = logits(N, K, scale=1.0).sign() * 1e4 + logits(N, K, seed=1)
    ybar, given = labels(case, N, K), context(case, K)
    expected = oracle(case, f, ybar, None, given)
    assert float(value(case, f, ybar, **given)) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@every_case
def test_gradcheck(case):
    f, ybar, given = logits(N, K).requires_grad_(), labels(case, N, K), context(case, K)
    assert torch.autograd.gradcheck(lambda z: value(case, z, ybar, **given), f)


@pytest.mark.parametrize("scale", [1.0, 8.0])
@pytest.mark.parametrize("name", ["nn", "ga", "ncll"])
def test_gradcheck_of_corrections_with_and_without_negative_risks(name, scale):
    case, ybar = Case(name, ("marginal",), {"base": "gce"} if name == "ncll" else {}), labels(Case("pc"), 40, K)
    f, given = logits(40, K, scale=scale).requires_grad_(), context(case, K)
    assert torch.autograd.gradcheck(lambda z: value(case, z, ybar, **given), f)


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_logits_give_finite_values_and_gradients(case, dtype):
    signs = torch.tensor(list(np.ndindex(*(2,) * K)), dtype=dtype) * 2 - 1  # every pattern of +-1e4, ties included
    f = (1e4 * signs).requires_grad_()
    for seed in range(3):
        ybar = labels(case, len(f), K, seed)
        loss = value(case, f, ybar, **context(case, K))
        (gradient,) = torch.autograd.grad(loss, f)
        assert loss.isfinite()
        assert gradient.isfinite().all()


@every_case
def test_runs_do_not_leak(case):
    f, ybar, given = logits(2, 3, N, K).requires_grad_(), labels(case, N, K), context(case, K)
    loss = value(case, f, ybar, **given)
    assert loss.shape == (2, 3)
    (gradient,) = torch.autograd.grad(loss[0, 0], f)
    others = gradient.flatten(0, 1)[1:]
    assert others.abs().max() == 0
    alone = value(case, f[1, 2].detach(), ybar, **given)
    torch.testing.assert_close(loss[1, 2].detach(), alone, rtol=1e-12, atol=1e-12)


@every_case
@pytest.mark.parametrize("shared", [True, False], ids=["shared labels", "own labels"])
@pytest.mark.parametrize("sets", [True, False], ids=["sets", "single"])
def test_runs_may_have_labels_and_context_of_their_own(case, sets, shared):
    f, runs = logits(3, N, K), range(3)
    kind = case if sets else Case("pc")
    ybar = torch.stack([labels(kind, N, K, 0 if shared else seed) for seed in runs])
    given = [context(case, K, seed) for seed in runs]
    stacked = {name: torch.from_numpy(np.stack([one[name] for one in given])) for name in case.context}
    if "transition" in stacked:
        from wcll.losses import Transition

        stacked["transition"] = Transition.of(stacked["transition"], f)
    together = value(case, f, ybar[0] if shared else ybar, **stacked)
    alone = torch.stack([value(case, f[run], ybar[run], **given[run]) for run in runs])
    torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)


@every_case
def test_permuting_classes_everywhere_changes_nothing(case):
    f, ybar, given = logits(N, K), labels(case, N, K), context(case, K)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = {k: v[order][:, order] if v.ndim == 2 else v[order] for k, v in given.items()}
    relabelled = ybar[:, order] if ybar.dtype == torch.bool else order.argsort()[ybar]
    torch.testing.assert_close(
        value(case, f[:, order], relabelled, **moved), value(case, f, ybar, **given), rtol=1e-12, atol=1e-12
    )


@every_case
def test_shuffling_samples_changes_nothing(case):
    f, ybar, given = logits(N, K), labels(case, N, K), context(case, K)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(value(case, f[order], ybar[order], **given), value(case, f, ybar, **given))


@every_case
def test_integer_sample_weight_equals_repetition(case):
    f, ybar, given = logits(N, K), labels(case, N, K), context(case, K)
    times = torch.tensor([1, 2, 3] * (N // 3))
    repeated = value(case, f.repeat_interleave(times, 0), ybar.repeat_interleave(times, 0), **given)
    mass = float(times.sum()) / N
    weighted = value(case, f, ybar, times / mass, mass, **given)
    torch.testing.assert_close(weighted, repeated, rtol=1e-10, atol=1e-10)


@every_case
def test_the_faces_agree(case):
    """The function with plain arrays, the function with targets, the registry and the module are one."""
    f, ybar, given = logits(N, K), labels(case, N, K), context(case, K)
    spec, expected = LOSSES[case.name], value(case, f, ybar, **given)
    function = getattr(functional, case.name.replace("-", "_"))
    bound = spec.bind(Context(**given).beside(f), **case.options)
    module = class_of(spec)(**given, **case.options)
    for loss in (function(f, ybar, **given, **case.options), bound(f, Targets.of(ybar, K)), module(f, ybar)):
        torch.testing.assert_close(loss, expected, rtol=1e-14, atol=1e-14)


def is_class_form(case):
    if case.name == "logit-adjusted":
        return False  # its marginal makes margins, not class means
    return case.name in ("nn", "ga", "ncll", "scarce") or "marginal" in case.context or "algorithm1" in case.id


@pytest.mark.parametrize("case", [case for case in CASES if not is_class_form(case)], ids=lambda case: case.id)
def test_reductions(case):
    f, ybar, given = logits(2, N, K), labels(case, N, K), context(case, K)
    samples, mean, total = (
        LOSSES[case.name].function(f, ybar, **given, **case.options, reduction=r) for r in ("none", "mean", "sum")
    )
    assert samples.shape == (2, N)
    torch.testing.assert_close(samples.mean(-1), mean)
    torch.testing.assert_close(samples.sum(-1), total)


@pytest.mark.parametrize("case", [case for case in CASES if is_class_form(case)], ids=lambda case: case.id)
def test_class_forms_have_no_value_a_sample(case):
    f, ybar, given = logits(2, N, K), labels(case, N, K), context(case, K)
    with pytest.raises(InputError, match=r"reduction: expected 'mean' for loss .*class means over the batch"):
        LOSSES[case.name].function(f, ybar, **given, **case.options, reduction="none")


@every_case
def test_one_class_may_be_absent_from_a_batch(case):
    f = logits(N, K).requires_grad_()
    ybar = torch.arange(N) % (K - 1)  # nobody is labelled K - 1
    loss = value(case, f, ybar, **context(case, K))
    (gradient,) = torch.autograd.grad(loss, f)
    assert gradient.isfinite().all()


@every_case
def test_two_classes(case):
    f, ybar = logits(N, 2), torch.arange(N) % 2
    given = context(case, 2)
    assert float(value(case, f, ybar, **given)) == pytest.approx(
        oracle(case, f, ybar, None, given), rel=1e-10, abs=1e-10
    )


def gradients(case, f, targets, given):
    """The closed gradient (or the fallback) of a trainer, and autograd's."""
    ready = Context(**{name: torch.as_tensor(v) for name, v in given.items()}).beside(f)
    spec = LOSSES[case.name]
    gradient = spec.bind_gradient(ready, **case.options)
    found = gradient(f, f.softmax(-1), targets)
    across = f.mT.contiguous().mT  # as the engine lays them out
    assert torch.allclose(gradient(across, across.softmax(-1), targets), found, atol=1e-12, rtol=1e-10)
    leaf = f.detach().requires_grad_()
    (expected,) = torch.autograd.grad(spec.bind(ready, **case.options)(leaf, targets).sum(), leaf)
    return found, expected


@every_case
@pytest.mark.parametrize("sets", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "sample_weight"])
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_closed_gradient_is_autograds(case, sets, weighted, scale):
    if sets and not case.several:
        return
    ybar = labels(case if sets else Case("pc"), N, K)
    weight = torch.rand(N, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) if weighted else None
    targets = Targets.of(ybar, K, weight, 0.5 if weighted else 1.0)
    found, expected = gradients(case, logits(3, N, K, scale=scale), targets, context(case, K))
    assert found.shape == (3, N, K)
    assert (found - expected).abs().max() < 1e-10


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
        "forward",
        "ga",
        "cross-entropy",
        "logit-adjusted",
    }

"""The checks for somebody's own loss: a right loss passes them all, and each catches the fault that it is for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from wcll import functional
from wcll.exceptions import InputError
from wcll.losses import LOSSES
from wcll.losses.targets import apply_reduction, reduce_samples
from wcll.testing import check_loss, loss_checks


def right(logits, targets, *, weight=None, reduction="mean"):
    """The mean probability of a sample's labels."""
    per_sample = (targets.share(logits) * logits.softmax(-1)).sum(-1)
    return reduce_samples(per_sample, targets, weight, reduction)


def mean_over_all_runs(logits, targets):
    return right(logits, targets).mean()


def single_precision(logits, targets):
    return right(logits.float(), targets)


def python_number(logits, targets):
    return float(right(logits, targets).sum())


def overflow(logits, targets):
    return right(logits.exp() / logits.exp().sum(-1, keepdim=True), targets)


def infinite_slope(logits, targets):
    return (logits.softmax(-1).sqrt() * targets.share(logits)).sum(-1).mean(-1)


def half_detached(logits, targets):
    return right(logits, targets) + right(logits, targets).detach()


def detached(logits, targets):
    return right(logits, targets).detach()


def scaled_by_all_runs(logits, targets):
    return right(logits, targets) * logits.detach().square().mean()


def deaf(logits, targets):
    return logits.softmax(-1).square().sum(-1).mean(-1)


def centred_over_runs(logits, targets):
    value = right(logits, targets)
    return value - value.mean() + value.mean().detach()


def first_class_counts_more(logits, targets):
    return right(logits, targets) + logits.softmax(-1)[..., 0].mean(-1)


def next_class(logits, targets):  # a neighbour stays one if all classes move on by one
    return right(logits.roll(1, -1), targets)


def first_sample_counts_more(logits, targets):
    return right(logits, targets) + logits.softmax(-1)[..., 0, :].square().sum(-1)


def mean_of_class_means(logits, targets):
    value = (targets.mask * logits.softmax(-1)).sum(-2) / targets.mask.sum(-2)
    return value.mean(-1)


def first_label_only(logits, targets):
    share = torch.nn.functional.one_hot(targets.mask.long().argmax(-1), logits.shape[-1])
    return reduce_samples((share * logits.softmax(-1)).sum(-1), targets, None, "mean")


def set_of_one_is_another(logits, targets):
    return right(logits, targets) * (2 if targets.index is None else 1)


def no_sample_weight(logits, targets):
    return (targets.share(logits) * logits.softmax(-1)).sum((-2, -1)) / len(targets)


def sum_is_mean(logits, targets, *, reduction="mean"):
    return right(logits, targets, reduction="mean" if reduction == "sum" else reduction)


def none_is_mean(logits, targets, *, reduction="mean"):
    return right(logits, targets)


def sum_by_default(logits, targets, *, reduction="sum"):
    return right(logits, targets, reduction=reduction)


def test_a_right_loss_passes():
    check_loss(right)
    check_loss(right, several=True, context=["weight"], n_classes=3, seed=1)
    check_loss(right, options={"weight": [0.5, 1.0, 1.5, 1.0, 1.0]})


@pytest.mark.parametrize(
    ("loss", "check", "seen"),
    [
        (mean_over_all_runs, "result", r"logits of shape \(3, 12, 5\) gave a result of shape \(\) instead of \(3,\)"),
        (single_precision, "result", "logits of torch.float64 gave a result of torch.float32"),
        (python_number, "result", "the result is of type float instead of a tensor"),
        (overflow, "extreme logits", "the loss is nan at logits of ±10000"),
        (infinite_slope, "extreme logits", "the gradient has .* entries such as nan at logits of ±10000"),
        (half_detached, "gradient", r"sample \d+, class \d: .* by autograd, .* by numerical differentiation"),
        (detached, "gradient", "the result has no gradient in the logits"),
        (scaled_by_all_runs, "run independence", "the loss of a run alone is .* among others"),
        (centred_over_runs, "run independence", "the loss of one run has a gradient of .* in the logits of another"),
        (deaf, "labels", "the loss is .* whatever the labels are"),
        (first_class_counts_more, "class names", "the loss with classes renamed is .* before"),
        (next_class, "class names", "the loss with classes renamed is .* before"),
        (first_sample_counts_more, "sample order", "the loss of samples reversed is .* before"),
        (mean_of_class_means, "absent class", "the loss is nan where a batch has no label of the last class"),
        (first_label_only, "several labels", "the loss of sets of two labels is that of one of them"),
        (set_of_one_is_another, "several labels", "the loss of sets of one label is .* for the labels themselves"),
        (no_sample_weight, "sample weights", "the loss with weights 1, 2, 3 is .* with repetition"),
        (sum_is_mean, "reductions", "the sum of reduction 'none' is .* with reduction 'sum'"),
        (none_is_mean, "reductions", r"reduction 'none' gave a result of shape \(2,\) instead of \(2, 12\)"),
        (sum_by_default, "reductions", "the mean is .* without a reduction"),
    ],
)
def test_each_check_catches_its_fault(loss, check, seen):
    (run,) = (one for one in loss_checks(loss, several=check == "several labels") if str(one) == check)
    with pytest.raises(AssertionError, match=f"^{loss.__name__}, {check}: {seen}") as caught:
        run()
    assert "\n" not in str(caught.value)
    with pytest.raises(AssertionError, match=f"^{loss.__name__}, "):
        check_loss(loss, several=check == "several labels")


def test_checks_apply_where_the_loss_declares_it():
    optional = {"several labels", "sample weights", "reductions"}
    names = {str(check) for check in loss_checks(right)}
    assert optional & names == {"sample weights", "reductions"}
    assert optional & {str(check) for check in loss_checks(mean_over_all_runs, targets=False)} == set()
    assert names | optional == {str(check) for check in loss_checks("free")}
    assert len(names | optional) == 11


def test_a_loss_of_plain_tensors():
    check_loss(functional.log, several=True, targets=False)
    check_loss(lambda logits, ybar: logits.softmax(-1)[..., range(len(ybar)), ybar].mean(-1), targets=False)
    with pytest.raises(AssertionError, match="it raised AttributeError: 'Tensor' object has no attribute 'share'"):
        check_loss(no_sample_weight, targets=False)


def test_a_registered_loss_by_name_or_by_its_row():
    check_loss("scarce")  # needs a prior: an example is made
    check_loss(LOSSES["nn"], context=["marginal", "transition"], options={"beta": 0.1})


def test_a_row_may_say_that_a_part_is_held_still():
    row = LOSSES["wcll-adaptive"]
    check_loss(row)
    names = {str(check) for check in loss_checks(row)}
    assert {str(check) for check in loss_checks(replace(row, held=False))} - names == {"gradient"}
    with pytest.raises(AssertionError, match=r"^wcll-adaptive, gradient: .* by numerical differentiation"):
        check_loss(replace(row, held=False))


def test_refused_reductions_must_be_refused_as_such():
    def class_form(logits, targets, *, reduction="mean"):
        if reduction != "mean":
            raise InputError("reduction" if reduction == named else "beta", "'mean'", reduction)
        return apply_reduction((targets.share(logits) * logits.softmax(-1)).sum(-1), reduction)

    run = loss_checks(class_form)[-1]
    named = "none"
    run()
    named = "other"
    with pytest.raises(AssertionError, match="class_form, reductions: it raised InputError: beta: expected 'mean'"):
        run()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_loss("foward"), "loss: expected one of .* did you mean 'forward'"),
        (lambda: check_loss(right, context=["wieght"]), "context: expected one of .* did you mean 'weight'"),
        (lambda: check_loss(right, context="wieght"), "context: expected one of .* did you mean 'weight'"),
        (lambda: check_loss(3), "loss: expected a name, a LossSpec or a function, got int"),
        (lambda: check_loss(right, n_classes=2), "n_classes: expected a number from 3 to 10, got 2"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_it_needs_no_test_framework():
    code = "import sys, wcll.testing; print([m for m in ('pytest', 'hypothesis') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

"""Losses in a user's compiled loop and on a GPU: checks of values break no graph and wait for nothing."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from cases import CASES, context
from wcll.exceptions import InputError
from wcll.losses import LOSSES, LossModule, Targets, targets
from wcll.losses.discriminative import op
from wcll.losses.forward import forward
from wcll.losses.surrogates import log
from wcll.losses.targets import Transition
from wcll.losses.unbiased import free
from wcll.testing import example_logits

K, N = 5, 12
YBAR = torch.arange(N) % K
every_loss = pytest.mark.parametrize(
    "case", {case.name: case for case in reversed(CASES)}.values(), ids=lambda c: c.name
)
traced = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # parts of torch that torch itself loads


@pytest.fixture(autouse=True)
def nothing_compiled():
    yield
    torch._dynamo.reset()


def whole(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def value_and_gradient(loss, labels):
    logits = example_logits(N, K).requires_grad_()
    value = loss(logits, labels)
    value.backward()
    return value.detach(), logits.grad


@traced
@every_loss
def test_every_loss_compiles_as_one_graph(case):
    loss = partial(LOSSES[case.name].function, **context(case, K), **case.options)
    torch.testing.assert_close(value_and_gradient(whole(loss), YBAR), value_and_gradient(loss, YBAR))


@traced
@pytest.mark.parametrize(
    "case", [c for c in CASES if c.id in ("forward-transition-weight", "nn-transition-marginal")], ids=lambda c: c.id
)
def test_so_do_modules_masks_lists_and_targets(case):
    given, spec = context(case, K), LOSSES[case.name]
    expected = value_and_gradient(partial(spec.function, **given), YBAR)
    prepared = {**given, "transition": Transition.of(given["transition"], example_logits(N, K))}
    for keywords, labels in (
        (given, Targets.of(YBAR, K).mask),
        ({name: values.tolist() for name, values in given.items()}, YBAR),
        (prepared, Targets.of(YBAR, K)),
    ):
        torch.testing.assert_close(value_and_gradient(whole(partial(spec.function, **keywords)), labels), expected)
    torch.testing.assert_close(value_and_gradient(whole(LossModule(spec.name, **given)), YBAR), expected)


@traced
def test_bad_values_fail_in_a_graph():
    logits, wrong = example_logits(N, K), torch.full((K, K), 0.3)
    uniform = torch.full((K, K), 1 / K, dtype=torch.float64)
    for call, message in (
        (lambda: whole(log)(logits, YBAR + 1), "ybar: expected class indices from 0 to 4"),
        (lambda: whole(log)(logits, torch.zeros(N, K, dtype=torch.bool)), "ybar: expected at least one label a sample"),
        (lambda: whole(log)(logits, YBAR, weight=-torch.ones(K)), "weight: expected finite numbers, none negative"),
        (
            lambda: whole(forward)(logits, YBAR, transition=wrong),
            "transition: expected probabilities in rows that sum to 1",
        ),
        (lambda: whole(free)(logits, YBAR, transition=uniform), "transition: expected an invertible matrix"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


@pytest.fixture
def asserted(monkeypatch):
    """Tensors as on a GPU: what is asserted there is collected."""
    found = []
    monkeypatch.setattr(targets, "_is_far", lambda tensor: True)
    monkeypatch.setattr(torch, "_assert_async", lambda holds, message: found.append((bool(holds), message)))
    return found


@every_loss
def test_no_loss_waits_for_a_gpu(case, asserted, monkeypatch):
    def refuse(self, *given):
        raise AssertionError("a GPU would be waited for")

    like = example_logits(N, K)
    given = {name: torch.as_tensor(values) for name, values in context(case, K).items()}
    if "transition" in given:
        given["transition"] = Transition.of(given["transition"], like)
    monkeypatch.setattr(torch, "_assert_async", lambda holds, message: asserted.append((holds, message)))
    with monkeypatch.context() as inside:
        for name in ("__bool__", "__int__", "__float__", "item", "tolist", "cpu"):
            inside.setattr(torch.Tensor, name, refuse)
        LOSSES[case.name].function(like, YBAR, **given, **case.options)
    assert asserted
    assert all(bool(holds) for holds, _ in asserted)


def test_bad_values_on_a_gpu_are_asserted_there(asserted):
    logits = example_logits(N, K)
    op(logits, YBAR - 1, weight=torch.zeros(K))
    assert [message for holds, message in asserted if not holds] == [
        "ybar: expected class indices from 0 to 4",
        "weight: expected at least one positive number",
    ]


def test_targets_are_waited_for_and_say_what_is_wrong(asserted):
    with pytest.raises(InputError, match="ybar: expected class indices from 0 to 4, got 5"):
        Targets.of(YBAR + 1, K)
    assert not asserted

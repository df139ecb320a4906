"""Bad arguments of losses: one clear line each."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

import wcll
import wcll.functional as F  # noqa: N812
from wcll import losses
from wcll.exceptions import InputError
from wcll.labels import uniform_transition
from wcll.losses import LOSSES, Context, LossModule, Targets
from wcll.losses.registry import Losses

Z = torch.zeros(4, 3)
Y = torch.tensor([0, 1, 2, 0])
W = [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.log(Z, torch.tensor([0, 1, 2, 3])), "ybar: expected class indices from 0 to 2, got 3"),
        (lambda: F.log(Z, torch.tensor([0, 1, 2, -1])), "ybar: expected class indices from 0 to 2, got -1"),
        (lambda: F.log(Z, Y.float()), "ybar: expected integer class indices or a boolean mask, got torch.float32"),
        (lambda: F.log(Z, [0, 1, 2, 0]), "ybar: expected a tensor of class indices or a boolean mask, got list"),
        (lambda: F.log(Z, Y[:3]), "ybar: expected 4 samples as in logits, got 3"),
        (lambda: F.log(Z, torch.ones(4, 3, dtype=torch.bool)), "at least one class left a sample"),
        (lambda: F.log(Z, torch.zeros(4, 3, dtype=torch.bool)), "at least one label a sample"),
        (lambda: F.log(Z, torch.ones(4, 2, dtype=torch.bool)), r"a mask of shape \(..., n, 3\), got \(4, 2\)"),
        (lambda: F.log(Z[0], Y), r"logits: expected shape \(..., samples, classes\)"),
        (lambda: F.log(Z.long(), Y), "logits: expected a floating-point tensor, got torch.int64"),
        (lambda: F.log(Z, Y, reduction="avg"), "reduction: expected one of 'mean', 'sum', 'none', got 'avg'"),
        (lambda: F.log(Z, Y, weight=[1.0, 1.0]), r"weight: expected 3 numbers, one a class, got shape \(2,\)"),
        (lambda: F.log(Z, Y, weight=[1.0, -1.0, 1.0]), "weight: expected finite numbers, none negative, got -1"),
        (lambda: F.log(Z, Y, weight=[0.0, 0.0, 0.0]), "weight: expected at least one positive number, got all"),
        (lambda: F.log(Z, Y, weight=[np.nan, 1.0, 1.0]), "weight: expected finite numbers"),
        (lambda: F.forward(Z, Y, transition=np.eye(2)), "transition: expected a 3 x 3 matrix, got 2 x 2"),
        (lambda: F.forward(Z, Y, transition=np.ones((3, 3))), "transition: expected rows that sum to 1, got 3"),
        (lambda: F.forward(Z, Y, transition=-np.eye(3)), "transition: expected probabilities, got negative"),
        (lambda: F.free(Z, Y, transition=np.full((3, 3), 1 / 3)), "expected an invertible matrix, got rank 1"),
        (lambda: F.pc(Z, Y, surrogate="ram"), "surrogate: expected .* got 'ram'; did you mean 'ramp'"),
        (lambda: F.free(Z, Y, base="maee"), "base: expected .* did you mean 'mae'"),
        (lambda: F.wcll(Z, Y, weight=W, reading="eq13"), "reading: expected one of .* did you mean"),
        (lambda: F.wcll(Z, Y, weight=W), "pi: expected the shares of Eq. 7, which reading 'algorithm1'"),
        (lambda: F.wcll(Z, Y, weight=W, reading="eq12"), "pi: expected the shares of Eq. 7, which reading 'eq12'"),
        (lambda: F.pc(Z, torch.tensor([[1, 1, 0]] * 4).bool()), "one label a sample for loss 'pc', got up to 2"),
        (lambda: F.scarce(Z, Y, prior=[0.5, 0.5]), "prior: expected 3 numbers"),
        (lambda: F.scarce(Z, Y, prior=[5, 5, 10]), "prior: expected shares that sum to 1, got a sum of 20"),
        (lambda: F.nn(Z, Y, marginal=[1, 1, 2]), "marginal: expected shares that sum to 1, got a sum of 4"),
        (lambda: F.log(Z, Y, weight=["a", "b", "c"]), "weight: expected numbers, got list"),
        (
            lambda: F.log(Z, torch.zeros(2, 4).long()),
            r"ybar: expected no run axes, or those of logits, \(\), got \(2,\)",
        ),
        (lambda: F.nn(Z, Targets.of(Y, 3), reduction="none"), "reduction: expected 'mean' for loss 'nn'"),
        (lambda: LOSSES["foward"], "loss: expected one of .* did you mean 'forward'"),
        (
            lambda: LOSSES["wcll"].bind(Context(weight=W), redaing="eq9"),
            "option of loss 'wcll': .*did you mean 'reading'",
        ),
        (
            lambda: LOSSES["forward"].bind(Context()),
            "transition: expected a value, which loss 'forward' needs, got None",
        ),
        (
            lambda: LOSSES["scarce"].bind(Context(weight=W, prior=[0.2, 0.3, 0.5])),
            "weight: expected none for loss 'scarce'",
        ),
        (lambda: LossModule("wcll"), "weight: expected a value, which loss 'wcll' needs, got None"),
        (lambda: LossModule("wcll", wieght=W), "did you mean 'weight'"),
        (lambda: Targets.of(Y, 3, torch.ones(3)), "sample_weight: expected 4 numbers"),
        (lambda: Targets.of(torch.tensor(1), 3), "ybar: expected one label a sample, got a single number"),
        (
            lambda: F.log(Z, Y, weight=torch.ones(4, 3)),
            r"weight: expected no run axes, or those of logits, \(\), got \(4,\)",
        ),
        (lambda: F.forward(Z, Y, transition=np.stack([np.eye(3)] * 2)), "transition: expected no run axes"),
        (lambda: F.forward(Z, Y, transition="uniform"), "transition: expected numbers, got str"),
        (
            lambda: F.forward(Z, Y, transition=losses.targets.Transition.of(np.eye(2), torch.zeros(1, 2))),
            "3 classes, as logits have, got 2",
        ),
        (lambda: F.gce(Z, Y, q=0), "q: expected a number above 0, at most 1, got 0"),
        (lambda: F.phuber(Z, Y, tau=0.5), "tau: expected a number above 1, got 0.5"),
        (lambda: F.logit_adjusted(Z, Y, marginal=W), "marginal: expected shares that sum to 1, got a sum of 3"),
        (lambda: F.logit_adjusted(Z, Y, marginal=[0.5, 0.5, 0], tau=-1), "tau: expected a number from 0, got -1"),
        (
            lambda: LOSSES["logit-adjusted"].bind(Context()),
            "marginal: expected a value, which loss 'logit-adjusted' needs",
        ),
        (lambda: F.nn(Z, Y, beta=-1), "beta: expected a number from 0, got -1"),
        (lambda: F.wcll_penalty(Z, Y, weight=W, pi=W, strength=-1), "strength: expected a number from 0, got -1"),
        (lambda: F.wcll_penalty(Z, Y, weight=W, pi=W, bound=np.nan), "bound: expected a number from 0, got nan"),
        (lambda: F.wcll_penalty(Z, Y, weight=W, pi=W, power=0.5), "power: expected a number from 1, got 0.5"),
        (lambda: F.wcll_penalty(Z, Y, weight=W, pi=W, power=np.inf), "power: expected a number from 1, got inf"),
        (lambda: F.wcll_penalty(Z, Y, weight=W, reading="eq13"), "reading: expected one of .* did you mean"),
        (lambda: F.wcll_penalty(Z, Y, weight=W), "pi: expected the shares of Eq. 7, which reading 'algorithm1'"),
        (lambda: F.wcll_penalty(Z, Y, weight=None), "weight: expected a value, which loss 'wcll-penalty' needs"),
        (lambda: F.wcll_adaptive(Z, Y, weight=W, mix=1.5), "mix: expected a number from 0 to 1, got 1.5"),
        (lambda: F.wcll_adaptive(Z, Y, weight=W, mix="all"), "mix: expected a number from 0 to 1, got all"),
        (lambda: F.wcll_adaptive(Z, Y, weight=None), "weight: expected a value, which loss 'wcll-adaptive' needs"),
    ],
)
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_type_errors_are_also_type_errors():
    with pytest.raises(TypeError):
        F.log(Z, Y.float())


def test_duplicate_names_fail_at_import():
    with pytest.raises(RuntimeError, match="loss 'wcll' is registered twice"):
        LOSSES.put("wcll", LOSSES["wcll"])


def test_a_registered_loss_is_all_that_is_needed():
    """One function, registered where it is written, is in the registry."""
    registry = Losses("loss")

    @registry.add("my-loss", title="My loss", paper="ours", equation="-")
    def my_loss(logits, ybar, *, strength=1.0, reduction="mean"):
        """Mine."""
        return strength * logits.gather(-1, ybar.index[:, None]).mean()

    assert registry["my-loss"].options == {"strength": 1.0}
    assert float(registry["my-loss"].bind(Context(), strength=2.0)(Z + 1, Targets.of(Y, 3))) == 2.0


def test_modules_move_with_the_model_and_survive_copies():
    loss = LossModule("wcll", weight=np.array([0.5, 1.0, 1.5]), reading="eq9")
    assert [name for name, _ in loss.named_buffers()] == ["weight"]
    expected = loss(Z, Y)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(twin(Z, Y), expected)
    assert repr(loss) == "LossModule('wcll', reading='eq9')"


def test_a_loss_trains_in_a_users_own_loop():
    generator = torch.Generator().manual_seed(0)
    centres = 4 * torch.eye(3)
    y = torch.randint(0, 3, (600,), generator=generator)
    x = centres[y] + torch.randn(600, 3, generator=generator)
    ybar = torch.from_numpy(wcll.labels.make_complementary(y.numpy(), random_state=0))
    model = torch.nn.Linear(3, 3)
    loss = LossModule("log")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        loss(model(x), ybar).backward()
        optimiser.step()
    assert (model(x).argmax(-1) == y).float().mean() > 0.9


def test_half_precision_and_prepared_transitions():
    q = wcll.labels.biased_transition(40, random_state=0)
    f, ybar = torch.randn(8, 40, generator=torch.Generator().manual_seed(0)), torch.arange(8)
    exact = F.free(f.double(), ybar, transition=q)
    assert F.free(f.bfloat16(), ybar, transition=q).dtype == torch.bfloat16
    prepared = losses.targets.Transition.of(q, f)
    torch.testing.assert_close(F.free(f.double(), ybar, transition=prepared), exact, rtol=1e-4, atol=1e-4)


def test_a_module_inverts_its_matrix_once(monkeypatch):
    module, calls = LossModule("free", transition=uniform_transition(3)), []
    original = losses.targets.Transition.of
    monkeypatch.setattr(losses.targets.Transition, "of", staticmethod(lambda *a: calls.append(1) or original(*a)))
    first = module(Z, Y)
    assert torch.equal(module(Z, Y), first)
    assert len(calls) == 1
    module(Z.double(), Y)
    module.transition.fill_(1 / 3)
    with pytest.raises(InputError, match="rank 1"):
        module(Z, Y)


def test_a_users_own_base_loss():
    squared = lambda z: z.square()  # noqa: E731
    assert F.free(Z + 1, Y, base=squared) == pytest.approx(3 - 2)


def test_a_singular_matrix_is_fine_without_an_inverse():
    rank_one = np.full((3, 3), 1 / 3)
    assert F.forward(Z, Y, transition=rank_one).isfinite()
    assert F.nn(Z, Y, transition=uniform_transition(3)).isfinite()

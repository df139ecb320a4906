"""The plain loop: runs together equal runs alone, Adam is Adam, batches are a partition."""

from __future__ import annotations

import pytest
import torch

from cases import CASES, context
from wcll.losses import LOSSES, Context, Targets
from wcll.training import RunGroup, RunLoss, Training
from wcll.training.autograd import PlainLoop
from wcll.training.engine import batches
from wcll.training.optimizers import RunAdam

MODELS_TRAINED = [
    ("linear", (6,)),
    ({"name": "mlp", "hidden": 8, "layers": 2, "dropout": 0.3}, (6,)),
    ({"name": "cnn9", "width": 2, "dropout": 0.25}, (1, 8, 8)),
]


LOSS_CASES = {case.name: case for case in CASES}  # one variant a loss


K, N = 4, 48


def train(model, shape, cases, rates, *, seed=3, epochs=2):
    """Parameters and running statistics after six steps, with a leading run axis."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(N, *shape, dtype=torch.float64, generator=generator)
    losses = [
        RunLoss(LOSSES[case.name], tuple(case.options.items()), Context(**context(case, K)), start, start + len(part))
        for case, start, part in cases
    ]
    group = RunGroup(x, Targets.of(torch.arange(N) % K, K), seed, rates, losses)
    loop = PlainLoop([group], Training(model, K, 1.0, 16, 1e-4, torch.float64, torch.device("cpu")))
    start = {name: tensor.clone() for name, tensor in loop.parameters(0).items()}
    for _ in range(epochs):
        loop.run_epoch()
    return start, loop.parameters(0)


@pytest.mark.parametrize(("model", "shape"), MODELS_TRAINED, ids=["linear", "mlp", "cnn9"])
@pytest.mark.parametrize("name", list(LOSSES))
def test_together_equals_alone(name, model, shape):
    case, rates = LOSS_CASES[name], [1e-3, 1e-2]
    start, together = train(model, shape, [(case, 0, rates)], rates)
    assert any(not torch.equal(together[key], start[key]) for key in start), "nothing was learned"
    for run, rate in enumerate(rates):
        _, alone = train(model, shape, [(case, 0, [rate])], [rate])
        for key, value in together.items():
            torch.testing.assert_close(value[run], alone[key][0], rtol=1e-10, atol=1e-10)


def test_losses_of_several_groups_train_side_by_side():
    """A stack with two losses gives what two stacks with one loss each give."""
    log, free, rates = LOSS_CASES["log"], LOSS_CASES["free"], [1e-2, 1e-3]
    _, both = train("linear", (5,), [(log, 0, rates), (free, 2, rates)], rates * 2)
    alone = [train("linear", (5,), [(case, 0, rates)], rates)[1]["layer.weight"] for case in (log, free)]
    torch.testing.assert_close(both["layer.weight"], torch.cat(alone), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weight_decay", [0.0, 1e-2])
def test_adam_is_torchs_adam(weight_decay):
    ours = torch.nn.Parameter(torch.randn(1, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    theirs = torch.nn.Parameter(ours.detach().clone())
    one = RunAdam([ours], torch.tensor([0.05], dtype=torch.float64), weight_decay=weight_decay)
    other = torch.optim.Adam([theirs], lr=0.05, weight_decay=weight_decay)
    for _ in range(30):
        for parameter, optimiser in ((ours, one), (theirs, other)):
            optimiser.zero_grad()
            (parameter.sin() * parameter).sum().backward()
            optimiser.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_batches_are_a_shuffled_partition():
    first = list(batches(100, 32, seed=0, epoch=0))
    assert [len(b) for b in first] == [32, 32, 32]  # the incomplete one is dropped
    assert len(torch.cat(first).unique()) == 96
    again, other = (torch.cat(list(batches(100, 32, seed=0, epoch=e))) for e in (0, 1))
    assert torch.equal(torch.cat(first), again)
    assert not torch.equal(again, other)
    assert [len(b) for b in batches(10, 32, seed=0, epoch=0)] == [10]


def test_steps_tell_which_part_of_the_epoch_is_done():
    groups = []
    for seed in (0, 1):
        loss = RunLoss(LOSSES["wcll"], (), Context(**context(LOSS_CASES["wcll"], K)), 0, 1)
        groups.append(RunGroup(torch.zeros(N, 3), Targets.of(torch.arange(N) % K, K), seed, [1e-3], [loss]))
    loop = PlainLoop(groups, Training("linear", K, 1.0, 16, 1e-4, torch.float32, torch.device("cpu")))
    loop.run_epoch()  # nobody is told
    heard: list[float] = []
    loop.after_step = heard.append
    loop.run_epoch()
    assert heard == [i / 6 for i in range(1, 7)]

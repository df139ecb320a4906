"""Models and training: runs together equal runs alone, drop-out is counter-based, Adam is Adam."""

from __future__ import annotations

import math

import pytest
import torch

from cases import CASES, context
from wcll.checks import InputError
from wcll.losses import LOSSES, Context, Targets
from wcll.models import MODELS, build_model, predict_logits
from wcll.models.counters import counter_uniform, philox, stream_keys
from wcll.models.layers import RunDropout, prepare_dropouts
from wcll.training import RunAdam, RunGroup, RunLoss, Training, batches
from wcll.training.plain import PlainLoop

MODELS_TRAINED = [
    ("linear", (6,)),
    ({"name": "mlp", "hidden": 8, "layers": 2, "dropout": 0.3}, (6,)),
    ({"name": "cnn9", "width": 2, "dropout": 0.25}, (1, 8, 8)),
]
LOSS_CASES = {case.name: case for case in CASES}  # one variant a loss
K, N = 4, 48


def train(model, shape, cases, rates, *, seed=3, epochs=17):
    """Parameters and running statistics after 51 steps, with a leading run axis."""
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
    case, rates = LOSS_CASES[name], [1e-3, 3e-3, 1e-2]
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
    ours = torch.nn.Parameter(torch.randn(1, 4, 3, dtype=torch.float64))
    theirs = torch.nn.Parameter(ours.detach().clone())
    one = RunAdam([ours], torch.tensor([0.05], dtype=torch.float64), weight_decay=weight_decay)
    other = torch.optim.Adam([theirs], lr=0.05, weight_decay=weight_decay)
    for _ in range(30):
        for parameter, optimiser in ((ours, one), (theirs, other)):
            optimiser.zero_grad()
            (parameter.sin() * parameter).sum().backward()
            optimiser.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_philox_has_the_published_values():
    """The known answers that are published with the generator."""
    full = 0xFFFFFFFF
    pi = ([0xA4093822, 0x299F31D0], [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344])
    cases = [
        ([0, 0], [0] * 4, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([full] * 2, [full] * 4, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (*pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ]
    for key, counter, expected in cases:
        assert philox(torch.tensor(key), torch.tensor(counter)).tolist() == expected


def test_counter_draws_depend_on_run_step_and_place_alone():
    keys = stream_keys([5, 6, 7], "dropout")
    together = counter_uniform(keys, 10, 0, 1001)
    assert torch.equal(together[1], counter_uniform(keys[1:2], 10, 0, 1001)[0])
    draws = [together[0], together[1], counter_uniform(keys, 11, 0, 1001)[0], counter_uniform(keys, 10, 1, 1001)[0]]
    assert len({tuple(draw[:5].tolist()) for draw in draws}) == 4
    assert all(abs(float(draw.mean()) - 0.5) < 0.05 for draw in draws)
    assert 0 <= float(together.min()) <= float(together.max()) < 1


def test_dropout_drops_its_share_and_keeps_the_mean():
    layer = RunDropout([0, 1], 0.25, place=0)
    x = torch.ones(2, 200, 50)
    y = layer(x, step=3)
    assert float((y == 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(y.mean()) == pytest.approx(1, abs=0.03)
    assert torch.equal(layer.eval()(x, 3), x)
    images = layer.train()(torch.ones(20, 2 * 8, 4, 4), step=0)
    assert torch.equal(images, images[..., :1, :1].expand_as(images))  # whole channels


def test_batches_are_a_shuffled_partition():
    first = list(batches(100, 32, seed=0, epoch=0))
    assert [len(b) for b in first] == [32, 32, 32]  # the incomplete one is dropped
    assert len(torch.cat(first).unique()) == 96
    again, other = (torch.cat(list(batches(100, 32, seed=0, epoch=e))) for e in (0, 1))
    assert torch.equal(torch.cat(first), again)
    assert not torch.equal(again, other)
    assert [len(b) for b in batches(10, 32, seed=0, epoch=0)] == [10]


def test_cnn9_is_the_papers_network():
    model = build_model("cnn9", (3, 32, 32), 5, [0])
    shapes = [tuple(c.weight.shape[1:]) for c in model.convolutions]
    assert [s[0] for s in shapes] == [64] * 3 + [128] * 3 + [256] * 3
    assert all(s[2:] == (3, 3) for s in shapes)
    assert not any(hasattr(c, "bias") for c in model.convolutions)
    assert len(model.norms) == 9
    assert len(model.dropouts) == 3


@pytest.mark.parametrize("size", [28, 32, 64])
@pytest.mark.parametrize("name", ["cnn9", "resnet18"])
def test_image_models_take_several_sizes(name, size):
    model = build_model({"name": name, "width": 4}, (3, size, size), 5, [0, 1])
    assert predict_logits(model, torch.zeros(2, 3, size, size)).shape == (2, 2, 5)


def test_initial_values_are_torchs_in_law_and_a_function_of_the_seed():
    one, other = (build_model("linear", (400,), 10, seeds) for seeds in ([0, 1], [1]))
    assert torch.equal(one.layer.weight[1], other.layer.weight[0])
    bound = 1 / math.sqrt(400)
    weights = one.layer.weight.detach()
    assert float(weights.abs().max()) <= bound
    assert float(weights.std()) == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_a_model_of_a_users_own():
    module = torch.nn.Linear(6, K)
    stack = build_model(module, (6,), K, [0])
    assert stack.module is not module
    factory = build_model(lambda shape, k: torch.nn.Linear(shape[0], k), (6,), K, [0])
    same = build_model(lambda shape, k: torch.nn.Linear(shape[0], k), (6,), K, [0])
    assert torch.equal(factory.module.weight, same.module.weight)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: build_model("liner", (4,), 3, [0]), "model: expected one of .* did you mean 'linear'"),
        (lambda: build_model({"name": "mlp", "hiden": 3}, (4,), 3, [0]), "option of model 'mlp': .* did you mean 'hidden'"),
        (lambda: build_model({"hidden": 3}, (4,), 3, [0]), "model: expected a 'name' among its options"),
        (lambda: build_model({"name": "mlp", "dropout": 1.0}, (4,), 3, [0]), "dropout: expected a share from 0 to below 1, got 1.0"),
        (lambda: build_model({"name": "cnn9", "width": 0}, (1, 8, 8), 3, [0]), "width: expected a whole number from 1, got 0"),
        (lambda: build_model({"name": "mlp", "hidden": 2.5}, (4,), 3, [0]), "hidden: expected a whole number from 1"),
        (lambda: build_model(5, (4,), 3, [0]), "model: expected a name, a torch module or a function that makes one, got int"),
        (lambda: build_model("cnn9", (64,), 3, [0]), r"X: expected images of shape \(n, channels, height, width\)"),
        (lambda: build_model("cnn9", (1, 4, 4), 3, [0]), "images of at least 8 x 8 pixels"),
        (lambda: build_model(torch.nn.Linear(4, 3), (4,), 3, [0, 1]), "a named model to train several runs together"),
        (lambda: build_model(lambda *_: 3, (4,), 3, [0]), "a function that returns a torch module"),
        (lambda: build_model(torch.nn.Linear(4, 2), (4,), 3, [0])(torch.zeros(1, 4)), r"outputs of shape \(n, 3\)"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_every_model_is_registered():
    assert set(MODELS) == {"linear", "mlp", "cnn9", "resnet18"}
    assert MODELS.options("cnn9") == {"width": 64, "dropout": 0.25}


def test_prepared_dropout_is_that_of_each_step():
    layers = [RunDropout([seed], 0.4, place=2) for seed in (0, 5)] + [RunDropout([1, 2], 0.4, place=2)]
    x = torch.ones(6, 3)
    for layer in layers:
        layer(x.expand(len(layer.keys), 6, 3), 0)
    for first in (0, 7):
        prepare_dropouts(layers, first, steps=4)
        for layer in layers:
            for place in range(4):
                expected = layer(x.expand(len(layer.keys), 6, 3), first + place)
                assert torch.equal(layer(x.expand(len(layer.keys), 6, 3), torch.tensor([place])), expected)

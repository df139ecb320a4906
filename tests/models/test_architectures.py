"""Models and their layers: drop-out is counter-based, initial values follow from the seed."""

from __future__ import annotations

import math

import pytest
import torch

from wcll.exceptions import InputError
from wcll.models import MODELS
from wcll.models.architectures import MLP
from wcll.models.layers import RunDropout, counter_uniform, philox, prepare_dropouts, stream_keys
from wcll.models.registry import build_model, check_size, outline_model, predict_logits

K, N = 4, 48


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
    layer = RunDropout([0, 1], 0.25, layer=0)
    x = torch.ones(2, 200, 50)
    y = layer(x, step=3)
    assert float((y == 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(y.mean()) == pytest.approx(1, abs=0.03)
    assert torch.equal(layer.eval()(x, 3), x)
    images = layer.train()(torch.ones(20, 2 * 8, 4, 4), step=0)
    assert torch.equal(images, images[..., :1, :1].expand_as(images))  # whole channels


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
        (lambda: build_model({"name": "mlp", "dropout": "x"}, (4,), 3, [0]), "dropout: expected a share from 0 to below 1, got x"),
        (lambda: build_model({"name": "mlp", "dropout": True}, (4,), 3, [0]), "dropout: expected a share from 0 to below 1, got True"),
        (lambda: build_model({"name": "mlp", "layers": 10**9}, (4,), 3, [0]), "layers: expected at most 1000, got 1000000000"),
        (lambda: build_model({"name": "mlp", "hidden": 10**5000}, (4,), 3, [0]), "hidden: expected a whole number of at most 64 bits"),
        (lambda: build_model({2: 3, "a": 4}, (4,), 3, [0]), "model: expected a 'name' among its options"),
        (lambda: build_model(lambda *_: 3, (4,), 3, [0]), "a function that returns a torch module"),
        (lambda: build_model(torch.nn.Linear(4, 2), (4,), 3, [0])(torch.zeros(1, 4)), r"outputs of shape \(n, 3\)"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


HUGE = [
    ({"name": "mlp", "hidden": 10**12}, (3,)),
    ({"name": "mlp", "hidden": 10**9, "layers": 1000}, (3,)),
    ({"name": "mlp", "hidden": 2**62, "layers": 9}, (3,)),
    ({"name": "cnn9", "width": 10**9}, (1, 8, 8)),
    ({"name": "resnet18", "width": 10**9}, (1, 8, 8)),
    ("linear", (10**13,)),
]


@pytest.mark.parametrize(("model", "shape"), HUGE, ids=str)
def test_models_that_do_not_fit_are_one_line_before_memory_is_taken(model, shape):
    for make in (check_size, outline_model, lambda *given: build_model(*given, [0])):
        with pytest.raises(
            InputError,
            match=r"model: expected at most .* which is free, got .* parameters.* of .*B; choose a smaller one",
        ):
            make(model, shape, 3)


def test_memory_is_that_of_all_runs_in_their_precision(monkeypatch):
    """A table of 10 features and 5 classes: 55 numbers, of which training keeps four arrays."""
    runs, dtype = 3, torch.float64
    need = 4 * runs * 55 * 8
    monkeypatch.setattr("wcll._memory.free_memory", lambda: need)
    check_size("linear", (10,), 5, runs, dtype)
    monkeypatch.setattr("wcll._memory.free_memory", lambda: need - 1)
    with pytest.raises(InputError, match=r"model: expected .* got 165 parameters and what trains them of 5.28 kB"):
        check_size("linear", (10,), 5, runs, dtype)
    check_size("linear", (10,), 5, runs, torch.float32)
    check_size(torch.nn.Linear(10, 5), (10,), 5)  # a user's own has its memory already
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 1)
    with pytest.raises(InputError, match="model: expected at most 1 B"):
        MLP((3,), 4, [0])  # whoever makes it


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("linear", (7,)),
        ("mlp", (7,)),
        ({"name": "cnn9", "width": 2}, (3, 8, 8)),
        ({"name": "resnet18", "width": 2}, (1, 9, 9)),
    ],
)
def test_an_outline_has_the_shapes_and_no_memory(name, shape):
    outline, model = (
        outline_model(name, shape, 4, [0, 1], torch.float64),
        build_model(name, shape, 4, [0, 1], torch.float64),
    )
    described = [{k: (t.shape, t.dtype) for k, t in one.state_dict().items()} for one in (outline, model)]
    assert described[0] == described[1]
    assert all(tensor.is_meta for tensor in outline.state_dict().values())
    outline.load_state_dict(model.state_dict(), assign=True)
    x = torch.rand(5, *shape, dtype=torch.float64)
    assert torch.equal(predict_logits(outline, x), predict_logits(model, x))


def test_every_model_is_registered():
    assert set(MODELS) == {"linear", "mlp", "cnn9", "resnet18"}
    assert MODELS.options("cnn9") == {"width": 64, "dropout": 0.25}


def test_prepared_dropout_is_that_of_each_step():
    layers = [RunDropout([seed], 0.4, layer=2) for seed in (0, 5)] + [RunDropout([1, 2], 0.4, layer=2)]
    x = torch.ones(6, 3)
    for layer in layers:
        layer(x.expand(len(layer.keys), 6, 3), 0)
    for first in (0, 7):
        prepare_dropouts(layers, first, steps=4)
        for layer in layers:
            for place in range(4):
                expected = layer(x.expand(len(layer.keys), 6, 3), first + place)
                layer.choose(torch.tensor([place]))
                assert torch.equal(layer(x.expand(len(layer.keys), 6, 3), torch.tensor([place])), expected)

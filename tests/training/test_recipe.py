"""Training beyond the paper's: views of images, optimisers, schedules, averages, consistency, mixing; for every loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cases import CASES, Case, context
from wcll.exceptions import InputError
from wcll.losses import LOSSES, Context, Targets
from wcll.training import RunGroup, RunLoss, Training
from wcll.training.augmentation import view_of, without_square
from wcll.training.autograd import PlainLoop
from wcll.training.cuda_graph import CapturedRuns
from wcll.training.engine import engine_for
from wcll.training.linear import LinearRuns
from wcll.training.optimizers import RunAdam, RunSGD
from wcll.training.recipe import PLAIN, RAMP, RECIPES, Course, Recipe, rate_at, recipe_of

K, N, BATCH, SIDE = 4, 48, 16, 6
RATES = (1e-3, 1e-2)
MLP = {"name": "mlp", "hidden": 5, "dropout": 0.0}
STRONG = replace(RECIPES["strong"], crop=2)
OPTIONS = {
    "crop": Recipe(crop=2),
    "flip": Recipe(flip=True),
    "cutout": Recipe(cutout=3),
    "adamw": Recipe(optimiser="adamw"),
    "sgd": Recipe(optimiser="sgd"),
    "one-cycle": Recipe(schedule="one-cycle"),
    "cosine": Recipe(schedule="cosine"),
    "ema": Recipe(ema=0.9),
    "consistency": Recipe(consistency=1.0, flip=True),
    "mixup": Recipe(mixup=0.4),
    "test_flip": Recipe(test_flip=True),
    "strong": STRONG,
    "all": replace(STRONG, cutout=2),
}
each_option = pytest.mark.parametrize("recipe", OPTIONS.values(), ids=OPTIONS)


def training(recipe, *, model=None, epochs=4, device="cpu"):
    how = {"model": model or MLP, "n_classes": K, "scale": 255.0, "batch_size": BATCH, "weight_decay": 0.01}
    return Training(**how, dtype=torch.float64, device=torch.device(device), epochs=epochs, recipe=recipe)


TOLD = Case("forward", ("transition",))
USED = (Case("log"), TOLD)


def group(cases=USED, seed=0, channels=2):
    rng = np.random.default_rng(seed)
    shape = (N, channels, SIDE, SIDE) if channels else (N, SIDE, SIDE)
    x = torch.from_numpy(rng.integers(0, 256, shape, dtype=np.uint8))
    losses = [
        RunLoss(LOSSES[case.name], tuple(case.options.items()), Context(**context(case, K, seed)), 2 * i, 2 * i + 2)
        for i, case in enumerate(cases)
    ]
    return RunGroup(x, Targets.of(torch.from_numpy(rng.integers(0, K, N)), K), seed, list(RATES) * len(cases), losses)


def run(engine, epochs=4):
    for _ in range(epochs):
        engine.run_epoch()
    return engine


def difference(a, b, group_a=0, group_b=0, runs=slice(None)):
    first, second = a.parameters(group_a), b.parameters(group_b)
    return max(float((first[name][runs] - second[name]).abs().max()) for name in first)


# Views


@given(st.integers(0, 5), st.booleans(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 3]))
def test_a_view_is_a_window_of_the_mirrored_image(crop, flip, seed, channels):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (5, channels, 6, 7) if channels else (5, 6, 7), dtype=np.uint8)
    rows, drawn = np.array([3, 0, 3]), rng.random((3, 5))
    found = view_of(*map(torch.from_numpy, (x, rows, drawn)), crop=crop, flip=flip).numpy()
    for i, row in enumerate(rows):
        image = np.pad(x[row], [(0, 0)] * (x.ndim - 3) + [(crop, crop)] * 2, mode="reflect")
        down, across = (int(np.floor(drawn[i, j] * (2 * crop + 1))) for j in (0, 1))
        window = image[..., down : down + 6, across : across + 7]
        assert np.array_equal(found[i], window[..., ::-1] if flip and drawn[i, 2] < 0.5 else window)


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from([0, 2]))
def test_a_square_is_left_out(size, seed, channels):
    rng = np.random.default_rng(seed)
    x = 1 + rng.random((4, channels, 6, 7) if channels else (4, 6, 7))
    drawn = rng.random((4, 5))
    found = without_square(torch.from_numpy(x), torch.from_numpy(drawn), size).numpy()
    for i in range(4):
        top, left = int(drawn[i, 3] * 6) - size // 2, int(drawn[i, 4] * 7) - size // 2
        expected = x[i].copy()
        expected[..., max(top, 0) : top + size, max(left, 0) : left + size] = 0
        assert np.array_equal(found[i], expected)
        assert (expected == 0).any()


# Steps


def test_the_steps_of_an_epoch_are_a_function_of_seed_and_step():
    def course(seed=3):
        how = {"batch": 8, "steps": 5, "epochs": 4, "dtype": torch.float64, "device": torch.device("cpu")}
        return Course(OPTIONS["all"], seed, **how)

    first, later, other = course(), course(), course(4)
    for epoch in range(3):
        first.prepare(epoch)
    later.prepare(2)
    other.prepare(2)
    assert torch.equal(first.numbers, later.numbers)
    assert torch.equal(first.drawn, later.drawn)
    assert not torch.equal(first.drawn, other.drawn)
    assert not torch.equal(first.drawn[0], first.drawn[1])
    assert not torch.equal(first.drawn[:, 0], first.drawn[:, 1])  # two views of a batch
    place = torch.tensor([3])
    assert all(torch.equal(a, b) for a, b in zip(first.at(3), first.at(place), strict=True))
    assert (first.numbers[:, 3] >= 0.5).all()  # an image is the larger part of its own mixture
    assert (first.numbers[:, 3] <= 1).all()


def test_shares_of_mixed_images_follow_their_distribution():
    how = {"batch": 1, "steps": 4000, "epochs": 1, "dtype": torch.float64, "device": torch.device("cpu")}
    course = Course(Recipe(mixup=1.0), 0, **how)  # Beta(1, 1): the larger of two parts is uniform from a half to 1
    course.prepare(0)
    shares = course.numbers[:, 3]
    assert abs(float(shares.mean()) - 0.75) < 0.01
    assert abs(float(shares.var()) - 0.25 / 12) < 0.002


@pytest.mark.parametrize("schedule", ["constant", "one-cycle", "cosine"])
def test_rates_stay_within_what_was_asked_for(schedule):
    found = [rate_at(schedule, done) for done in np.linspace(0, 1, 101)]
    assert max(found) == 1
    assert min(found) >= 0
    assert found[-1] == (1 if schedule == "constant" else 0)


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_optimisers_are_as_torch_has_them(name):
    torch.manual_seed(0)
    start, rates = torch.randn(2, 3, 4, dtype=torch.float64), [1e-2, 3e-2]
    ours = torch.nn.Parameter(start.clone())
    lr = torch.tensor(rates, dtype=torch.float64)
    one = (
        RunSGD([ours], lr, weight_decay=0.1) if name == "sgd" else RunAdam([ours], lr, weight_decay=0.1, decoupled=True)
    )
    theirs = [torch.nn.Parameter(part.clone()) for part in start]
    make = {"sgd": lambda p, r: torch.optim.SGD([p], r, momentum=0.9, nesterov=True, weight_decay=0.1)}
    make["adamw"] = lambda p, r: torch.optim.AdamW([p], r, weight_decay=0.1)
    others = [make[name](p, r) for p, r in zip(theirs, rates, strict=True)]
    for _ in range(6):
        gradient = torch.randn_like(start)
        ours.grad = gradient.clone()
        one.step()
        for parameter, part, optimiser in zip(theirs, gradient, others, strict=True):
            parameter.grad = part.clone()
            optimiser.step()
    assert torch.allclose(ours, torch.stack([p.data for p in theirs]), atol=1e-12)


def test_a_training_is_what_its_formula_says():
    """One run of a linear model, step by step as it is defined: views, mixing, consistency, AdamW, schedule, average."""
    recipe, case, epochs = OPTIONS["all"], TOLD, 3
    given_group = replace(group([case]), rates=[0.02], losses=[replace(group([case]).losses[0], stop=1)])
    engine = PlainLoop([given_group], training(recipe, model={"name": "linear"}, epochs=epochs))
    start = {name: value.clone() for name, value in engine.parameters(0).items()}
    weight, bias = (torch.nn.Parameter(start[f"layer.{name}"][0].clone()) for name in ("weight", "bias"))
    optimiser = torch.optim.AdamW([weight, bias], 0.02, weight_decay=0.01)
    mean = [weight.detach().clone(), bias.detach().clone()]
    transition = torch.as_tensor(given_group.losses[0].context.transition, dtype=torch.float64)
    x, ybar, length = given_group.x.double() / 255, given_group.targets.index, 3 * epochs
    for epoch in range(epochs):
        order = engine._order()[:, 0]
        course = Course(recipe, 0, batch=BATCH, steps=3, epochs=epochs, dtype=torch.float64, device=torch.device("cpu"))
        course.prepare(epoch)
        for i, rows in enumerate(order):
            step, drawn, share = 3 * epoch + i, course.drawn[i], course.numbers[i, 3]
            views = [view_of(x, rows, drawn[v], crop=2, flip=True) for v in (0, 1)]
            views = [without_square(view, drawn[v], 2) for v, view in enumerate(views)]
            views = [share * view + (1 - share) * view.roll(1, 0) for view in views]
            own, beside = ybar[rows], ybar[rows].roll(1)
            logits, other = (view.flatten(1) @ weight.T + bias for view in views)
            chance = logits.softmax(-1) @ transition
            each = -chance.log()
            loss = share * each.gather(1, own[:, None]).mean() + (1 - share) * each.gather(1, beside[:, None]).mean()
            out = torch.nn.functional.one_hot(own, K) * torch.nn.functional.one_hot(beside, K) > 0
            said = other.detach().softmax(-1).masked_fill(out, 0)
            said = said / said.sum(-1, keepdim=True)
            far = -(said * logits.log_softmax(-1)).sum(-1).mean()
            loss = loss + min(step / length / RAMP, 1) * far
            optimiser.param_groups[0]["lr"] = 0.02 * rate_at("one-cycle", step / length)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            kept = min(0.998, (1 + step) / (10 + step))
            mean = [kept * m + (1 - kept) * p.detach() for m, p in zip(mean, (weight, bias), strict=True)]
        engine.run_epoch()
    found = engine.parameters(0)
    assert torch.allclose(found["layer.weight"][0], mean[0], atol=1e-10)
    assert torch.allclose(found["layer.bias"][0], mean[1], atol=1e-10)
    shown = x[:5].flatten(1) @ mean[0].T + x[:5].flip(-1).flatten(1) @ mean[0].T
    assert torch.allclose(engine.predict(0, engine.prepare(given_group.x[:5]))[0], shown / 2 + mean[1], atol=1e-10)


# Engines


CNN = {"name": "cnn9", "width": 2}
ON_A_CPU = [(name, MLP) for name in OPTIONS] + [(name, CNN) for name in ("all", "sgd")]


@pytest.mark.parametrize(("name", "model"), ON_A_CPU, ids=[f"{name}-{model['name']}" for name, model in ON_A_CPU])
def test_what_a_gpu_would_record_is_the_plain_loop(name, model, without_streams):
    recipe, wide = OPTIONS[name], [replace(one, x=one.x.repeat(1, 1, 2, 2)) for one in (group(seed=0), group(seed=1))]
    fast, slow = (run(maker(wide, training(recipe, model=model))) for maker in (CapturedRuns, PlainLoop))
    for g in (0, 1):
        assert difference(fast, slow, g, g) < 1e-9
        x = wide[0].x[:5]
        assert torch.allclose(fast.predict(g, fast.prepare(x)), slow.predict(g, slow.prepare(x)), atol=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@each_option
@pytest.mark.parametrize("model", [MLP, {"name": "cnn9", "width": 4}], ids=["mlp", "cnn9"])
def test_recorded_steps_are_the_plain_loop(recipe, model):
    wide = [replace(one, x=one.x.repeat(1, 1, 2, 2)) for one in (group(seed=0), group(seed=1))]
    settings = training(recipe, model=model, epochs=8, device="cuda")
    fast, slow = (run(maker(wide, settings), 8) for maker in (CapturedRuns, PlainLoop))
    for g in (0, 1):
        assert difference(fast, slow, g, g) < 1e-8


@each_option
def test_runs_and_groups_do_not_see_each_other(recipe):
    together = run(PlainLoop([group(seed=0), group(seed=1)], training(recipe)))
    alone = run(PlainLoop([group([TOLD], seed=1)], training(recipe)))
    assert difference(together, alone, group_a=1, runs=slice(2, 4)) < 1e-12


@each_option
def test_training_goes_on_where_it_was(recipe):
    whole, first, second = (PlainLoop([group()], training(recipe)) for _ in range(3))
    run(whole, 4)
    state = {name: tensor.clone() for name, tensor in run(first, 2).state().items()}
    assert second.load_state(state)
    assert difference(run(second, 2), whole) == 0


@each_option
def test_every_option_changes_what_is_learnt_or_said(recipe):
    found, plain = (run(PlainLoop([group()], training(one))) for one in (recipe, PLAIN))
    x = found.prepare(group().x[:5])
    assert not torch.allclose(found.predict(0, x), plain.predict(0, x), atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_loss_can_be_trained_so(case):
    engine = run(PlainLoop([group([case])], training(OPTIONS["all"])), 3)
    assert all(value.isfinite().all() for value in engine.parameters(0).values())
    assert engine.last_losses(0).isfinite().all()


def test_several_labels_and_weights_count_in_consistency():
    mask = torch.zeros(N, K, dtype=torch.bool)
    mask[:, 0] = True
    mask[::2, 1] = True
    weight = torch.ones(N, dtype=torch.float64)
    weight[: N // 2] = 0.0
    targets = Targets.of(mask, K, 2 * weight)
    one = replace(group([Case("log")]), targets=targets)
    garbled = replace(one, x=torch.cat([255 - one.x[: N // 2], one.x[N // 2 :]]))
    first, second = (run(PlainLoop([g], training(OPTIONS["consistency"]))) for g in (one, garbled))
    assert difference(first, second) < 1e-12  # what counts for nothing may show anything


def test_ordinary_labels_are_not_ruled_out():
    limit = group([Case("cross-entropy")])
    assert limit.ordinary
    assert not group().ordinary
    engine = run(PlainLoop([limit], training(Recipe(consistency=5.0))), 4)
    plain = run(PlainLoop([limit], training(PLAIN)), 4)
    assert float(engine.last_losses(0).max()) < float(plain.last_losses(0).max()) + 0.5


def test_linear_models_are_trained_by_whom_can():
    linear = {"name": "linear"}
    assert engine_for(training(PLAIN, model=linear)) is LinearRuns
    assert engine_for(training(STRONG, model=linear)) is PlainLoop
    assert engine_for(training(STRONG, model=linear, device="cuda")) is CapturedRuns


def test_models_put_somewhere_predict_from_there():
    engine = run(PlainLoop([group()], training(Recipe(ema=0.9))))
    there = {name: torch.zeros_like(value) for name, value in engine.parameters(0).items()}
    engine.load_parameters(0, there)
    assert not engine.predict(0, engine.prepare(group().x[:3])).any()


# What is asked for


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("stong", "did you mean 'strong'?"),
        ({"name": "strong", "chop": 3}, "option of training: expected one of 'crop'"),
        ({"crop": -1}, "training, crop: expected pixels, from 0 to 1024"),
        ({"crop": True}, "training, crop: expected pixels"),
        ({"flip": 1}, "training, flip: expected true or false"),
        ({"ema": 1.0}, "training, ema: expected a share from 0 to below 1"),
        ({"consistency": -1}, "training, consistency: expected a number from 0"),
        ({"mixup": float("inf")}, "training, mixup: expected a number from 0"),
        ({"optimiser": "adamx"}, "training, optimiser: expected one of 'adam'"),
        ({"schedule": "cos"}, "training, schedule: expected one of 'constant'"),
    ],
)
def test_what_cannot_be_is_said(asked, words):
    with pytest.raises(InputError) as error:
        recipe_of(asked)
    assert words in str(error.value)


def test_tables_have_no_views():
    flat = replace(group(), x=group().x.flatten(1))
    with pytest.raises(InputError, match="training: expected none of crop, flip, test_flip for samples that are no im"):
        PlainLoop([flat], training(STRONG))
    run(PlainLoop([flat], training(Recipe(consistency=1.0, mixup=0.4, ema=0.9, schedule="cosine", optimiser="sgd"))))
    with pytest.raises(InputError, match="training, crop: expected fewer pixels than images have, 6"):
        PlainLoop([group()], training(Recipe(crop=6)))


def test_what_is_given_wins():
    assert recipe_of({"name": "strong", "ema": 0}) == replace(RECIPES["strong"], ema=0.0)
    assert recipe_of("plain") == recipe_of({}) == PLAIN
    assert recipe_of({"name": "strong", **PLAIN.changed()}).changed() == RECIPES["strong"].changed()
    assert recipe_of(RECIPES["strong"].changed()) == RECIPES["strong"]


@each_option
def test_a_recipe_can_be_named(recipe):
    assert recipe_of(recipe.named()) == recipe
    assert PLAIN.named() == {"name": "plain"}
    assert replace(RECIPES["strong"], crop=1).named() == {"name": "strong", "crop": 1}

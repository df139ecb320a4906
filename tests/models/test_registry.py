"""Users' modules draw from torch's global stream: threads that fit at once do not disturb each other."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from wcll import ComplementaryClassifier
from wcll.losses import LOSSES
from wcll.models.registry import Turns, alone

X = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
Y = np.arange(64) % 3


def with_dropout(shape, n_classes):
    return torch.nn.Sequential(torch.nn.Linear(*shape, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, n_classes))


def noisy(logits, targets):
    """A loss of one's own that draws."""
    return LOSSES["log"].function(logits + 0.1 * torch.randn_like(logits), targets)


class DrawsAlways(torch.nn.Module):
    """Draws when it predicts, too."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x) + torch.randn(len(x), 3, dtype=x.dtype)


def make(seed=0, **options):
    given = {
        "model": with_dropout,
        "max_epochs": 6,
        "batch_size": 8,
        "lr": 0.01,
        "random_state": seed,
        "classes": [0, 1, 2],
    }
    return ComplementaryClassifier(**{"loss": "log", **given, **options})


def fit(model):
    return model.fit(X, Y)


def in_parts(model):
    for _ in range(4):
        model.partial_fit(X, Y)
    return model


def warm(model):
    return model.set_params(warm_start=True, max_epochs=2).fit(X, Y).fit(X, Y)


def at_once(*calls):
    """Call functions in threads of their own, all at the same time; their results in order."""
    found, ready = [None] * len(calls), threading.Barrier(len(calls))

    def one(i):
        ready.wait()
        found[i] = calls[i]()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("learn", [fit, in_parts, warm])
@pytest.mark.parametrize(
    "options",
    [{}, {"loss": noisy, "model": "linear"}, {"loss": noisy, "callbacks": "look"}],
    ids=["own module", "own loss", "own loss and callback"],
)
def test_a_fit_among_threads_is_the_fit_alone(learn, options):
    if options.get("callbacks"):
        options = {**options, "callbacks": [lambda end: (end.classifier().predict(X), None)[1]]}
    alone_ = [learn(make(seed).set_params(**options)).decision_function(X) for seed in (0, 1)]
    before = torch.get_rng_state()
    together = at_once(*(lambda s=seed: learn(make(s).set_params(**options)) for seed in (0, 1)))
    assert torch.equal(torch.get_rng_state(), before)
    for expected, found in zip(alone_, together, strict=True):
        np.testing.assert_array_equal(found.decision_function(X), expected)


def test_predictions_meanwhile_disturb_nothing():
    expected = fit(make()).decision_function(X)
    other = ComplementaryClassifier("log", model=DrawsAlways(), max_epochs=1, random_state=0).fit(X, Y)
    found, _ = at_once(lambda: fit(make()), lambda: [other.predict(X) for _ in range(30)])
    np.testing.assert_array_equal(found.decision_function(X), expected)


def test_the_global_stream_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    for model in (make(), make(model="linear"), make(model="mlp"), make(loss=noisy)):
        torch.manual_seed(5)
        fit(model).predict(X)
        assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(5)
    with pytest.raises(KeyError):
        fit(make(callbacks=[lambda end: {}["stop"]]))
    assert torch.equal(torch.rand(3), expected)


def test_a_callback_draws_from_the_users_own_stream_and_changes_no_fit():
    seen, plain = [], fit(make()).decision_function(X)
    torch.manual_seed(5)
    expected = torch.rand(6).tolist()
    torch.manual_seed(5)
    found = fit(make(callbacks=[lambda end: seen.append(float(torch.rand(()))) or False]))
    assert seen == pytest.approx(expected)
    np.testing.assert_array_equal(found.decision_function(X), plain)
    nested = fit(make(callbacks=[lambda end: fit(make(seed=1, max_epochs=1)) and None]))  # a fit inside another
    np.testing.assert_array_equal(nested.decision_function(X), plain)


def test_turns_go_on_where_they_were():
    one, other = Turns(1, torch.device("cpu")), Turns(2, torch.device("cpu"))
    drawn = {1: [], 2: []}
    for _ in range(3):
        for name, turns in ((1, one), (2, other)):
            with turns.turn(), alone():
                drawn[name].append(float(torch.rand(())))
    for seed, found in drawn.items():
        assert found == torch.rand(3, generator=torch.Generator().manual_seed(seed)).tolist()

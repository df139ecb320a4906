"""Samples that come a buffer at a time: none is lost or comes twice, and engines learn what they would in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from wcll.labels import Belief
from wcll.losses import LOSSES, Targets
from wcll.training import RunGroup, RunLoss, Training, make_engine, train
from wcll.training.recipe import recipe_of
from wcll.training.runs import Buffer, Mapped, Part, read_ahead

N, D, K, BATCH = 1000, 6, 4, 64


def samples(several: bool = False) -> Part:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, K, N)
    mask = np.eye(K, dtype=bool)[labels] | np.eye(K, dtype=bool)[(labels + rng.integers(0, 2, N)) % K]
    return Part(rng.standard_normal((N, D), dtype=np.float32), mask if several else labels)


def parts_of(part: Part, size: int = 70):
    def read(epoch):
        starts = np.arange(0, N, size)
        for start in starts if epoch is None else np.random.default_rng(epoch).permutation(starts):
            yield part.each(lambda values, start=start: values[start : start + size])

    return read


def buffer(part: Part, room: int) -> Buffer:
    return Buffer(parts_of(part), N, part, n_classes=K, room=room, batch_size=BATCH, seed=0)


def mapped(part: Part, room: int) -> Mapped:
    return Mapped(lambda rows: part.x[rows], part.labels, n_classes=K, room=room, batch_size=BATCH, seed=0)


@pytest.mark.parametrize("make", [buffer, mapped])
@pytest.mark.parametrize("room", [100, 333, 800, N, 5000])
def test_every_sample_comes_once_but_for_the_last_batch(make, room):
    part = samples()
    names = np.arange(N, dtype=np.float32)[:, None]
    feed, seen = make(replace(part, x=names), room), []
    for epoch in range(2):
        taken, done = [], []
        for filled in feed.filled(epoch):
            assert len(filled.x) <= max(room, 2 * BATCH)
            assert filled.order.shape[1] == BATCH
            rows = filled.x[filled.order.flatten(), 0].numpy().astype(int)
            assert (part.labels[rows] == filled.targets.index[filled.order.flatten()].numpy()).all()
            done.append(filled.done * N)
            assert done[-1] == pytest.approx(len(taken))
            taken += rows.tolist()
        assert len(taken) == len(set(taken)) == N - N % BATCH
        seen.append(taken)
    assert seen[0] != seen[1]
    assert seen[0] == [row for filled in make(replace(part, x=names), room).filled(0) for row in rows_of(filled)]


def rows_of(filled) -> list[int]:
    return filled.x[filled.order.flatten(), 0].numpy().astype(int).tolist()


def engine_of(part: Part, feed=None, model="linear", recipe="plain", warm_up: float = 0.0, plain: bool = False):
    spec, totals = LOSSES["forward"], np.ones(K)
    told = Belief.of("uniform", totals)
    loss = RunLoss(spec, (), spec.told(told), 0, 1)
    if warm_up:
        loss = loss.after(warm_up, spec.told(Belief.of("popularity", np.arange(1.0, K + 1))))
    x, targets = part.tensors(K, 1.0) if feed is None else feed.place
    training = Training(model, K, 1.0, BATCH, 1e-4, torch.float32, torch.device("cpu"), 3, recipe_of(recipe), feed=feed)
    training = replace(training, mean_losses=True)
    return make_engine([RunGroup(x, targets, 0, [0.01], [loss])], training, plain=plain)


RECIPE = {"name": "plain", "optimiser": "adamw", "schedule": "one-cycle", "mixup": 0.2, "ema": 0.9, "consistency": 0.5}


@pytest.mark.parametrize(("model", "recipe"), [("linear", "plain"), ("mlp", "plain"), ("mlp", RECIPE)])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("make", "room"), [(buffer, N), (mapped, 200), (mapped, N)])
def test_what_is_learnt_is_what_is_learnt_in_memory_bit_for_bit(model, recipe, several, make, room):
    part = samples(several)
    kept, streamed = engine_of(part, None, model, recipe), engine_of(part, make(part, room), model, recipe)
    for engine in (kept, streamed):
        train(engine, 3, [])
    assert kept.steps == streamed.steps == N // BATCH
    assert torch.equal(kept.mean_losses(0), streamed.mean_losses(0))
    for name, values in kept.parameters(0).items():
        assert torch.equal(values, streamed.parameters(0)[name]), name


@pytest.mark.parametrize("plain", [False, True])
def test_a_warm_up_may_end_within_a_pass(plain):
    """Told otherwise for the first buffers of the first epoch, and only there."""
    part, told = samples(), []
    engine = engine_of(part, buffer(part, 200), warm_up=0.3, plain=plain)
    take = engine._take_losses
    engine._take_losses = lambda groups: (told.append(groups[0].losses[0].context), take(groups))
    engine._warming = None
    train(engine, 2, [])
    early, late = told
    assert not np.array_equal(early.transition, late.transition)


def test_an_error_of_a_reader_is_an_error_of_the_training():
    part = samples()

    def read(epoch):
        yield from parts_of(part)(epoch)
        raise OSError("the disk is gone")

    feed = Buffer(read, N + 1, part, n_classes=K, room=200, batch_size=BATCH, seed=0)
    with pytest.raises(OSError, match="the disk is gone"):
        train(engine_of(part, feed), 1, [])


def test_reading_ahead_stops_when_nobody_asks():
    read = []

    def parts():
        for i in range(100):
            read.append(i)
            yield i

    ahead = read_ahead(parts(), 3)
    assert [next(ahead), next(ahead)] == [0, 1]
    ahead.close()
    assert len(read) <= 6


def test_targets_are_put_in_place():
    whole = Targets.of(torch.zeros(5, dtype=torch.int64), K, torch.ones(5))
    whole.take(Targets.of(torch.tensor([3, 2]), K, torch.tensor([0.5, 2.0])))
    assert whole.index.tolist() == [3, 2, 0, 0, 0]
    assert whole.sample_weight.tolist() == [0.5, 2.0, 1.0, 1.0, 1.0]
    assert torch.equal(whole.mask.long().argmax(-1), whole.index)

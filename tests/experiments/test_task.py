"""Samples and labels of a trial: what is drawn, who gets what of it, and what losses and selection are told."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from small import trial
from wcll.datasets import Dataset, Split, load_dataset
from wcll.exceptions import InputError
from wcll.experiments.grouping import plan
from wcll.experiments.splits import pick_per_class
from wcll.experiments.task import class_sizes, draw_samples, loss_context, make_task
from wcll.experiments.worker import run_jobs
from wcll.labels import imbalance_counts, inverse_size_transition
from wcll.labels.transition import complementary_prior, round_to_total
from wcll.labels.weights import eq13

CPU = torch.device("cpu")


def test_the_draws_are_what_the_trial_says(digits):
    task = make_task(trial(validation=0.2), digits)
    assert task.declared.sizes.tolist() == [30] + [60] * 9
    assert len(task.train.ybar) == 570
    assert len(task.valid.ybar) == 6 + 12 * 9
    assert len(task.test.y) + 1348 == 1797 or abs(len(task.test.y) - 449) < 10
    images = torch.cat([task.train.x, task.valid.x, task.test.x]).flatten(1)
    assert (
        len(images.unique(dim=0)) >= len(images) - 3
    )  # nothing is in two parts (digits itself repeats next to nothing)
    assert task.train.x.dtype == torch.uint8
    assert task.train.x.max() / task.scale == 1


def test_training_sets_do_not_depend_on_validation(digits):
    small, large = (make_task(trial(validation=share), digits) for share in (0.05, 0.2))
    assert torch.equal(small.train.x, large.train.x)
    assert np.array_equal(small.train.ybar, large.train.ybar)
    assert make_task(trial(validation=0), digits).valid is None


def test_methods_of_a_cell_share_their_draws(digits):
    tasks = [make_task(trial(loss=loss), digits) for loss in ("wcll", "pc", "cross-entropy")]
    assert all(np.array_equal(tasks[0].train.ybar, task.train.ybar) for task in tasks)
    assert tasks[2].limit is not None
    assert (tasks[2].limit.y != tasks[2].train.ybar).all()
    assert not np.array_equal(tasks[0].train.ybar, make_task(trial(seed=1), digits).train.ybar)


def test_beliefs_weights_and_resampling(digits):
    task = make_task(trial(), digits)
    declared = loss_context(trial(pi="declared"), task.train.ybar, task.declared)
    ratio = np.asarray(declared.weight) / eq13(1 / task.declared.sizes)
    assert np.allclose(ratio, ratio[0])
    recovered = loss_context(trial(), task.train.ybar, task.declared)
    assert not np.allclose(np.asarray(recovered.weight), np.asarray(declared.weight))
    true = loss_context(trial(loss="forward", assume="true"), task.train.ybar, task.declared)
    assert np.allclose(true.transition, task.declared.transition, atol=1e-15)
    over = make_task(trial(resample="over-by-y", loss="cross-entropy"), digits)
    assert np.bincount(over.limit.y).tolist() == [60] * 10
    under = make_task(trial(resample="under"), digits)
    assert np.ptp(np.bincount(under.train.ybar)) == 0
    noisy = make_task(trial(noise=0.5, loss="cross-entropy"), digits)
    assert 0.4 < (noisy.limit.y == noisy.train.ybar).mean() < 0.6


def test_class_sizes_of_every_profile():
    have = np.array([100, 100, 100, 100])
    tailed = trial(imbalance="long-tailed", p=10, minority=None, n_majority=80)
    assert class_sizes(tailed, have)[0].tolist() == [80, 37, 17, 8]
    stepped = trial(imbalance="step", p=10, minority=None, n_majority=80)
    assert class_sizes(stepped, have)[0].tolist() == [80, 80, 8, 8]
    assert (
        class_sizes(trial(p=6, n_majority=27), have)[0].tolist()
        == imbalance_counts(n_majority=27, n_classes=4, minority=[0], p=6).tolist()
    )
    plain = trial(imbalance="none", p=None, minority=None, n_majority=None)
    assert class_sizes(plain, np.array([100, 50, 100, 100]))[0].tolist() == [90, 45, 90, 90]
    with pytest.raises(InputError, match="n_majority: expected at most 133 samples of class 0 in digits, got"):
        make_task(trial(n_majority=500), load_dataset("digits"))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 7, 20])
@pytest.mark.parametrize("validation", [0, 0.05, 1 / 9, 0.28, 0.5, 0.9])
def test_sizes_by_default_always_fit(p, validation):
    have = np.array([174, 131, 140, 133])
    sizes, held_out = class_sizes(trial(p=p, n_majority=None, validation=validation), have)
    assert (sizes + held_out <= have).all()
    assert (sizes + held_out).max() > 0.7 * have.min()


def grouped(n_groups=200, size=3):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), size)
    y = np.repeat(rng.integers(0, 3, n_groups), size)
    x = np.stack([groups, np.arange(len(groups))], axis=1).astype(np.float64)
    return Dataset("patients", ("a", "b", "c"), Split(x, y, groups), None, 1.0, False, "f", "here")


def test_groups_stay_on_one_side_throughout():
    one = trial(n_majority=60, minority=[0])
    draw = draw_samples(one, grouped())
    task = make_task(one, grouped())
    sides = [set(part.x[:, 0].tolist()) for part in (task.train, task.valid, task.test)]
    assert all(sides)
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    assert 0.2 < len(draw.test.y) / 600 < 0.3
    assert np.bincount(draw.pool.y[draw.train.rows]).tolist() == [30, 60, 60]


# --- test sets of so many samples a class, and declared shares ---------------------------------------------------


@st.composite
def patients(draw):
    """Three classes in groups of one to four samples, most of one class; a sample is its own number."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = rng.integers(1, 5, draw(st.integers(90, 150)))
    groups = rng.permutation(len(sizes)).repeat(sizes)
    mixed = rng.random(len(groups)) < draw(st.sampled_from([0.0, 0.1]))
    y = np.where(mixed, rng.integers(0, 3, len(groups)), groups % 3)
    order = rng.permutation(len(y))
    x = np.arange(len(y), dtype=np.float64)[:, None]
    grouped = draw(st.booleans())
    split = Split(x, y[order], groups[order] if grouped else None)
    return Dataset("patients", ("a", "b", "c"), split, None, 1.0, False, "f", "here")


def by_shares(**changes):
    settings = {"imbalance": "shares", "shares": [61, 19, 20], "p": None, "minority": None, "n_majority": None}
    return trial(**{**settings, **changes})


@examples(max_examples=60, deadline=None)
@given(data=patients(), n=st.integers(1, 12), validation=st.sampled_from([0, 1 / 9, 0.3]), seed=st.integers(0, 99))
def test_a_test_set_of_so_many_samples_a_class_shares_no_group(data, n, validation, seed):
    one = by_shares(test_per_class=n, validation=validation, seed=seed)
    task, again = make_task(one, data), make_task(one, data)
    assert np.bincount(task.test.y, minlength=3).tolist() == [n, n, n]
    parts = [part.x[:, 0].long().numpy() for part in (task.train, task.valid, task.test) if part is not None]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    names = np.arange(len(data.train)) if data.train.groups is None else data.train.groups
    sides = [set(names[rows].tolist()) for rows in parts]
    assert len(set.union(*sides)) == sum(map(len, sides))
    assert torch.equal(task.test.x, again.test.x)
    assert torch.equal(task.train.x, again.train.x)
    sizes = task.declared.sizes
    assert np.bincount(data.train.y[parts[0]], minlength=3).tolist() == sizes.tolist()
    assert np.abs(sizes - sizes.max() * np.array([1, 19 / 61, 20 / 61])).max() <= 0.5 or sizes.min() == 1


@examples(max_examples=60, deadline=None)
@given(data=patients(), n=st.integers(1, 12), seed=st.integers(0, 99))
def test_no_more_groups_are_tested_than_are_needed(data, n, seed):
    """What is in neither part is the surplus of groups that are tested; without groups there is none."""
    tested, left = pick_per_class(data.train, n, np.random.default_rng(seed))
    assert not (tested & left).any()
    if data.train.groups is None:
        assert (tested | left).all()
        return
    groups, y = data.train.groups, data.train.y
    for k in range(3):
        own = tested & (y == k)
        whole = [g for g in np.unique(groups[own]) if own[(groups == g) & (y == k)].all()]
        assert len(np.unique(groups[own])) - len(whole) <= 1  # the last one may be cut
    assert set(groups[~left]) == set(groups[tested])


@pytest.mark.parametrize("validation", [0, 1 / 9, 0.5])
def test_declared_shares_take_what_the_scarcest_class_allows(validation):
    one = by_shares(validation=validation)
    for have in ([401, 655, 569], [5000, 100, 100], [30, 30, 30]):
        for grouped in (False, True):
            sizes, held_out = class_sizes(one, np.array(have), grouped=grouped)
            needed = sizes + (0 if grouped else held_out)
            assert (needed <= have).all()
            with pytest.raises(InputError, match="n_majority"):
                class_sizes(dataclasses.replace(one, n_majority=int(sizes.max()) + 4), np.array(have), grouped=grouped)
    assert class_sizes(by_shares(n_majority=610), np.array([5000] * 3))[0].tolist() == [610, 190, 200]


def test_what_is_set_aside_by_groups_does_not_make_training_sets_smaller():
    """Held-out groups are not of the pool any more: training takes all that the pool has of its scarcest class."""
    one = trial(n_majority=None, minority=[2], p=2, validation=0.5)
    assert class_sizes(one, np.array([120, 60, 120, 120]), grouped=True)[0].tolist() == [60, 60, 30, 60]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_per_class": 10_000}, r"test_per_class: expected at most \d+, as class '\w' of patients has, got 10000"),
        ({"shares": [1, 2]}, "shares: expected one for each of 3 classes, got 2 of them"),
    ],
)
def test_splits_that_cannot_be_are_one_clear_line(changes, message):
    with pytest.raises(InputError, match=message):
        make_task(by_shares(**changes), grouped())


def test_an_official_test_set_stays_the_test_set():
    with pytest.raises(
        InputError, match="test_per_class: expected a data set without a test set of its own, got 'numb"
    ):
        make_task(trial(test_per_class=5, n_majority=20), numbered(3, 100))


def test_images_are_reduced_before_anything_is_drawn(digits):
    whole, half = (make_task(trial(pixels=pixels, n_majority=20), digits) for pixels in (None, 4))
    assert half.train.x.shape[1:] == (4, 4)
    assert half.train.x.dtype == torch.uint8
    assert np.array_equal(whole.train.ybar, half.train.ybar)
    means = whole.train.x.double().unfold(1, 2, 2).unfold(2, 2, 2).mean((-1, -2))
    assert (means - half.train.x).abs().max() <= 0.5
    assert whole.data["fingerprint"] != half.data["fingerprint"]


ELSEWHERE = ["selector", "ybar", "ybar-inverse"]


def numbered(k, n, seed=0):
    """A data set of ``n`` samples or somewhat more a class; a sample is its own number, so that y can be looked up."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(k), n + rng.integers(0, n // 4, k)))
    x = np.arange(len(y) + k, dtype=np.float64)[:, None]
    test = Split(x[len(y) :], np.arange(k))
    return Dataset("numbered", tuple(map(str, range(k))), Split(x[: len(y)], y), test, 1.0, True, "f", "here")


def elsewhere(of, **changes):
    return trial(imbalance_of=of, labels="inverse-size" if of == "selector" else "uniform", **changes)


def truth(data, part):
    return data.train.y[part.x[:, 0].long().numpy()]


def test_the_default_is_an_imbalance_of_y_and_leaves_keys_and_draws_alone(digits):
    eq9 = {"name": "wcll", "reading": "eq9"}
    assert trial(loss=eq9).key == "0e4855532c574a6d360992a2"  # of results from before there was a choice
    assert trial(imbalance_of="y") == trial()
    assert "imbalance_of" not in trial().config()
    assert len({trial().key, *(elsewhere(of).key for of in ELSEWHERE)}) == 4
    (one,) = plan([trial(), trial(imbalance_of="y")], together=64)
    assert len(one.trials) == 1
    assert len({job.data for job in plan([elsewhere(of) for of in ELSEWHERE], together=64)}) == 3


@examples(max_examples=40, deadline=None)
@given(
    of=st.sampled_from(ELSEWHERE),
    k=st.integers(3, 6),
    p=st.sampled_from([1.0, 2.0, 3.5]),
    profile=st.sampled_from(["eq6", "long-tailed", "step"]),
    n_majority=st.integers(20, 60),
    validation=st.sampled_from([0.05, 0.2]),
    seed=st.integers(0, 1000),
)
def test_an_imbalance_is_where_it_is_said_to_be(of, k, p, profile, n_majority, validation, seed):
    data = numbered(k, 500)
    minority = [k - 1] if profile == "eq6" else None
    one = elsewhere(
        of, p=p, imbalance=profile, minority=minority, n_majority=n_majority, validation=validation, seed=seed
    )
    task, again = make_task(one, data), make_task(one, data)
    sizes, held_out = class_sizes(dataclasses.replace(one, imbalance_of=None), np.bincount(data.train.y))
    assert task.declared.sizes.tolist() == sizes.tolist()
    for part, wanted in ((task.train, sizes), (task.valid, held_out)):
        y = truth(data, part)
        assert (y != part.ybar).all()
        if of == "selector":
            assert np.bincount(y).tolist() == [wanted.max()] * k
        else:
            shares = sizes / sizes.sum() if of == "ybar" else complementary_prior(sizes)
            assert np.bincount(part.ybar, minlength=k).tolist() == round_to_total(shares, wanted.sum()).tolist()
    if of == "ybar":
        assert np.bincount(task.train.ybar).tolist() == sizes.tolist()
    assert len(np.intersect1d(task.train.x, task.valid.x)) == 0
    assert len(task.train.x.unique()) == len(task.train.x)
    for part, other in ((task.train, again.train), (task.valid, again.valid)):
        assert torch.equal(part.x, other.x)
        assert np.array_equal(part.ybar, other.ybar)
    more, other = (
        make_task(dataclasses.replace(one, **change), data) for change in ({"validation": 0.1}, {"seed": seed + 1})
    )
    assert torch.equal(task.train.x, more.train.x)  # training does not depend on how much is held out
    assert not torch.equal(task.train.x, other.train.x)


@pytest.mark.parametrize("labels", ["uniform", "biased-weak", "inverse-size"])
@pytest.mark.parametrize("of", ELSEWHERE)
def test_the_declared_transition_and_shares_are_those_of_the_samples(of, labels):
    if of == "selector" and labels == "uniform":
        return
    data = numbered(4, 20_000)
    one = trial(imbalance_of=of, labels=labels, judge="true", p=3, minority=[1], n_majority=8000)
    task = make_task(one, data)
    for part, tolerance in ((task.train, 0.02), (task.valid, 0.06)):
        table = np.zeros((4, 4))
        np.add.at(table, (truth(data, part), part.ybar), 1)
        assert np.abs(table / table.sum(axis=1, keepdims=True) - task.declared.transition).max() < tolerance
        assert np.abs(table.sum(axis=1) / table.sum() - task.judge.prior).max() < tolerance
    if of == "selector":
        expected = (
            inverse_size_transition(task.declared.sizes) if labels == "inverse-size" else task.declared.transition
        )
        assert np.allclose(task.declared.transition, expected)
        assert np.allclose(task.judge.prior, 0.25)


@pytest.mark.parametrize("of", ELSEWHERE)
def test_labels_and_images_of_patients_stay_on_one_side_wherever_the_imbalance_is(of):
    task = make_task(elsewhere(of, n_majority=20), grouped())
    sides = [set(part.x[:, 0].tolist()) for part in (task.train, task.valid, task.test)]
    assert all(sides)
    assert len(set.union(*sides)) == sum(map(len, sides))


@pytest.mark.parametrize("judge", ["uniform", "inverse-size", "true"])
@pytest.mark.parametrize("of", ELSEWHERE)
def test_rare_classes_are_the_declared_ones_wherever_the_imbalance_is(digits, of, judge):
    methods = [{"loss": "wcll"}, {"loss": "wcll", "pi": "declared"}, {"loss": "forward", "assume": "true"}]
    trials = [elsewhere(of, judge=judge, n_majority=40, **method) for method in methods]
    (job,) = plan(trials, together=64)
    rows = run_jobs([(job, make_task(trials[0], digits))], CPU)
    for row in rows:
        assert row.history["sizes"] == [20] + [40] * 9
        assert row.metrics["minority_recall"] == row.confusion(-1).recall[0]
        assert np.isfinite(row.held_out_scores()).all()


@pytest.mark.parametrize("of", ELSEWHERE)
def test_the_limit_and_resampling_work_wherever_the_imbalance_is(digits, of):
    limit = make_task(elsewhere(of, n_majority=40, loss="cross-entropy"), digits)
    weak = make_task(elsewhere(of, n_majority=40), digits)
    assert np.array_equal(limit.train.ybar, weak.train.ybar)
    assert torch.equal(limit.limit.x, weak.train.x)
    assert (limit.limit.y != weak.train.ybar).all()
    over = make_task(elsewhere(of, n_majority=40, resample="over"), digits)
    assert np.ptp(np.bincount(over.train.ybar)) == 0
    by_y = make_task(elsewhere(of, n_majority=40, loss="cross-entropy", resample="under-by-y"), digits)
    assert np.ptp(np.bincount(by_y.limit.y)) == 0
    assert make_task(elsewhere(of, n_majority=40, validation=0), digits).valid is None


def test_without_a_number_the_selector_takes_what_the_smallest_class_has():
    data = numbered(4, 100)
    have = np.bincount(data.train.y)
    task = make_task(elsewhere("selector", n_majority=None, validation=0), data)
    assert np.bincount(truth(data, task.train)).tolist() == [have.min()] * 4
    both = make_task(elsewhere("selector", n_majority=None), data)
    assert have.min() - 3 <= len(both.train.ybar) // 4 + len(both.valid.ybar) // 4 <= have.min()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"imbalance_of": "labels"}, "imbalance_of: expected one of 'y', 'selector', 'ybar', 'ybar-inverse', got 'labels'"),
        ({"imbalance_of": "ybar", "imbalance": "none", "p": None, "minority": None}, "imbalance: expected 'eq6', 'long-tailed' or 'step' where imbalance_of is given, got 'none'"),
        ({"imbalance_of": "selector", "labels": "uniform"}, "labels: expected a selector that heeds class sizes for imbalance_of = 'selector', got 'uniform'"),
        ({"imbalance_of": "ybar", "n_majority": None}, "n_majority: expected a number for imbalance_of = 'ybar', got none"),
        ({"imbalance_of": "selector", "n_majority": 500}, "n_majority: expected at most 133 samples of class 0 in digits, got 500 to train and 56 to validate"),
        ({"imbalance_of": "ybar", "n_majority": 500}, r"n_majority: expected at most \d+ samples of class \d \(by complementary label\) in digits, got \d+; ask for fewer"),
        ({"imbalance_of": "ybar-inverse", "n_majority": 60, "p": 20, "labels": "uniform"}, r"n_majority: expected at most \d+ samples of class 0 \(by complementary label\) in digits, got \d+"),
        ({"imbalance_of": "ybar", "n_majority": 100, "validation": 0.9}, r"n_majority: .* ask for fewer, or set validation lower"),
    ],
)  # fmt: skip
def test_an_imbalance_that_cannot_be_is_one_clear_line(digits, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        make_task(trial(**changes), digits)
    assert "\n" not in str(caught.value)


def test_the_judge_is_told_of_labels_as_they_were_drawn(digits):
    plain, over = (make_task(trial(resample=how, judge="inverse-size"), digits) for how in ("none", "over"))
    assert np.array_equal(plain.judge.transition, over.judge.transition)
    assert np.array_equal(plain.valid.ybar, over.valid.ybar)
    assert torch.equal(plain.valid.x, over.valid.x)


def test_labels_are_drawn_from_true_ones_that_are_known(digits):
    part = dataclasses.replace(digits.train, y=np.where(np.arange(len(digits.train)) < 3, -1, digits.train.y))
    expected = "dataset 'digits': expected true labels of every sample, from which labels are drawn, got 3 without"
    for validation in (0, 0.2):
        with pytest.raises(InputError, match=expected):
            make_task(trial(validation=validation), dataclasses.replace(digits, train=part))


def test_a_class_without_samples_and_a_singular_judge_are_said_before_training(digits):
    rng = np.random.default_rng(0)
    split = Split(rng.random((40, 3)), np.repeat([0, 1], 20))
    hollow = Dataset("hollow", ("a", "b", "c"), split, None, 1.0, False, "f", "here")
    with pytest.raises(
        InputError, match="dataset 'digits': expected training samples of every class, got none of class 'c'"
    ):
        make_task(trial(n_majority=None), hollow)
    with pytest.raises(InputError, match="transition: expected an invertible matrix"):
        make_task(trial(labels="uniform", noise=0.1, judge="true"), digits)


def test_runs_keep_the_names_of_their_classes():
    data = make_task(trial(classes=[3, 5], minority=[0]), load_dataset("digits")).data
    assert data["classes"] == ["3", "5"]

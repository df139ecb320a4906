"""Qs that are estimated in a suite: from repeated labels, with a model, and from true pairs; and runs judged by their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from small import trial
from wcll.exceptions import InputError
from wcll.experiments import train
from wcll.experiments.grouping import Job
from wcll.experiments.task import make_task, own_belief
from wcll.experiments.train import _likelihood, estimate_of, run_group, try_out
from wcll.experiments.worker import run_jobs
from wcll.labels import Belief, uniform_transition
from wcll.labels.cross_fitting import ModelTransition
from wcll.labels.encoding import inclusion_shares
from wcll.labels.families import EstimatedTransition

CPU = torch.device("cpu")
CYCLE = np.array([np.roll([0, 0.4, 0.25, 0.1, 0.05, 0.04, 0.04, 0.04, 0.04, 0.04], k) for k in range(10)])
BIASED = {
    "loss": "forward",
    "labels": "matrix",
    "matrix": CYCLE.tolist(),
    "imbalance": "none",
    "p": None,
    "minority": None,
}
PLAIN = {**BIASED, "n_majority": 110, "epochs": 10, "lr": 0.01}


def distance(belief, matrix):
    return np.abs(belief.transition - matrix).sum(axis=1).mean() / 2


def belief_of(one, digits):
    task = make_task(one, digits)
    return own_belief(one, task.train.ybar, task.declared, estimate_of(task.view, CPU)), task


def test_labels_are_drawn_from_the_matrix(digits):
    task = make_task(trial(**PLAIN), digits)
    np.testing.assert_allclose(task.declared.transition, CYCLE)
    with pytest.raises(InputError, match="matrix: expected 3 rows, one for each class of digits, got 10"):
        make_task(trial(**{**PLAIN, "classes": [0, 1, 2]}), digits)


def test_several_labels_reach_training_and_selection(digits):
    one = trial(**PLAIN, labels_per_sample=3)
    task = make_task(one, digits)
    assert task.train.ybar.shape == (1100, 10)
    assert (task.train.ybar.sum(axis=1) == 3).all()
    assert (task.valid.ybar.sum(axis=1) == 3).all()
    assert (task.declared.transition.max(axis=1) < CYCLE.max(axis=1)).all()  # inclusion shares are more alike
    (row,) = run_jobs([(Job((one,)), task)], CPU)
    assert sum(row.history["train_labels"]) == 3300
    assert np.sum(row.history["held_out"][-1]) == len(task.valid.ybar)  # one label of each
    assert make_task(trial(**PLAIN, labels_per_sample=1), digits).train.ybar.ndim == 1


def test_the_likelihood_of_several_labels_is_their_product():
    mask = np.random.default_rng(0).random((20, 10)) < 0.3
    mask[:, 0] |= ~mask.any(axis=1)
    found = _likelihood(torch.as_tensor(mask), torch.as_tensor(CYCLE)).numpy()
    np.testing.assert_allclose(found, [[CYCLE[y][row].prod() for y in range(10)] for row in mask], atol=1e-12)
    single = _likelihood(torch.arange(10), torch.as_tensor(CYCLE)).numpy()
    np.testing.assert_allclose(single, CYCLE.T)


def test_pairs_are_nearer_than_the_family_and_the_true_q_is_what_was_drawn(digits):
    far = distance(belief_of(trial(**PLAIN, assume="popularity"), digits)[0], CYCLE)
    few, task = belief_of(trial(**PLAIN, assume="pairs", pairs=500), digits)
    assert distance(few, CYCLE) < 0.5 * far
    assert few.basis == "500 true pairs"
    other = make_task(trial(**PLAIN, assume="pairs", pairs=50), digits)
    assert np.array_equal(task.train.ybar, other.train.ybar)  # rows stay paired
    assert distance(belief_of(trial(**PLAIN, assume="true"), digits)[0], CYCLE) < 1e-9
    with pytest.raises(
        InputError, match="pairs: expected at most the 1100 training samples whose class is known, got 2000"
    ):
        make_task(trial(**PLAIN, assume="pairs", pairs=2000), digits)


def test_repeated_labels_tell_q_as_inclusion_shares(digits, monkeypatch):
    def told(mask, k, *, draws, random_state):
        assert (mask.sum(axis=1) == 3).all()
        return EstimatedTransition(CYCLE, None, None, "repeated labels", "popularity")

    monkeypatch.setattr(train, "transition_from_repeated", told)
    found, task = belief_of(trial(**PLAIN, labels_per_sample=3, assume="repeated"), digits)
    np.testing.assert_allclose(found.transition, inclusion_shares(CYCLE, 3))
    np.testing.assert_allclose(found.transition, task.declared.transition)


def test_the_model_is_asked_once_for_all_runs_on_the_same_data(digits, monkeypatch):
    asked = []

    def made(x, ybar, model, *, rounds, random_state):
        asked.append((tuple(x.shape), str(x.dtype), model.max_epochs, rounds, random_state))
        return ModelTransition(CYCLE, None, None, "a model", "popularity", (), None)

    monkeypatch.setattr(train, "transition_with_model", made)
    job = Job(tuple(trial(**{**PLAIN, "lr": lr}, assume="model") for lr in (0.01, 0.02)))
    task = make_task(job.first, digits)
    assert run_group(job, task.view).losses[0].context.transition == pytest.approx(CYCLE)
    run_jobs([(job, task)], CPU)
    assert asked == [((1100, 8, 8), "float64", 10, 8, 0)]


def test_a_try_asks_no_model(digits, monkeypatch):
    """It is to fail at once if it must fail, and nothing of it is kept."""
    monkeypatch.setattr(train, "transition_with_model", None)
    job = Job((trial(**PLAIN, assume="model", warm_up=2),))
    try_out(job, make_task(job.first, digits).view, CPU)


def test_in_the_warm_up_a_loss_is_told_popularity(digits):
    job = Job((trial(**PLAIN, assume="true", warm_up=2),))
    task = make_task(job.first, digits)
    (loss,) = run_group(job, task.view).losses
    popularity = Belief.of("popularity", np.bincount(task.train.ybar, minlength=10)).transition
    for epoch, matrix in ((0, popularity), (1, popularity), (2, CYCLE)):
        np.testing.assert_allclose(loss.at(epoch).context.transition, matrix)
        assert not loss.at(epoch).options


def test_in_the_warm_up_no_class_is_given_up(digits):
    job = Job((trial(**PLAIN, assume="true", warm_up=2, balance=0.1),))
    (loss,) = run_group(job, make_task(job.first, digits).view).losses
    assert [dict(loss.at(epoch).options) for epoch in range(3)] == [{"balance": 0.1}, {"balance": 0.1}, {}]


def test_a_model_of_the_trials_own_kind_is_asked(digits):
    found, _ = belief_of(trial(**PLAIN, assume="model"), digits)
    np.testing.assert_allclose(found.transition.sum(axis=1), 1)
    assert "models of 1100 samples" in found.basis


def test_runs_are_judged_by_their_own_q(digits):
    runs = [trial(**PLAIN, judge="own", assume=assume) for assume in ("uniform", "true")]
    task = make_task(runs[0], digits)
    together = run_jobs([(Job(tuple(runs)), task)], CPU)
    for row, matrix in zip(together, (uniform_transition(10), CYCLE), strict=True):
        np.testing.assert_allclose(row.judge.transition, matrix)
    alone = [
        run_jobs([(Job((one,)), make_task(one, digits))], CPU)[0]
        for one in (trial(**PLAIN, judge=judge, assume=judge) for judge in ("uniform", "true"))
    ]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.history["log_likelihood"] == pytest.approx(theirs.history["log_likelihood"])
    assert isinstance(together[0].judge, Belief)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": "matrix"}, "matrix: expected rows of chances for labels = 'matrix', got none"),
        (
            {"matrix": CYCLE.tolist()},
            "matrix: expected none, or labels = 'matrix', got one beside labels = 'inverse-size'",
        ),
        ({"assume": "pairs"}, "pairs: expected a number for assume = 'pairs', got none"),
        ({"pairs": 5}, "pairs: expected none, or assume = 'pairs', got 5 beside assume = 'uniform'"),
        ({"assume": "repeated"}, "labels_per_sample: expected two or more for assume = 'repeated', got one"),
        ({"loss": "pc", "labels_per_sample": 2}, "labels_per_sample: expected one for loss 'pc', got 2"),
        (
            {"resample": "over", "labels_per_sample": 2},
            "resample: expected none for several labels a sample, got 'over'",
        ),
        (
            {"judge": "own", "loss": "cross-entropy"},
            "judge: expected a family, as loss 'cross-entropy' believes nothing",
        ),
        ({"labels": "matrix", "matrix": [[0.5, 0.5]]}, "transition: expected"),
        ({"loss": "log", "warm_up": 2}, "warm_up: expected none for loss 'log', which is told no Q, got 2"),
        ({"loss": "forward", "warm_up": 4, "epochs": 4}, "warm_up: expected fewer than the 4 epochs, got 4"),
        ({"loss": "forward", "warm_up": 0}, "warm_up: expected a whole number from 1"),
        ({"loss": "forward", "balance": 0.3}, "balance: expected none but in a warm_up of loss 'forward', got 0.3"),
        (
            {"loss": "free", "warm_up": 2, "balance": 0.3},
            "balance: expected none but in a warm_up of loss 'forward', got 0.3",
        ),
        ({"labels": "matrix", "matrix": "nowhere.npz:q"}, "matrix: expected rows of chances, or a file of them"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(changes, message):
    with pytest.raises(InputError) as raised:
        trial(**changes)
    assert message in str(raised.value)


def test_a_matrix_is_read_from_files(tmp_path, monkeypatch):
    rounded = np.round(CYCLE, 3) + np.eye(10) * 2e-4
    np.savez(tmp_path / "several.npz", people=rounded, other=CYCLE)
    np.save(tmp_path / "one.npy", CYCLE)
    monkeypatch.setenv("WCLL_DATA", str(tmp_path))
    named = trial(**{**PLAIN, "matrix": "several.npz:people"})
    assert np.sum(named.matrix, axis=1) == pytest.approx(1)  # printed numbers are rounded
    assert trial(**{**PLAIN, "matrix": "several.npz:other"}).key == trial(**PLAIN).key
    assert trial(**{**PLAIN, "matrix": str(tmp_path / "one.npy")}).key == trial(**PLAIN).key
    with pytest.raises(InputError, match=r"expected one of its arrays, people, other, after a colon, got 'q'"):
        trial(**{**PLAIN, "matrix": "several.npz:q"})
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"bad.npz: expected"):
        trial(**{**PLAIN, "matrix": "bad.npz:q"})

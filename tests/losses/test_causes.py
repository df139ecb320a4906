"""Imbalanced classes, a biased choice of labels, selection by labels: each corrected once is right, twice is not.

Everything here is exact: three kinds of samples, three classes, float64, and expectations instead of draws. A loss is
right where its expectation has no gradient; the likelihood is convex in p, so that there it is the least.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from wcll import ComplementaryClassifier, LabelWarning
from wcll.exceptions import InputError
from wcll.labels import Belief, class_weights, uniform_transition
from wcll.labels.counts import label_totals
from wcll.losses.forward import forward
from wcll.losses.ordinary import logit_adjusted

#: P(x given y) of three kinds of samples, and the shares of classes among the training samples.
GIVEN = np.array([[0.45, 0.3, 0.25], [0.3, 0.4, 0.3], [0.2, 0.35, 0.45]])
PRIOR = np.array([0.5, 0.3, 0.2])
Q = np.array([[0.0, 0.6, 0.4], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0]])
ACCEPTANCE = np.array([1.0, 0.8, 1.0])  #: how many samples are kept, by their label


def posterior(prior):
    """P(y given x) under class shares, (3, 3)."""
    joint = GIVEN.T * prior
    return joint / joint.sum(axis=1, keepdims=True)


TRUTH = posterior(PRIOR)
SAMPLES = PRIOR @ GIVEN  #: P(x)
LABELS = TRUTH @ Q  #: P(label given x)
MARGINAL = SAMPLES @ LABELS  #: P(label)


def slope(p, mass, loss=forward, **keywords):
    """The largest entry of the gradient of a loss, expected under the mass of pairs of x and label, at p."""
    logits = torch.log(torch.as_tensor(p)).requires_grad_()
    labels = torch.arange(3).repeat(len(p))
    each = loss(logits.repeat_interleave(3, 0), labels, reduction="none", **keywords)
    (each * torch.as_tensor(mass).reshape(-1)).sum().backward()
    return float(logits.grad.abs().max())


def least(shares, transition=Q):
    """Where the likelihood of labels of these shares, given x and up to a scale, is largest: pQ is proportional."""
    solved = shares / shares.sum(axis=1, keepdims=True) @ np.linalg.inv(transition)
    assert (solved > 0).all()  # inside, or else it is on the border
    return solved


def tv(p, other):
    """How far probabilities are apart, on average over samples."""
    return float(SAMPLES @ np.abs(p - other).sum(axis=1) / 2)


# A biased choice of labels


def test_q_alone_gives_the_true_posterior():
    assert slope(TRUTH, SAMPLES[:, None] * LABELS, transition=Q) < 1e-15
    np.testing.assert_allclose(least(LABELS), TRUTH, rtol=1e-12)
    assert slope(TRUTH, SAMPLES[:, None] * LABELS, transition=uniform_transition(3)) > 0.005


def test_q_and_weights_by_label_counts_correct_twice():
    """The minimum is where (pQ)_j is proportional to w_j P(j given x), and not to P(j given x)."""
    weight = 1 / MARGINAL / 3
    twice = least(weight * LABELS)
    assert slope(twice, SAMPLES[:, None] * LABELS, transition=Q, weight=weight) < 1e-15
    assert slope(TRUTH, SAMPLES[:, None] * LABELS, transition=Q, weight=weight) > 0.005
    assert tv(twice, TRUTH) == pytest.approx(0.116, abs=5e-4)
    assert (twice.argmax(axis=1) != TRUTH.argmax(axis=1)).any()


# Selection by labels

KEPT = SAMPLES[:, None] * LABELS * ACCEPTANCE  #: mass of pairs that are kept
SELECTED = Q * ACCEPTANCE / (Q @ ACCEPTANCE)[:, None]  #: P(label given y, kept)


def test_weights_alone_undo_a_selection():
    assert slope(TRUTH, KEPT, transition=Q, weight=1 / ACCEPTANCE) < 1e-15
    assert slope(TRUTH, KEPT, transition=Q) > 0.005


def test_the_q_of_those_kept_alone_gives_their_posterior():
    """Of those that are kept, whose class shares are others: moved to those of all samples it is the truth."""
    of_kept = TRUTH * (Q @ ACCEPTANCE)
    of_kept /= of_kept.sum(axis=1, keepdims=True)
    assert slope(of_kept, KEPT, transition=SELECTED) < 1e-15
    prior_of_kept = KEPT.sum(axis=1) @ of_kept / KEPT.sum()
    moved = of_kept * PRIOR / prior_of_kept
    np.testing.assert_allclose(moved / moved.sum(axis=1, keepdims=True), TRUTH, rtol=1e-12)


def test_weights_and_the_q_of_those_kept_correct_twice():
    twice = least(LABELS, SELECTED)
    assert slope(twice, KEPT, transition=SELECTED, weight=1 / ACCEPTANCE) < 1e-15
    assert slope(TRUTH, KEPT, transition=SELECTED, weight=1 / ACCEPTANCE) > 0.005
    assert tv(twice, TRUTH) == pytest.approx(0.083, abs=5e-4)


# Imbalanced classes


@pytest.mark.parametrize("target", [np.full(3, 1 / 3), np.array([0.1, 0.2, 0.7])])
def test_moving_the_posterior_to_other_class_shares_is_exact(target):
    np.testing.assert_allclose(SAMPLES @ TRUTH, PRIOR)  # the mean of the posterior is the prior
    moved = softmax(np.log(TRUTH) + np.log(target) - np.log(PRIOR), axis=1)
    np.testing.assert_allclose(moved, posterior(target), rtol=1e-12)


def test_the_adjusted_loss_and_moving_the_posterior_correct_twice():
    balanced = posterior(np.full(3, 1 / 3))
    assert slope(balanced, SAMPLES[:, None] * TRUTH, logit_adjusted, marginal=PRIOR) < 1e-15
    twice = softmax(np.log(balanced) - np.log(PRIOR), axis=1)
    assert tv(twice, balanced) == pytest.approx(0.152, abs=5e-4)
    assert (twice.argmax(axis=1) != balanced.argmax(axis=1)).any()


# What the library does

X = np.random.default_rng(0).normal(size=(100, 2))
YBAR = np.repeat([0, 1, 2], [50, 30, 20])


def quick(loss="forward", **options):
    return ComplementaryClassifier(loss, max_epochs=1, random_state=0, **options).fit(X, YBAR)


def test_no_weights_unless_asked_for():
    assert quick(transition=Q).weights_ is None
    assert quick(transition="inverse-size").weights_ is None
    with pytest.raises(InputError, match="weights: expected none or 'auto' for loss='auto'"):
        quick("auto", weights="inverse-frequency")


@pytest.mark.parametrize("loss", ["forward", "free"])
@pytest.mark.parametrize("weights", ["inverse-frequency", "effective-number", "wcll", class_weights("wcll", YBAR, 3)])
@pytest.mark.parametrize("transition", [Q, "inverse-size", "popularity"])
def test_q_and_weights_by_label_counts_are_warned_of(loss, weights, transition):
    with pytest.warns(LabelWarning, match="weights: class weights by label counts and Q correct .* twice") as caught:
        quick(loss, weights=weights, transition=transition)
    assert len(caught) == 1


def test_weights_of_ones_own_and_a_q_from_the_same_counts_are_warned_of():
    with pytest.warns(LabelWarning, match="weights: Q is recovered from label counts .* as sample_weight") as caught:
        quick(weights=1 / ACCEPTANCE, transition="popularity")
    assert len(caught) == 1


def test_one_correction_of_each_cause_is_not_warned_of():
    """Warnings are errors here."""
    quick(weights=1 / ACCEPTANCE, transition=Q, target_prior="balanced")
    quick(weights="inverse-frequency")  # uniform labels: weights are the only ones to correct their choice
    quick("log", weights="inverse-frequency")
    quick("wcll")
    ComplementaryClassifier("forward", transition="popularity", max_epochs=1).fit(X, YBAR, 1 / ACCEPTANCE[YBAR])


@pytest.mark.parametrize("family", ["popularity", "inverse-size", "popularity-noise"])
def test_sample_weights_count_where_q_is_recovered(family):
    """So that a Q from the counts of those kept is that of all labels."""
    everyone = np.array([500, 400, 300])
    kept = np.repeat([0, 1, 2], (everyone * ACCEPTANCE).astype(int))
    x, weight = np.random.default_rng(0).normal(size=(len(kept), 2)), 1 / ACCEPTANCE[kept]
    np.testing.assert_allclose(label_totals(kept, 3, weight), everyone)
    model = ComplementaryClassifier("forward", transition=family, max_epochs=1).fit(x, kept, sample_weight=weight)
    np.testing.assert_allclose(model.transition_, Belief.of(family, everyone).transition, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logit-adjusted", "cross-entropy"])
def test_no_adjusted_loss_meets_a_target(loss):
    with pytest.raises(InputError, match="loss: expected one for complementary labels"):
        quick(loss, target_prior="balanced")

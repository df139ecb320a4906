"""scikit-learn's own checks: what they check is the estimator, which differs by what it takes from labels."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from wcll import ComplementaryClassifier

LOSSES = ["wcll", "forward", "scarce"]  # with weights, with Q, with the prior and scores for probabilities


def expected_failures(estimator):
    reason = "mini-batches: see test_sample_weight_equals_repetition"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        *(ComplementaryClassifier(loss, max_epochs=5, lr=0.05) for loss in LOSSES),
        ComplementaryClassifier(budget=100, model="linear"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

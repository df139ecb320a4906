"""Gaps between methods on small test sets."""

from __future__ import annotations

import numpy as np
import pytest

from wcll.paper.reproduction import gap, signs
from wcll.report.result_tables import Cell


def test_trials_that_agree_do_not_make_a_small_test_set_larger():
    """Without any spread over trials, what is left is the error of two shares of 100 images."""
    first, second = (Cell(dict.fromkeys(range(5), share), ()) for share in (0.55, 0.45))
    one = gap(first, second, 100)
    assert one.error == pytest.approx((2 * 0.55 * 0.45 / 100) ** 0.5, rel=0.01)
    assert signs([one]) == [0]
    assert signs([gap(first, second, 10_000)]) == [1]
    assert signs([gap(second, first, 10_000), gap(first, 0.55, 100)]) == [-1, 0]
    assert gap(Cell(dict.fromkeys(range(5), 0.0), ()), 1 / 3, 100).error > 0  # not certain, though all agree


def test_the_error_of_a_gap_is_about_right():
    """Of equal methods, whose trials test new images each, hardly one in twenty is said to differ."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(400):
        cells = [Cell(dict(enumerate(rng.binomial(100, 0.4, 5) / 100)), ()) for _ in range(2)]
        false += gap(*cells, 100).p_value < 0.05
    assert false <= 20

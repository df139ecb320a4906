"""What families cost if others are so: the table, what is left out of it, and what nothing shows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wcll.exceptions import InputError
from wcll.labels import FAMILIES, costs_if_wrong, uniform_transition
from wcll.labels.family_selection import cost_if_wrong

FIR = [420, 120, 110, 120, 120, 110]


def test_every_cell_is_what_a_family_says():
    table = costs_if_wrong(FIR)
    assert set(table.names) == {"uniform", "popularity", "inverse-size", "popularity-noise", "offered"}
    for i, assumed in enumerate(table.names):
        for j, truth in enumerate(table.names):
            cost = cost_if_wrong(*(FAMILIES[name].fit(np.array(FIR, float)).transition for name in (assumed, truth)))
            assert table.accuracy[i, j] == cost.accuracy
            assert table.costs[i][j].likelihood == cost.likelihood
    np.testing.assert_allclose(np.diag(table.accuracy), 1)
    assert set(table.invisible) == {("popularity", "popularity-noise"), ("offered", "popularity-noise")}
    plain = json.loads(json.dumps(table.to_dict()))
    assert plain["popularity"]["popularity-noise"]["invisible"] is True


def test_families_that_are_the_same_are_no_mistake():
    table = costs_if_wrong([50, 50, 50])
    assert ("uniform", "popularity") in table.same
    assert all(truth == "popularity-noise" for _, truth in table.invisible)


def test_what_counts_cannot_be_is_left_out_and_what_is_ruled_out_has_no_cost():
    table = costs_if_wrong([420, 20, 0, 120, 120, 110])
    assert "inverse-size" not in table.names
    popularity, uniform = table.names.index("popularity"), table.names.index("uniform")
    assert table.costs[popularity][uniform] is None
    assert np.isnan(table.accuracy[popularity, uniform])
    assert not np.isnan(table.accuracy[uniform, popularity])
    assert costs_if_wrong([5, 0, 0]).names == ("uniform",)


def test_other_matrices_and_shares():
    told = np.array([np.roll([0.0, 0.8, 0.1, 0.1], y) for y in range(4)])
    table = costs_if_wrong([10, 10, 10, 10], prior=[1, 0, 0, 0], others={"estimated": told})
    assert table.names[-1] == "estimated"
    assert table.accuracy[-1, -1] == 1
    assert table.costs[-1][table.names.index("uniform")].confidence < 0.5
    with pytest.raises(InputError, match=r"others\['x'\]: expected a 4 x 4 matrix, got 3 x 3"):
        costs_if_wrong([10, 10, 10, 10], others={"x": uniform_transition(3)})

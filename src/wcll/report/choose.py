"""Which run and epoch of a cell is shown: the last, the one that held-out labels choose, or an oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wcll.evaluation import select
from wcll.results.row import Row

#: How tables say what their figures are.
SELECTED_BY = {
    "last": "the last epoch of each run",
    "label-free": (
        "rate and epoch chosen without true labels: the lowest held-out -log (pQ)_ybar, averaged over three checkpoints"
    ),
    "oracle": "ORACLE: rate and epoch chosen with the TEST labels, an upper limit that no user can reach",
}


@dataclass(frozen=True)
class Picked:
    """A run, and the epoch at which it is looked at (counted from 1)."""

    row: Row
    epoch: int


def choose(candidates: Sequence[Row], how: str, metric: str) -> Picked:
    """Pick among the runs of one cell and seed, which differ in their rate or other values of the grid.

    Only here, over stored rows, may test results choose (``how="oracle"``); tables say so wherever they do.
    """
    if how == "last":
        (row,) = candidates
        return Picked(row, row.epochs)
    if how == "label-free":
        found = select([row.held_out_scores() for row in candidates])
        row = candidates[found.candidate]
        return Picked(row, row.history["checkpoints"][found.checkpoint])
    picked = [_best_epoch(row, metric) for row in candidates]
    return max(picked, key=lambda pick: pick.row.value(metric, pick.epoch))


def _best_epoch(row: Row, metric: str) -> Picked:
    if metric == "macro_f1":  # known at checkpoints only
        epochs = row.history["checkpoints"]
        return Picked(row, epochs[int(np.argmax([row.value(metric, epoch) for epoch in epochs]))])
    return Picked(row, int(np.argmax(row.curve(metric))) + 1)

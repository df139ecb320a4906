"""The paper's tables with one more row: what the library does by default, where nobody tells it anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wcll.losses.chosen import AUTO
from wcll.suites import Suite
from wcll.suites.suite import Axis

PROTOCOLS = ("paper", "best")  #: the paper's methods alone, or with the row
ROW: dict[str, Any] = {"loss": AUTO}
ABOUT = (
    "“auto” is the default of ComplementaryClassifier with the same model: it gets the same labels, those that are "
    "held out among them, is told nothing, and chooses Q, rate and epoch by them; it is the same run in both tables."
)


def with_auto(suite: Suite) -> Suite:
    """A suite with the row ``auto`` after its others."""
    return replace(suite, about=f"{suite.about} {ABOUT}".strip(), rows=(*suite.rows, Axis(AUTO, dict(ROW))))

"""Losses for complementary labels: the registry, the targets they take, and a module class for each.

``wcll.losses.WCLLLoss(weight=...)`` and its sisters (``FREELoss``, ``LUWLoss``, ...) are made from the registry.
"""

from wcll.losses import families  # noqa: F401  (registers every loss)
from wcll.losses.base import BASES
from wcll.losses.inputs import Transition
from wcll.losses.modules import LossModule, module_classes
from wcll.losses.spec import LOSSES, Context, LossSpec, Table1
from wcll.losses.targets import Targets

__all__ = ["BASES", "LOSSES", "Context", "LossModule", "LossSpec", "Table1", "Targets", "Transition"]


def __getattr__(name: str) -> type[LossModule]:
    classes = module_classes()
    if name not in classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return classes[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *module_classes()])

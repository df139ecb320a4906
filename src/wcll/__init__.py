"""Learn classifiers from complementary labels ("this is NOT a cat") when classes are imbalanced."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wcll import datasets, evaluation, functional, labels, losses, models, results, suites, testing, theory
    from wcll.estimator import ComplementaryClassifier

__all__ = [
    "ComplementaryClassifier",
    "__version__",
    "datasets",
    "evaluation",
    "functional",
    "labels",
    "losses",
    "models",
    "results",
    "suites",
    "testing",
    "theory",
]


def __getattr__(name: str) -> Any:
    # Rooms load when first used: `wcll --version` must not wait for torch.
    if name == "ComplementaryClassifier":
        return import_module("wcll.estimator").ComplementaryClassifier
    if name in __all__:
        return import_module(f"wcll.{name}")
    raise AttributeError(f"module 'wcll' has no attribute {name!r}")

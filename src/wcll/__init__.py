"""Learn classifiers from complementary labels ("this is NOT a cat") when classes are imbalanced."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if "OMP_WAIT_POLICY" not in os.environ:  # threads of torch that wait spin for milliseconds, which busy machines lack
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if TYPE_CHECKING:
    from wcll import (
        datasets,
        evaluation,
        experiments,
        functional,
        labels,
        losses,
        onnx,
        report,
        testing,
        theory,
        training,
        transition_estimation,
    )
    from wcll.estimator import ComplementaryClassifier
    from wcll.exceptions import LabelWarning
    from wcll.experiments.run import run

__all__ = [
    "ComplementaryClassifier",
    "LabelWarning",
    "__version__",
    "datasets",
    "evaluation",
    "experiments",
    "functional",
    "labels",
    "losses",
    "onnx",
    "report",
    "run",
    "testing",
    "theory",
    "training",
    "transition_estimation",
]

if not TYPE_CHECKING:  # type checkers see the imports above, so that a misspelt name is an error to them

    def __getattr__(name):
        # Rooms load when first used: `wcll --version` must not wait for torch.
        if name not in __all__:
            raise AttributeError(f"module 'wcll' has no attribute {name!r}")
        homes = {
            "ComplementaryClassifier": "wcll.estimator",
            "LabelWarning": "wcll.exceptions",
            "run": "wcll.experiments.run",
        }
        return getattr(import_module(homes[name]), name) if name in homes else import_module(f"wcll.{name}")

    def __dir__():
        return sorted({*globals(), *__all__})
